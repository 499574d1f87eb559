"""Keys of MirrorMaker's file that have no effect: what is to be written in their place has one."""

from __future__ import annotations

import pytest

from connectors.mirror.config.checkpoint import MirrorCheckpointConfig
from connectors.mirror.config.source import MirrorSourceConfig
from connectors.mirror.flows import Flows
from connectors.mirror.lost_keys import lost_keys, old_names_in
from worker.app.mirror.connectors import connector_keys, worker_keys

_FILE = {
    "clusters": "gcp, azure",
    "gcp.bootstrap.servers": "a:1",
    "azure.bootstrap.servers": "b:1",
    "azure->gcp.enabled": "false",
    "gcp->azure.enabled": "true",
}


def _lost(*keys: str, **more: str) -> list[str]:
    props = {**_FILE, **dict.fromkeys(keys, "x"), **{key.replace("_", "."): value for key, value in more.items()}}
    found = lost_keys(props, Flows(props, connector_keys()), connector_keys(), worker_keys())
    return [line.replace(" has no effect: ", "|") for line in found]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("topic.blacklist", "topics.exclude"),
        ("group.blacklist", "groups.exclude"),
        ("topics.whitelist", "topics"),
        ("topic.whitelist", "topics"),
        ("groups.whitelist", "groups"),
        ("whitelist", "topics"),
        ("blacklist", "topics.exclude"),
        ("config.property.blacklist", "config.properties.exclude"),
        ("topic.exclude", "topics.exclude"),
        ("topicsPattern", "topics"),
        ("topics.regex", "topics"),
        ("groupsBlacklistPattern", "groups.exclude"),
        ("sync.topics.configs.enabled", "sync.topic.configs.enabled"),
        ("sync.groups.offsets.enabled", "sync.group.offsets.enabled"),
        ("emit.checkpoint.interval.seconds", "emit.checkpoints.interval.seconds"),
        ("offset.syncs.topic.replication.factor", "offset-syncs.topic.replication.factor"),
        ("task.max", "tasks.max"),
        ("tasksMax", "tasks.max"),
        ("replication.policy.seperator", "replication.policy.separator"),
        ("mirror.gap.polcy", "mirror.gap.policy"),
        ("status.storage.topci", "status.storage.topic"),
        ("gcp->azure.topic.blacklist", "gcp->azure.topics.exclude"),
        ("gcp->azure.task.max", "gcp->azure.tasks.max"),
        ("azure.ofset.flush.interval.ms", "azure.offset.flush.interval.ms"),
        ("offset.flush.intervall.ms", "azure.offset.flush.interval.ms"),
    ],
)
def test_a_misspelt_key_is_told_with_one_that_has_an_effect(written: str, meant: str) -> None:
    assert _lost(written) == [f"{written}|did you mean {meant}?"]
    assert _lost(meant) == []


def test_a_key_of_workers_belongs_to_the_target() -> None:
    of_workers = "it is a key of workers, which have the alias of their target: write"
    assert _lost("offset.flush.interval.ms", "group.id") == [
        f"group.id|{of_workers} azure.group.id",
        f"offset.flush.interval.ms|{of_workers} azure.offset.flush.interval.ms",
    ]
    assert _lost("gcp->azure.offset.flush.interval.ms") == [
        "gcp->azure.offset.flush.interval.ms|it is a key of workers, so write azure.offset.flush.interval.ms"
    ]
    assert _lost("azure.offset.flush.interval.ms", "azure.group.id") == []


def test_a_key_of_connectors_belongs_to_flows() -> None:
    assert _lost("gcp.topics", "azure.sync.topics.configs.enabled") == [
        "azure.sync.topics.configs.enabled|did you mean sync.topic.configs.enabled, or "
        "gcp->azure.sync.topic.configs.enabled for one flow?",
        "gcp.topics|it is a key of connectors, so write topics, or gcp->azure.topics for one flow",
    ]


def test_a_client_setting_needs_its_cluster_and_its_client() -> None:
    kind = "a client setting needs the alias of its cluster and the kind of the client, as in"
    assert _lost("fetch.min.bytes", "linger.ms", "producer.linger.ms") == [
        f"fetch.min.bytes|{kind} gcp.consumer.fetch.min.bytes",
        f"linger.ms|{kind} azure.producer.linger.ms",
        "producer.linger.ms|a client setting needs the alias of its cluster, as in gcp.producer.linger.ms",
    ]


def test_a_key_that_nothing_knows_may_belong_to_a_class_of_the_file() -> None:
    assert _lost("my.filter.x", "gcp->azure.my.filter.x") == [
        "my.filter.x|remove it, or write gcp->azure.my.filter.x if a class that this flow names reads it"
    ]


def test_keys_that_have_an_effect_are_not_told() -> None:
    assert not _lost(
        *("topics", "task.shutdown.graceful.timeout.ms", "task.x", "listeners", "rest.advertised.port"),
        *("config.providers", "config.providers.file.class", "replication.policy.of.mine", "security.protocol"),
        *("ssl.truststore.location", "azure.ssl.truststore.location", "azure.consumer.max.poll.records"),
        *("topics.blacklist", "gcp->azure.topics.blacklist", "gcp->azure.consumer.max.poll.records"),
        *("gcp->azure.topic.creation.default.partitions", "gcp->azure.exactly.once.support"),
        *("azure.key.converter.schemas.enable", "azure.config.storage.replication.factor"),
    )


def test_other_connectors_have_keys_of_their_own() -> None:
    props = {**_FILE, "gcp->azure.connector.class": "FileStreamSource", "gcp->azure.topic": "t"}
    assert lost_keys(props, Flows(props, connector_keys()), connector_keys(), worker_keys()) == []


def test_old_names_that_are_used_are_told_once() -> None:
    props = {**_FILE, "topics.blacklist": "a", "groups.blacklist": "b", "gcp->azure.groups.exclude": "c"}
    assert old_names_in(Flows(props, connector_keys()).running()) == [
        "topics.blacklist is an old name of topics.exclude and is used as such. Write topics.exclude, since "
        "MirrorMaker 4 ignores topics.blacklist.",
        "groups.blacklist has no effect: it is an old name of groups.exclude, which is set as well. Remove "
        "groups.blacklist.",
    ]


def test_a_connector_warns_of_the_old_names_that_it_uses() -> None:
    clusters = {f"{end}.cluster.bootstrap.servers": "x:1" for end in ("source", "target")}
    old = {"topics.blacklist": "a", "groups.blacklist": "b", "config.properties.blacklist": "c"}
    props = {"source.cluster.alias": "A", **clusters, **old}
    told = [line.split(" ")[0] for line in MirrorSourceConfig.parse(props).warnings()]
    assert told == ["topics.blacklist", "config.properties.blacklist"]
    told = [line.split(" ")[0] for line in MirrorCheckpointConfig.parse(props).warnings()]
    assert told == ["topics.blacklist", "groups.blacklist"]
