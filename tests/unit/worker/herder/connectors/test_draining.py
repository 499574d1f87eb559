from worker.herder.connectors.drains import Drainable, Draining, draining
from worker.supervisor.lifecycle import Phase

RUNNING, DRAINED, FAILED = Phase.RUNNING, Phase.DRAINED, Phase.FAILED


def source(*tasks: Phase | None, stopped: bool = False) -> Drainable:
    return Drainable(is_source=True, stopped=stopped, connector=RUNNING, tasks=tasks)


def sink(*tasks: Phase | None, stopped: bool = False) -> Drainable:
    return Drainable(is_source=False, stopped=stopped, connector=RUNNING, tasks=tasks)


def test_sinks_wait_for_all_sources() -> None:
    assert draining({"a": source(DRAINED), "b": source(RUNNING), "s": sink(RUNNING)}).sinks == frozenset()
    assert draining({"a": source(DRAINED), "b": source(stopped=True), "s": sink(RUNNING)}).sinks == {"s"}


def test_a_failed_source_holds_no_sink_back() -> None:
    decision = draining({"a": source(FAILED), "s": sink(RUNNING)})
    assert decision == Draining(frozenset({"s"}), frozenset(), finished=False)


def test_a_connector_stops_when_all_its_tasks_are_drained() -> None:
    assert draining({"a": source(DRAINED, RUNNING)}).stop == frozenset()
    assert draining({"a": source(DRAINED, DRAINED)}).stop == {"a"}
    assert draining({"a": source(DRAINED, None)}).stop == frozenset()


def test_a_connector_without_tasks_is_drained_once_it_has_said_so() -> None:
    assert draining({"a": Drainable(is_source=True, stopped=False, connector=RUNNING, tasks=None)}).stop == frozenset()
    assert draining({"a": source()}).stop == {"a"}


def test_all_is_finished_when_everything_stopped_or_failed() -> None:
    assert not draining({}).finished
    assert not draining({"a": source(DRAINED)}).finished
    assert draining({"a": source(stopped=True), "s": sink(FAILED)}).finished
    connector_failed = Drainable(is_source=True, stopped=False, connector=FAILED, tasks=None)
    assert draining({"a": connector_failed}).finished
