"""A config class: declared once, parsed, constructed, compared, shown."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, ClassVar, Literal

import pytest

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    Config,
    ConfigRuleError,
    InvalidConfigError,
    Long,
    Password,
    PluginName,
    Short,
    at_least,
    connector_name,
    non_empty,
    option,
)
from connect.errors import ConfigError


class Boundary(StrEnum):
    POLL = "poll"
    INTERVAL = "interval"


class FileSourceConfig(Config):
    """Reads a file."""

    REASON: ClassVar[str] = "not an option"

    file: str | None = option(default=None, importance=HIGH, doc="File to read.")
    topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish to.")
    batch_size: int = option(default=2000, importance=LOW, validator=at_least(1), doc="Most records per poll.")


class EveryTypeConfig(Config):
    text: str = option(default="x", importance=LOW, doc="A text.")
    small: Short = option(default=3, importance=LOW, doc="A short.")
    large: Long | None = option(default=None, importance=LOW, validator=at_least(0), doc="A long.")
    ratio: float = option(default=0.5, importance=LOW, doc="A double.")
    enabled: bool = option(default=False, importance=LOW, doc="A boolean.")
    columns: tuple[str, ...] = option(default=(), importance=LOW, doc="A list.")
    password: Password | None = option(default=None, importance=LOW, doc="A password.")
    converter: PluginName = option(default="JsonConverter", importance=LOW, doc="A class.")
    mode: Literal["bulk", "tail"] = option(default="bulk", importance=LOW, doc="A fixed text.", ignore_case=True)
    boundary: Boundary = option(default=Boundary.POLL, importance=LOW, doc="An enum.")
    boundaries: tuple[Boundary, ...] = option(default=(Boundary.POLL,), importance=LOW, doc="Enums.", ignore_case=True)
    levels: tuple[Literal["a", "b"], ...] = option(default=(), importance=LOW, doc="Fixed texts.")
    irregular: str = option(default="", name="ssl.Irregular_name", importance=LOW, doc="Named.")


class TopicsConfig(Config):
    topics: tuple[str, ...] = option(default=(), importance=HIGH, doc="Topics.")
    topics_regex: str = option(default="", importance=HIGH, doc="A pattern.")
    tasks_max: int = option(default=1, importance=HIGH, validator=at_least(1), doc="Tasks.")

    def check(self) -> Iterator[ConfigError]:
        if self.topics and self.topics_regex:
            yield ConfigRuleError("Both are set.", "topics", "topics.regex")
        if self.tasks_max > 8:
            yield ConfigError("tasks.max", self.tasks_max, "Too many for topics")


def test_parses_properties() -> None:
    config = FileSourceConfig.parse({"topic": " lines ", "batch.size": "10"})
    assert (config.file, config.topic, config.batch_size) == (None, "lines", 10)


@pytest.mark.parametrize(
    ("key", "text", "attribute", "value"),
    [
        ("text", " a ", "text", "a"),
        ("small", "-32768", "small", -32768),
        ("large", "9223372036854775807", "large", 2**63 - 1),
        ("ratio", "1e3", "ratio", 1000.0),
        ("enabled", "TRUE", "enabled", True),
        ("columns", "a, b", "columns", ("a", "b")),
        ("password", "s3cret", "password", Password("s3cret")),
        ("converter", "x.Y", "converter", "x.Y"),
        ("mode", "TAIL", "mode", "tail"),
        ("boundary", "interval", "boundary", Boundary.INTERVAL),
        ("boundaries", "INTERVAL,poll", "boundaries", (Boundary.INTERVAL, Boundary.POLL)),
        ("levels", "b,a", "levels", ("b", "a")),
        ("ssl.Irregular_name", "n", "irregular", "n"),
    ],
)
def test_parses_every_type(key: str, text: str, attribute: str, value: Any) -> None:
    parsed = getattr(EveryTypeConfig.parse({key: text}), attribute)
    assert parsed == value
    assert type(parsed) is type(value)


def test_defaults_have_the_annotated_types() -> None:
    config = EveryTypeConfig()
    assert config.boundary is Boundary.POLL
    assert config.boundaries == (Boundary.POLL,)
    assert config.mode == "bulk"
    assert config == EveryTypeConfig.parse({})


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({}, 'Missing required configuration "topic" which has no default value.'),
        ({"topic": ""}, "Invalid value  for configuration topic: String must be non-empty"),
        ({"topic": None}, "Null value can not be supplied as the configuration value."),
        (
            {"topic": "t", "batch.size": "x"},
            "Invalid value x for configuration batch.size: Not a number of type INT",
        ),
        (
            {"topic": "t", "batch.size": "0"},
            "Invalid value 0 for configuration batch.size: Value must be at least 1",
        ),
    ],
)
def test_one_mistake_is_the_error(props: dict[str, str | None], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        FileSourceConfig.parse(props)
    assert str(refused.value) == message
    assert refused.value.key == ("batch.size" if "batch.size" in props else "topic")


def test_several_mistakes_are_listed_once_a_key() -> None:
    with pytest.raises(InvalidConfigError) as refused:
        FileSourceConfig.parse({"batch.size": "x"})
    assert [error.key for error in refused.value.errors] == ["topic", "batch.size"]
    assert str(refused.value) == (
        "The configuration is invalid and contains the following 2 errors:\n"
        'Missing required configuration "topic" which has no default value.\n'
        "Invalid value x for configuration batch.size: Not a number of type INT"
    )


@pytest.mark.parametrize(
    "error",
    [
        ConfigRuleError("Both.", "a", "b"),
        InvalidConfigError([ConfigRuleError("x", "a"), ConfigRuleError("y", "b")]),
    ],
)
def test_errors_reach_another_process_whole(error: ConfigError) -> None:
    received = pickle.loads(pickle.dumps(error))
    assert (type(received), str(received), received.key) == (type(error), str(error), error.key)


def test_a_rule_error_names_a_key() -> None:
    with pytest.raises(TypeError, match="at least one key"):
        ConfigRuleError("Something is wrong")


def test_keywords_make_the_same_config_as_properties() -> None:
    config = FileSourceConfig(topic="t", batch_size=5)
    assert config == FileSourceConfig.parse({"topic": "t", "batch.size": "5"})
    assert config.originals == {"topic": "t", "batch.size": "5"}


def test_keywords_are_validated() -> None:
    with pytest.raises(ConfigError, match="Value must be at least 1"):
        FileSourceConfig(topic="t", batch_size=0)
    with pytest.raises(ConfigError, match="Not a number of type INT"):
        FileSourceConfig(topic="t", batch_size=2**31)
    with pytest.raises(TypeError, match="no option 'batchsize'; it has file, topic, batch_size"):
        FileSourceConfig(topic="t", batchsize=1)  # type: ignore[call-arg]


def test_originals_keep_what_was_written() -> None:
    props = {"topic": " t ", "value.converter": "J", "value.converter.schemas.enable": "false"}
    config = FileSourceConfig.parse(props)
    assert config.originals == props
    assert config.originals_with_prefix("value.converter.") == {"schemas.enable": "false"}
    assert FileSourceConfig.unknown_keys(props) == ("value.converter", "value.converter.schemas.enable")
    assert EveryTypeConfig(password=Password("p"), columns=("a", "b")).originals == {
        "password": "p",
        "columns": "a,b",
    }


def test_a_config_cannot_be_changed() -> None:
    config = FileSourceConfig(topic="t")
    with pytest.raises(AttributeError, match="make another one instead of setting topic"):
        config.topic = "u"  # type: ignore[misc]
    with pytest.raises(AttributeError, match="topic stays"):
        del config.topic
    with pytest.raises(TypeError):
        config.originals["topic"] = "u"  # type: ignore[index]


def test_equality_and_hash_are_those_of_the_options() -> None:
    one, other = (FileSourceConfig.parse({"topic": "t", "x": x}) for x in "12")
    assert one == other
    assert hash(one) == hash(other)
    assert one != FileSourceConfig(topic="u")
    assert one != "t"


def test_copies_and_pickles() -> None:
    config = FileSourceConfig.parse({"topic": "t", "x": "1"}, secret_keys={"topic"})
    for twin in (pickle.loads(pickle.dumps(config)), copy.deepcopy(config)):
        assert twin == config
        assert twin.originals == config.originals
        assert repr(twin) == repr(config)


def test_repr_hides_secrets() -> None:
    assert repr(FileSourceConfig(topic="t")) == "FileSourceConfig(file=None, topic='t', batch_size=2000)"
    assert "password=[hidden]" in repr(EveryTypeConfig(password=Password("s3cret")))
    shown = repr(FileSourceConfig.parse({"topic": "s3cret"}, secret_keys={"topic"}))
    assert shown == "FileSourceConfig(file=None, topic=[hidden], batch_size=2000)"


def test_subclasses_inherit_and_change_options() -> None:
    class TailConfig(FileSourceConfig):
        batch_size: int = option(default=10, importance=MEDIUM, doc="Fewer.")
        name: str = option(importance=HIGH, validator=connector_name, doc="The connector's name.")

    assert [key.name for key in TailConfig.definitions()] == ["file", "topic", "batch.size", "name"]
    assert TailConfig(topic="t", name="n").batch_size == 10
    assert FileSourceConfig(topic="t").batch_size == 2000
    assert TailConfig(topic="t", name="n") != FileSourceConfig(topic="t", batch_size=10)


def test_rules_over_several_keys() -> None:
    assert TopicsConfig.parse({"topics": "a"}).topics == ("a",)
    with pytest.raises(ConfigRuleError) as refused:
        TopicsConfig.parse({"topics": "a", "topics.regex": "b"})
    assert (str(refused.value), refused.value.keys) == ("Both are set.", ("topics", "topics.regex"))


def test_a_broken_rule_is_shown_at_each_of_its_keys() -> None:
    values = {
        value.name: value for value in TopicsConfig.validate({"topics": "a", "topics.regex": "b", "tasks.max": "9"})
    }
    assert values["topics"].errors == values["topics.regex"].errors == ("Both are set.",)
    assert values["tasks.max"].errors == ("Invalid value 9 for configuration tasks.max: Too many for topics",)


def test_a_check_ends_where_it_reads_a_refused_value() -> None:
    with pytest.raises(InvalidConfigError) as refused:
        TopicsConfig.parse({"topics": "a", "topics.regex": "b", "tasks.max": "x"})
    assert [error.key for error in refused.value.errors] == ["tasks.max", "topics"]


def test_a_check_may_raise() -> None:
    class RaisingConfig(FileSourceConfig):
        def check(self) -> Iterator[ConfigError]:
            if self.topic == "several":
                raise InvalidConfigError([ConfigRuleError("one", "topic"), ConfigRuleError("two", "file")])
            TopicsConfig(topics=("a",), topics_regex="b")
            yield from super().check()

    assert [value.errors for value in RaisingConfig.validate({"topic": "several"})] == [
        ("two",),
        ("one",),
        (),
    ]
    several = {value.name: value.errors for value in RaisingConfig.validate({"topic": "t"})}
    assert several["topics"] == several["topics.regex"] == ("Both are set.",)


def test_a_check_cannot_tell_a_secret() -> None:
    class LeakyConfig(EveryTypeConfig):
        def check(self) -> Iterator[ConfigError]:
            yield ConfigRuleError(f"{self.originals['password']} and {self.text} are bad", "password", "text")

    with pytest.raises(ConfigRuleError) as refused:
        LeakyConfig.parse({"password": " abc ", "text": "abcd"}, secret_keys={"text"})
    assert "abc" not in str(refused.value)
    assert refused.value.keys == ("password", "text")


class Pacing(Config):
    flush_size: int = option(default=5, importance=LOW, validator=at_least(1), doc="Most records.")
    flush_bytes: int = option(name="flush.b", default=9, importance=LOW, dependents=["flush.size"], doc="Most bytes.")


class BelowPrefix(Pacing, key_prefix="engine."):
    width: int = option(default=1, importance=LOW, doc="More.")


class FurtherBelow(BelowPrefix):
    depth: int = option(default=2, importance=LOW, doc="Most.")


def test_the_options_of_a_class_below_a_prefix() -> None:
    assert [key.name for key in FurtherBelow.definitions()] == [
        "engine.flush.size",
        "engine.flush.b",
        "engine.width",
        "engine.depth",
    ]
    config = FurtherBelow.parse({"engine.flush.size": "7", "flush.size": "8", "engine.depth": "3"})
    assert (config.flush_size, config.flush_bytes, config.depth) == (7, 9, 3)
    key = FurtherBelow.definitions()[1]
    assert (key.display_name, key.dependents) == ("engine.flush.b", ("engine.flush.size",))
    with pytest.raises(ConfigError, match=r"for configuration engine\.flush\.size: Value must be at least 1"):
        FurtherBelow.parse({"engine.flush.size": "0"})
    assert [key.name for key in Pacing.definitions()] == ["flush.size", "flush.b"]
