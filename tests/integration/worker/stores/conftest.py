"""A cluster's topics, and the inboxes of its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from equipment.fakes.inbox import Inbox


@pytest.fixture
def props(bootstrap: str, topic: str) -> dict[str, str]:
    """The properties of the workers of a cluster that no other test has."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": topic,
        "key.converter": "JsonConverter",
        "value.converter": "JsonConverter",
        "config.storage.topic": f"{topic}-configs",
        "config.storage.replication.factor": "1",
        "offset.storage.topic": f"{topic}-offsets",
        "offset.storage.partitions": "3",
        "offset.storage.replication.factor": "1",
        "status.storage.topic": f"{topic}-status",
        "status.storage.partitions": "2",
        "status.storage.replication.factor": "1",
    }


@pytest.fixture
def inbox() -> Iterator[Callable[[], Inbox]]:
    """Makes inboxes."""
    inboxes: list[Inbox] = []

    def make() -> Inbox:
        inboxes.append(Inbox())
        return inboxes[-1]

    yield make
    for made in inboxes:
        made.close()
