"""Source offsets with the worker and in topics of connectors' own: what is read, and what is written where and when."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from connect.errors import ConnectError
from equipment.fakes.herding import WorkedInbox
from worker.herder.inquiries import Inquiries
from worker.herder.offsets.sources import OffsetLayers, layered, may_have_own_topic
from worker.herder.requests import Request
from worker.messages import messages
from worker.messages.messages import Inquiry, OffsetPairs, Report
from worker.supervisor.notices import Answered

A, B = {"file": "a", "n": 1}, {"file": "b"}
OWN = {"name": "c", "offsets.storage.topic": "own"}


class Layers:
    """Layers over a worker's store and an own topic, both of which tell what was done to them, in order."""

    def __init__(self, own: OffsetPairs, copy: OffsetPairs) -> None:
        self.inbox, self.done = WorkedInbox(), list[Any]()
        self.own, self.copy = own, copy
        self.refuses: Callable[[OffsetPairs], bool] = lambda _: False
        self.inquiries = Inquiries(self._ask, lambda _: None)
        self.layers = OffsetLayers({}, self, self.inquiries)

    def of_connector(self, connector: str) -> Future[OffsetPairs]:
        future: Future[OffsetPairs] = Future()
        future.set_result(self.copy)
        return future

    def alter(self, connector: str, offsets: OffsetPairs) -> Future[None]:
        future: Future[None] = Future()
        if self.refuses(offsets):
            future.set_exception(ConnectError("no brokers"))
        else:
            self.done.append(("copy", offsets))
            future.set_result(None)
        return future

    def _ask(self, number: int, inquiry: Inquiry) -> None:
        report: Report = messages.DedicatedOffsets(self.own)
        if isinstance(inquiry, messages.WriteSourceOffsets):
            self.done.append(("own", inquiry.offsets))
            report = messages.SourceOffsetsWritten()
        self.inbox.post(lambda: self.inquiries.answered(Answered(number, report)))

    def read(self, config: dict[str, str]) -> OffsetPairs:
        """What is read."""
        request = self.inbox.run(lambda _: self.layers.read("c", config))
        self.inbox.work()
        return request.result(0)

    def write(self, offsets: OffsetPairs, *, own_topic: bool, transactional: bool) -> Request[None]:
        """Write these."""
        allowed = messages.SourceOffsetsAllowed(managed=True, own_topic=own_topic, transactional=transactional)
        request = self.inbox.run(lambda _: self.layers.write("c", OWN, offsets, allowed))
        self.inbox.work()
        return request


def test_the_own_topic_comes_first_however_the_members_are_ordered() -> None:
    turned = {"n": 1, "file": "a"}
    assert layered([(A, {"p": 1})], [(turned, {"p": 9}), (B, {"p": 2})]) == [(A, {"p": 1}), (B, {"p": 2})]


@pytest.mark.parametrize(
    ("config", "may"),
    [
        ({"name": "c"}, False),
        (OWN, True),
        ({"offsets.storage.topic": ""}, False),
        ({"producer.override.bootstrap.servers": "far:9092"}, True),
    ],
)
def test_only_who_may_have_a_topic_is_asked(config: dict[str, str], may: bool) -> None:
    assert may_have_own_topic(config) is may
    assert Layers([(A, {"p": 1})], [(B, {"p": 2})]).read(config) == ([(A, {"p": 1})] if may else []) + [(B, {"p": 2})]


def test_the_worker_writes_what_no_task_writes() -> None:
    layers = Layers([], [])
    offsets: OffsetPairs = [(A, {"p": 1}), (B, None)]
    layers.write(offsets, own_topic=False, transactional=False).result(0)
    assert layers.done == [("copy", offsets)]


def test_the_workers_topic_is_written_in_a_transaction_alone() -> None:
    layers = Layers([], [])
    layers.write([(A, {"p": 1}), (B, None)], own_topic=False, transactional=True).result(0)
    assert layers.done == [("own", [(A, {"p": 1}), (B, None)])]


def test_what_is_forgotten_is_forgotten_in_the_copy_first_and_what_is_kept_is_copied_last() -> None:
    layers = Layers([], [])
    layers.write([(A, {"p": 1}), (B, None)], own_topic=True, transactional=False).result(0)
    assert layers.done == [("copy", [(B, None)]), ("own", [(A, {"p": 1}), (B, None)]), ("copy", [(A, {"p": 1})])]


def test_what_cannot_be_forgotten_everywhere_is_not_forgotten() -> None:
    layers = Layers([], [])
    layers.refuses = lambda _: True
    refused = layers.write([(B, None)], own_topic=True, transactional=True)
    assert "no brokers" in str(refused.exception(0))
    assert layers.done == []


def test_a_copy_that_fails_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    layers = Layers([], [])
    layers.refuses = lambda offsets: any(offset is not None for _, offset in offsets)
    layers.write([(A, {"p": 1})], own_topic=True, transactional=False).result(0)
    assert "but not to the worker's copy: no brokers" in caplog.text


def test_nothing_is_asked_where_there_is_nothing_to_write() -> None:
    layers = Layers([], [])
    layers.write([], own_topic=True, transactional=True).result(0)
    assert layers.done == []
