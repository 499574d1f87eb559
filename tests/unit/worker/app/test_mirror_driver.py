"""The driver of a mirror: a process for each flow, started again when it ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from connectors.mirror.flows import Flow, Flows
from equipment.mirror_recordings import mirror_vectors
from equipment.waiting import wait_until
from rest.mirror_driver import FlowState
from worker.app.mirror.connectors import connector_keys
from worker.app.mirror.driver import Driver, End, Restart, after
from worker.app.mirror.flow import REFUSED, Relay, worker_properties

_FILE = {
    "clusters": "A,B",
    "A.bootstrap.servers": "a:1",
    "B.bootstrap.servers": "b:1",
    "A->B.enabled": "true",
    "B->A.enabled": "true",
}
_UP = "import os, sys; print(f'http://{os.getpid()}', flush=True); sys.stdin.read()"


def _flows() -> tuple[Flow, ...]:
    return Flows(_FILE, connector_keys()).running()


@contextmanager
def _driver(script: str) -> Iterator[tuple[Driver, Future[int]]]:
    status: Future[int] = Future()
    driver = Driver(_flows(), lambda _: [sys.executable, "-c", script], status)
    driver.start()
    try:
        yield driver, status
    finally:
        driver.close()


def _pids(driver: Driver) -> list[int]:
    return [int(state.url.removeprefix("http://")) for state in driver.states() if state.url is not None]


def _both(driver: Driver) -> list[int]:
    return wait_until("both are up", lambda: pids if len(pids := _pids(driver)) == 2 else [])


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_flow_that_is_killed_is_started_again_and_the_others_go_on() -> None:
    with _driver(_UP) as (driver, _):
        first, second = _both(driver)
        os.kill(first, signal.SIGKILL)
        wait_until("its end is noticed", lambda: first not in _pids(driver))
        pids = _both(driver)
        assert pids[1] == second
        assert [state.failures for state in driver.states()] == [1, 0]
    assert not any(map(_is_alive, pids))


def test_a_flow_that_is_refused_ends_the_driver() -> None:
    with _driver(f"raise SystemExit({REFUSED})") as (_, status):
        assert status.result(30) == 2


@pytest.mark.parametrize(
    ("ran", "failures", "expected"),
    [
        (0.0, 0, Restart(1.0, 1)),
        (0.0, 1, Restart(2.0, 2)),
        (0.0, 9, Restart(30.0, 10)),
        (61.0, 9, Restart(1.0, 1)),
    ],
)
def test_restarts_come_later_and_later(ran: float, failures: int, expected: Restart) -> None:
    assert after(refused=False, ran=ran, failures=failures, could_not_start=2) == expected
    assert after(refused=True, ran=ran, failures=failures, could_not_start=2) == End(2)


@pytest.mark.parametrize("case", mirror_vectors("mm2_properties"))
def test_the_keys_of_our_connectors_compile_files_as_in_java(case: dict[str, Any]) -> None:
    flows = Flows(case["mm2.properties"], connector_keys())
    for expected in case["flows"]:
        flow = flows.flow(*expected["flow"].split("->"))
        assert flow.connectors == {name: expected[name] for name in flow.connectors}


def test_a_worker_listens_for_other_nodes_unless_the_file_has_listeners() -> None:
    flow = _flows()[0]
    alone = worker_properties(flow, _FILE, None)
    assert alone["listeners"] == "http://:0"
    assert alone["admin.listeners"] == ""
    assert alone["config.history.topic"] == "mm2-configs-history.A.internal"
    behind = worker_properties(flow, _FILE, Relay("https", "node1", 8443, public=True))
    assert behind["listeners"] == "http://127.0.0.1:0"
    advertised = {key: value for key, value in behind.items() if key.startswith("rest.advertised")}
    assert advertised == {
        "rest.advertised.host.name": "node1",
        "rest.advertised.port": "8443",
        "rest.advertised.listener": "https",
    }


def test_states_are_told_as_users_see_them() -> None:
    state = FlowState("A", "B", "/A/B", None, 3)
    assert state.document() == {"flow": "A->B", "path": "/A/B", "state": "STARTING", "failures": 3}
