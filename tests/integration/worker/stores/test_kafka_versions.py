"""Versions of configurations in their topic."""

from __future__ import annotations

import pytest

from equipment.brokers.topics import read_topic
from worker.config.worker import DistributedConfig
from worker.stores.versions.kafka import KafkaVersionStore
from worker.stores.versions.version import MOST_VERSIONS, Seen, Version

pytestmark = pytest.mark.integration


def version(name: str, number: int) -> Version:
    return Version(number, Seen(name, 10 * number, number, "ann", {"a": str(number)}))


def store(props: dict[str, str]) -> KafkaVersionStore:
    return KafkaVersionStore(DistributedConfig.parse(props), props)


def test_the_topic_keeps_the_last_versions_of_each_connector(props: dict[str, str]) -> None:
    one, other = store(props), store(props)
    assert (one.latest(), one.versions("c")) == ({}, []), "there is no topic yet"
    versions = [version("c", number) for number in range(1, MOST_VERSIONS + 11)]
    one.append([*versions, version("d/e", 1)], [])
    assert other.versions("c") == versions[10:]
    assert other.latest() == {"c": versions[-1], "d/e": version("d/e", 1)}
    other.append([versions[-1]], [])
    assert one.versions("c") == versions[10:], "the same version once more changes nothing"
    topic = f"{props['config.storage.topic']}-history"
    keys = {message.key() for message in read_topic(props["bootstrap.servers"], topic)}
    assert len(keys) == MOST_VERSIONS + 1, "so compaction leaves as many"
    one.append([], [versions[-1]])
    assert (other.versions("c"), list(other.latest())) == ([], ["d/e"])
    for item in (one, other):
        item.close()
