"""Filters and policies: broken expressions, other packages' classes, records that cannot be read."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError, DataError
from connectors.mirror.filters import config_property_filter, group_filter, topic_filter
from connectors.mirror.policies import replication_policy
from connectors.mirror.records import Checkpoint, OffsetSync, text_bytes
from connectors.mirror.selection import GroupSelection, LeftOut


def test_a_broken_expression_names_its_key() -> None:
    with pytest.raises(ConfigError, match=r"topics\.exclude.*regular expressions"):
        topic_filter({"topics.exclude": "a(,b"})


@pytest.mark.parametrize("make", [topic_filter, group_filter, config_property_filter, replication_policy])
def test_classes_are_found_by_all_their_names_and_no_module_is_imported_for_others(make: object) -> None:
    assert callable(make)
    key = {
        topic_filter: "topic.filter.class",
        group_filter: "group.filter.class",
        config_property_filter: "config.property.filter.class",
        replication_policy: "replication.policy.class",
    }[make]
    own = type(make({}))
    for name in (f"org.apache.kafka.connect.mirror.{own.__name__}", own.__name__, f"{own.__module__}.{own.__name__}"):
        assert type(make({key: name})) is own
    with pytest.raises(ConfigError, match=rf"{key}.*os\.path\.join.*{own.__name__}.*sluice\.mirror"):
        make({key: "os.path.join"})


def test_old_names_are_used_unless_the_new_ones_are_set() -> None:
    topics = topic_filter({"topics": "a.*", "topics.blacklist": "ab"})
    assert [topics.should_replicate_topic(name) for name in ("aa", "ab", "mm2.internal")] == [True, False, False]
    groups = group_filter({"groups.blacklist": "g.*"})
    assert [groups.should_replicate_group(name) for name in ("g1", "connect-x")] == [False, True]
    settings = config_property_filter({"config.properties.blacklist": "retention.*"})
    assert not settings.should_replicate_config_property("retention.ms")
    both = topic_filter({"topics.exclude": "b", "topics.blacklist": "a"})
    assert [both.should_replicate_topic(name) for name in "ab"] == [True, False]
    with pytest.raises(ConfigError, match=r"topics\.blacklist.*regular expressions"):
        topic_filter({"topics.blacklist": "a(,b"})


def test_strimzis_policy_is_the_one_that_keeps_names() -> None:
    policy = replication_policy(
        {
            "replication.policy.class": "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
            "source.cluster.alias": "A",
        }
    )
    assert policy.format_remote_topic("A", "orders") == "orders"
    assert policy.topic_source("orders") == "A"


def test_settings_that_belong_to_a_cluster_are_left_alone() -> None:
    chosen = config_property_filter({})
    assert chosen.should_replicate_config_property("retention.ms")
    assert not chosen.should_replicate_config_property("min.insync.replicas")
    assert not chosen.should_replicate_source_default("retention.ms")
    assert config_property_filter({"use.defaults.from": "source"}).should_replicate_source_default("retention.ms")


def test_why_a_group_is_left_out() -> None:
    selection = GroupSelection.configured({"topics": "orders", "groups": "g.*"})
    assert selection.left_out("g1", ["orders", "x"]) is None
    assert selection.left_out("g1", ["x"]) is LeftOut.NO_OFFSETS
    assert selection.left_out("h1", ["orders"]) is LeftOut.FILTER


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"\x00\x01t\x00\x00\x00\x00", b"\x00" * 15),
        (b"\x00\x01t\x00\x00\x00\x00", b"\x00" * 17),
        (b"\x00\x01\xff\x00\x00\x00\x00", b"\x00" * 16),
        (b"\xff\xfft", b"\x00" * 16),
    ],
)
def test_bytes_that_are_no_offset_sync_are_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DataError, match="offset sync"):
        OffsetSync.decode(key, value)


def test_a_checkpoint_of_another_version_is_refused() -> None:
    checkpoint = Checkpoint("g", "t", 0, 1, 2)
    with pytest.raises(DataError, match="version 1"):
        Checkpoint.decode(checkpoint.key(), b"\x00\x01" + checkpoint.value()[2:])
    with pytest.raises(DataError, match="shorten"):
        text_bytes("x" * 40_000)
