from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from worker.herder.reconcile import Desired, DesiredUnits, Running, Start, Stop, Tell, reconcile, units_of
from worker.messages.messages import Drain, Pause, Resume, RunConnector, RunTask, TakeConfig
from worker.stores.config.store import ConnectorEntry, TargetState
from worker.supervisor.lifecycle import Phase
from worker.unit import Unit

CONNECTOR = Unit("c")
TASK = Unit("c", 0)
COMMAND = RunTask("c", 0, {}, {}, {}, paused=False)


def test_what_should_run_and_does_not_is_started() -> None:
    assert reconcile({TASK: Desired(COMMAND, paused=True)}, {}) == [Start(TASK, Desired(COMMAND, paused=True))]


def test_what_runs_and_should_not_is_stopped_once() -> None:
    assert reconcile({}, {TASK: Running(COMMAND, Phase.RUNNING)}) == [Stop(TASK)]
    assert reconcile({}, {TASK: Running(COMMAND, Phase.STOPPING)}) == []


def test_a_changed_configuration_stops_first_and_starts_when_gone() -> None:
    desired = {TASK: Desired(replace(COMMAND, config={"file": "b"}))}
    assert reconcile(desired, {TASK: Running(COMMAND, Phase.RUNNING)}) == [Stop(TASK)]
    assert reconcile(desired, {TASK: Running(COMMAND, Phase.STOPPING)}) == []
    assert reconcile(desired, {}) == [Start(TASK, desired[TASK])]


def test_a_task_that_goes_on_is_told_of_its_new_configuration() -> None:
    larger = replace(COMMAND, config={"share": "a,b"})
    desired = {TASK: Desired(larger, paused=True, since=3)}
    running = Running(COMMAND, Phase.RUNNING, since=3)
    told = [Tell(TASK, TakeConfig({"share": "a,b"})), Tell(TASK, Pause())]
    assert reconcile(desired, {TASK: running}) == told
    assert reconcile(desired, {TASK: replace(running, phase=Phase.DRAINED)}) == [Stop(TASK)]
    assert reconcile(desired, {TASK: replace(running, since=2)}) == [Stop(TASK)]
    other = replace(larger, connector_config={"a": "other"})
    assert reconcile({TASK: Desired(other, since=3)}, {TASK: running}) == [Stop(TASK)]
    # It has ended and begun anew meanwhile, though it looks as before: its producer may be fenced.
    assert reconcile({TASK: Desired(COMMAND, since=5)}, {TASK: running}) == [Stop(TASK)]


def test_pause_resume_and_drain_are_told_once() -> None:
    running = Running(COMMAND, Phase.RUNNING)
    assert reconcile({TASK: Desired(COMMAND, paused=True)}, {TASK: running}) == [Tell(TASK, Pause())]
    assert reconcile({TASK: Desired(COMMAND)}, {TASK: replace(running, paused=True)}) == [Tell(TASK, Resume())]
    assert reconcile({TASK: Desired(COMMAND, drain=True)}, {TASK: running}) == [Tell(TASK, Drain())]
    assert reconcile({TASK: Desired(COMMAND, drain=True)}, {TASK: replace(running, drain=True)}) == []


def test_what_failed_stays_until_somebody_restarts_it() -> None:
    assert reconcile({TASK: Desired(COMMAND)}, {TASK: Running(COMMAND, Phase.FAILED)}) == []


def test_target_states_decide_what_is_desired() -> None:
    entry = ConnectorEntry({"a": "b"}, task_configs=({"t": "0"}, {"t": "1"}), applied={"a": "before"})
    started = units_of("c", entry, {})
    assert set(started) == {CONNECTOR, TASK, Unit("c", 1)}
    assert started[CONNECTOR].command == RunConnector("c", {"a": "b"}, {})
    assert started[TASK].command == RunTask("c", 0, {"t": "0"}, {"a": "before"}, {}, paused=False)
    paused = units_of("c", replace(entry, target=TargetState.PAUSED), {}, drains=True)
    assert set(paused) == {TASK, Unit("c", 1)}
    assert all(item.paused and item.drain for item in paused.values())
    assert units_of("c", replace(entry, target=TargetState.STOPPED), {}) == {}


def test_desired_units_follow_their_connectors_and_stay_the_same_objects_until_then() -> None:
    units, worker = DesiredUnits({"w": "1"}), {"w": "1"}
    one, two = (ConnectorEntry({"a": name}, task_configs=({"t": name},), applied={"a": name}) for name in "12")
    first = units.of({"one": one, "two": two}, frozenset())
    assert first == units_of("one", one, worker) | units_of("two", two, worker)
    changed = replace(two, config={"a": "3"})
    second = units.of({"one": one, "two": changed}, frozenset({"one"}))
    assert second == units_of("one", one, worker, drains=True) | units_of("two", changed, worker)
    third = units.of({"one": one}, frozenset({"one"}))
    assert {unit: id(desired) for unit, desired in third.items()} == {
        unit: id(desired) for unit, desired in second.items() if unit.connector == "one"
    }
    assert units.of({"one": one, "two": two}, frozenset()) == first


units = st.builds(Unit, st.sampled_from("abc"), st.integers(-1, 2))
commands = st.builds(RunTask, st.just("c"), st.just(0), st.fixed_dictionaries({"v": st.sampled_from("12")}),
                     st.just({}), st.just({}), st.just(False))  # fmt: skip
numbers = st.integers(0, 2)
desires = st.dictionaries(units, st.builds(Desired, commands, st.booleans(), st.booleans(), numbers))
phases = st.sampled_from([Phase.RUNNING, Phase.PAUSED])
worlds = st.dictionaries(units, st.builds(Running, commands, phases, since=numbers))


@given(desires, worlds)
def test_carrying_out_the_actions_comes_to_rest_at_what_is_desired(
    desired: dict[Unit, Desired], running: dict[Unit, Running]
) -> None:
    for _ in range(4):
        for action in reconcile(desired, running):
            match action:
                case Start(unit, wanted):
                    assert unit not in running, "a unit is never started twice"
                    running[unit] = Running(wanted.command, Phase.RUNNING, wanted.paused, since=wanted.since)
                case Stop(unit):
                    del running[unit]
                case Tell(unit, TakeConfig(config)):
                    taken = replace(COMMAND, config=config)
                    running[unit] = replace(running[unit], command=taken)
                case Tell(unit, Drain()):
                    running[unit] = replace(running[unit], drain=True)
                case Tell(unit, command):
                    running[unit] = replace(running[unit], paused=isinstance(command, Pause))
    assert reconcile(desired, running) == []
    assert running.keys() == desired.keys()
    assert all(running[unit].command == desired[unit].command for unit in desired)
