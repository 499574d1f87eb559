"""What a sink task knows of its partitions, by what its client says of its group."""

from __future__ import annotations

from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

import confluent_kafka
from confluent_kafka import ConsumerGroupState

from connect.data import TopicPartition
from worker.runtime.sink.subscription import Subscription

PARTITIONS = [confluent_kafka.TopicPartition("t", number) for number in range(2)]


class Client:
    """A consumer whose group divides partitions when a test says so, within the next poll."""

    def __init__(self) -> None:
        self.tell: dict[str, Callable[[Any, Any], None]] = {}
        self.next: tuple[str, list[Any]] | None = None

    def subscribe(self, topics: list[str], **callbacks: Callable[[Any, Any], None]) -> None:
        assert topics == ["t"]
        self.tell = callbacks

    def consume(self, most: int, timeout: float) -> list[Any]:
        if self.next is not None:
            name, partitions = self.next
            self.next = None
            self.tell[name](self, partitions)
        return []

    def incremental_assign(self, partitions: list[Any]) -> None: ...

    def pause(self, partitions: list[Any]) -> None: ...

    def resume(self, partitions: list[Any]) -> None: ...


class Task:
    """A listener that takes what comes."""

    def assigned(self, partitions: Collection[TopicPartition]) -> list[confluent_kafka.TopicPartition]:
        return [confluent_kafka.TopicPartition(*partition) for partition in partitions]

    def revoked(self, partitions: Collection[TopicPartition]) -> None: ...

    def lost(self, partitions: Collection[TopicPartition]) -> None: ...

    def held(self) -> Collection[TopicPartition]:
        return ()

    def at_end(self, partition: TopicPartition, offset: int) -> None: ...


def described(group: str, seconds: float) -> Any:
    """The group's members have all partitions between them."""
    assignment = SimpleNamespace(topic_partitions=PARTITIONS)
    return SimpleNamespace(state=ConsumerGroupState.STABLE, members=[SimpleNamespace(assignment=assignment)])


def test_a_task_whose_partitions_were_taken_away_waits_for_its_group_to_say_what_it_has() -> None:
    """It has none for the moment, which is not the end of what it has to drain."""
    client: Any = Client()
    choice: Any = SimpleNamespace(
        is_pattern=False, names=("t",), partitions=lambda client: {"t": (0, 1)}, missing=lambda present: None
    )
    admin: Any = SimpleNamespace(describe_group=described, client=lambda: None)
    subscription = Subscription(client, "group", choice, Task(), admin, is_cooperative=True)

    def hears(name: str, partitions: list[Any]) -> bool:
        client.next = name, partitions
        assert subscription.consume(10, 0.1) == []
        assert subscription.consume(10, 0.1) == []
        return subscription.settled()

    assert not subscription.settled()
    assert hears("on_assign", PARTITIONS)
    assert hears("on_revoke", PARTITIONS[:1]), "it has the other one"
    assert not hears("on_revoke", PARTITIONS[1:])
    assert hears("on_assign", []), "the group has none for it"
    assert hears("on_assign", PARTITIONS)
    assert not hears("on_lost", PARTITIONS)
    assert hears("on_assign", PARTITIONS)
