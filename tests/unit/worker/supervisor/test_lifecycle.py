import pytest

from worker.supervisor.lifecycle import Event, Phase, ProcessEvent, ProcessPhase, next_phase, next_process_phase


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


@pytest.mark.parametrize(
    ("events", "phase"),
    [
        ([ProcessEvent.MOVE_ASKED, ProcessEvent.ENDED, ProcessEvent.REPLACED], ProcessPhase.SERVING),
        ([ProcessEvent.MOVE_ASKED, ProcessEvent.MOVE_ASKED], ProcessPhase.MOVING),
        ([ProcessEvent.ENDED], ProcessPhase.ENDED),
        ([ProcessEvent.REST_ASKED, ProcessEvent.RESTED], ProcessPhase.RESTING),
        ([ProcessEvent.REST_ASKED, ProcessEvent.ENDED], ProcessPhase.ENDED),
        ([ProcessEvent.CLEAR_ASKED, ProcessEvent.CLEAR_ASKED, ProcessEvent.ENDED], ProcessPhase.ENDED),
        ([ProcessEvent.MOVE_ASKED, ProcessEvent.CLEAR_ASKED], ProcessPhase.CLEARING),
    ],
)
def test_events_lead_to_a_phase_of_the_process(events: list[ProcessEvent], phase: ProcessPhase) -> None:
    current = ProcessPhase.SERVING
    for event in events:
        current = next_process_phase(current, event)
    assert current is phase


def test_a_process_that_moves_is_not_asked_to_rest_and_one_at_rest_does_not_move() -> None:
    for phase, event in [
        (ProcessPhase.MOVING, ProcessEvent.REST_ASKED),
        (ProcessPhase.RESTING, ProcessEvent.MOVE_ASKED),
        (ProcessPhase.RESTING, ProcessEvent.ENDED),
    ]:
        with pytest.raises(ValueError, match=event.value):
            next_process_phase(phase, event)
