import pytest

from worker.supervisor.lifecycle import Event, Phase, next_phase


@pytest.mark.parametrize(
    ("events", "phase"),
    [
        ([Event.STARTED], Phase.RUNNING),
        ([Event.STARTED, Event.PAUSED, Event.RESUMED], Phase.RUNNING),
        ([Event.STARTED, Event.DRAINED], Phase.DRAINED),
        ([Event.STARTED, Event.FAILED], Phase.FAILED),
        ([Event.STARTED, Event.FAILED, Event.EXITED], Phase.FAILED),
        ([Event.STARTED, Event.STOP_ASKED, Event.EXITED], Phase.GONE),
        ([Event.STARTED, Event.EXITED], Phase.FAILED),
        ([Event.EXITED], Phase.FAILED),
        ([Event.STOP_ASKED, Event.STARTED, Event.FAILED, Event.EXITED], Phase.GONE),
        ([Event.FAILED, Event.STOP_ASKED], Phase.GONE),
    ],
)
def test_events_lead_to_a_phase(events: list[Event], phase: Phase) -> None:
    current = Phase.STARTING
    for event in events:
        current = next_phase(current, event)
    assert current is phase


def test_every_live_phase_can_fail_end_and_be_stopped() -> None:
    for phase in (Phase.STARTING, Phase.RUNNING, Phase.PAUSED, Phase.DRAINED):
        assert next_phase(phase, Event.FAILED) is Phase.FAILED
        assert next_phase(phase, Event.EXITED) is Phase.FAILED
        assert next_phase(phase, Event.STOP_ASKED) is Phase.STOPPING


@pytest.mark.parametrize("event", list(Event))
def test_nothing_happens_to_what_is_gone(event: Event) -> None:
    with pytest.raises(ValueError, match="GONE"):
        next_phase(Phase.GONE, event)
