"""What a leader logs about workers that have left."""

from __future__ import annotations

import logging
from concurrent.futures import Future

import pytest

from worker.config.worker import DistributedConfig
from worker.membership.coordinator import GroupMemberData
from worker.membership.leader import Leader
from worker.membership.protocol import Assignment, MemberMetadata, decode_assignment, encode_metadata
from worker.stores.config.store import ConfigSnapshot
from worker.unit import Unit

TASKS = {"a": 2, "b": 1}


class Group:
    """The rounds of a group whose leader is ``one``; every member applies its assignment."""

    def __init__(self, **props: str) -> None:
        given = {f"{kind}.storage.topic": kind for kind in ("config", "offset", "status")}
        given |= {f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")}
        self._leader = Leader(
            DistributedConfig.parse({"bootstrap.servers": "b:1", "group.id": "g", **given, **props}), self._snapshot
        )
        self._held: dict[str, frozenset[Unit]] = {}
        self._generation = 0

    @staticmethod
    def _snapshot(offset: int) -> Future[ConfigSnapshot]:
        snapshot: Future[ConfigSnapshot] = Future()
        snapshot.set_result(ConfigSnapshot(max(offset, 1), TASKS))
        return snapshot

    def round(self, *members: str) -> None:
        """Run a round of these members."""
        self._held = {name: self._held.get(name, frozenset()) for name in members}
        self._generation += 1
        data = [GroupMemberData(name, None, encode_metadata(self._metadata(name), 2)) for name in members]
        assignments = self._leader.assign("one", "sessioned", self._generation, data)
        self._leader.completed(self._generation)
        for name, encoded in assignments.items():
            assignment = decode_assignment(encoded)
            self._held[name] = self._held[name] - assignment.revoked | assignment.assigned

    def _metadata(self, name: str) -> MemberMetadata:
        url = f"http://{name}:8083/"
        return MemberMetadata(url, 1, Assignment("one", "http://one:8083/", 1, self._held[name]))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_worker_that_has_left_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    group = Group()
    group.round("one", "two")
    assert warnings(caplog) == []
    group.round("one")
    (warning,) = warnings(caplog)
    assert warning.startswith(
        "http://two:8083/ has left the group. Its 1 connector and 1 task wait for its return until 20"
    )
    group.round("one")
    assert warnings(caplog) == [warning]


def test_no_work_waits_without_a_delay(caplog: pytest.LogCaptureFixture) -> None:
    group = Group(**{"scheduled.rebalance.max.delay.ms": "0"})
    group.round("one", "two")
    group.round("one")
    assert warnings(caplog) == []
