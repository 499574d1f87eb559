"""However hostile a record or a configuration is, a transformation takes some twice the time for twice as much."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from connect.config import invalid_value
from connect.data import SourceBatch, SourceRecord, ValueColumn
from connect.errors import ConfigError, DataError
from connect.internals.java.regex import valid_java_regex
from connect.transforms.cast import Cast
from connect.transforms.extract_field import ExtractField
from connect.transforms.fields.field_path import FieldTree, parse_field_path
from connect.transforms.fields.json_path import JsonPath
from connect.transforms.regex_router import RegexRouter
from equipment.growth import assert_grows_evenly


def hostile(unit: str, before: str = "", after: str = "") -> Any:
    return lambda size: before + unit * size + after


def made(kind: Any, **props: str) -> Any:
    """A transformation, from the options by their names with underscores."""
    options = {name.replace("_", "."): value for name, value in props.items()}
    return kind(kind.config_class.parse(options))


def source_record(value: Any, topic: str = "orders") -> SourceRecord:
    return SourceRecord(topic=topic, value=value, source_partition={}, source_offset={})


def nested(size: int) -> Any:
    value: Any = 1
    for _ in range(size):
        value = {"a": value}
    return value


@pytest.mark.growth
@pytest.mark.parametrize(
    "make",
    [
        hostile("\\'", "$[?('"),
        hostile("\\'", "$[?(@.a == '", "')]"),
        hostile("\\\"'", "$[?("),
        hostile("[?", "$"),
        hostile("..[?(@.a)]", "$"),
        hostile("[?(@.a)]", "$"),
        hostile("[?(@['a]'])]", "$"),
        hostile(".[", "$"),
        hostile(".", "$"),
        hostile(".a", "$"),
        hostile("['a']", "$"),
        hostile("(", "$[?("),
        hostile(" ", "$"),
        hostile("1", "$[", "]"),
    ],
)
def test_json_paths_are_parsed(make: Any) -> None:
    def parse(text: str) -> None:
        with suppress(ConfigError):
            JsonPath(text, "filter.condition")

    assert_grows_evenly(parse, make, 500)


@pytest.mark.growth
@pytest.mark.parametrize(
    ("path", "make", "size"),
    [
        ("$..a", nested, 40),
        ("$..a", lambda size: [{"a": number} for number in range(size)], 1000),
        ("$.*.a", lambda size: {str(number): {"a": number} for number in range(size)}, 1000),
        ("$[?(@.a == 1)]", lambda size: [{"a": number} for number in range(size)], 1000),
        ("$..[?(@.a)]", lambda size: [{"a": number} for number in range(size)], 1000),
        ("$.a[?(@.b)].b", lambda size: {"a": [{"b": 1}, {"c": 1}] * size}, 500),
        ("$[?(@.a == 'x')]", lambda size: {"a": "x" * size}, 20_000),
        ("$[-1]", lambda size: list(range(size)), 20_000),
    ],
)
def test_values_that_a_json_path_selects_from(path: str, make: Any, size: int) -> None:
    json_path = JsonPath(path, "filter.condition")

    def select(value: Any) -> None:
        with suppress(DataError):
            json_path.select(value)
            json_path.reaches(value)

    assert_grows_evenly(select, make, size)


@pytest.mark.growth
@pytest.mark.parametrize("make", [nested, lambda size: [nested(size)] * 3])
def test_values_too_deep_for_a_json_path_are_refused_soon(make: Any) -> None:
    json_path = JsonPath("$..a..a", "filter.condition")

    def refuse(value: Any) -> None:
        with pytest.raises(DataError, match="cannot be applied"):
            json_path.select(value)

    assert_grows_evenly(refuse, make, 200)


@pytest.mark.growth
@pytest.mark.parametrize(
    "make",
    [
        lambda size: "(?i)" * size + "|" * size,
        lambda size: "(?i)|(?-i)|" * size,
        hostile("(?i)|", "(", ")"),
        hostile("\\Q"),
        hostile("\\Qa\\E"),
        hostile("\\p{"),
        hostile("a", "\\p{"),
        hostile("a", "(?<"),
        hostile("(?<a"),
        hostile("\\k<"),
        hostile("i", "(?"),
        hostile("("),
        hostile("()"),
        hostile("a|"),
        hostile("["),
        hostile("[a]"),
        hostile("a{99999999999}"),
        hostile("\\x{41}"),
        hostile("4", "\\x{", "}"),
    ],
)
def test_regexes_are_translated(make: Any) -> None:
    def translate(text: str) -> None:
        with suppress(ConfigError):
            valid_java_regex("regex", text)

    assert_grows_evenly(translate, make, 400)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(" * 5000 + ")" * 5000, "nested too deeply"),
        ("a{99999999999}", "repetition number is too large"),
        ("\\x{110000}", "not in range"),
    ],
)
def test_a_regex_that_python_cannot_compile_is_refused_as_a_config(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        valid_java_regex("regex", text)
    assert str(refused.value).startswith(str(invalid_value("regex", text, "Invalid regex: ")))


@pytest.mark.parametrize(
    ("text", "topic", "matches"),
    [
        ("(?i)a|b", "B", True),
        ("(?i)a|(?-i)b|c", "C", False),
        ("(?i)a|(?-i)b|(?i)c", "C", True),
        ("((?i)a|b)c", "BC", False),
        ("((?i)a|b)c", "Bc", True),
        ("(?x)a |(?i) b|c d", "CD", True),
    ],
)
def test_flags_hold_for_the_alternatives_that_follow(text: str, topic: str, matches: bool) -> None:
    router = made(RegexRouter, regex=text, replacement="routed")
    routed = router.apply(source_record(1, topic))
    assert routed is not None
    assert routed.topic == ("routed" if matches else topic)


@pytest.mark.growth
@pytest.mark.parametrize(
    "replacement", [hostile("$1"), hostile("1", "$1"), hostile("\\a"), hostile("${n}"), hostile("$"), hostile("${")]
)
def test_topics_are_routed(replacement: Any) -> None:
    def router(size: int) -> RegexRouter:
        return made(RegexRouter, regex="(?<n>o)rders-(.*)", replacement=replacement(size))

    def by_row(router: RegexRouter) -> None:
        with suppress(DataError):
            router.apply(source_record(1, topic="orders-1"))

    def topics(size: int) -> list[SourceBatch]:
        return [
            SourceBatch.of(f"orders-{number}", ValueColumn([1]), source_partition={}, source_offsets=[{}])
            for number in range(size)
        ]

    assert_grows_evenly(by_row, router, 1000)
    plain = made(RegexRouter, regex="(o)rders-(.*)", replacement="$2")
    assert_grows_evenly(lambda batches: [plain.apply_batch(batch) for batch in batches], topics, 1000)


@pytest.mark.growth
@pytest.mark.parametrize(
    "make",
    [
        hostile("."),
        hostile("a."),
        hostile("`"),
        hostile("`.`"),
        hostile("\\`.", "`"),
        hostile("\\`.", "`", "`"),
        hostile("`a.b`."),
        hostile("\\`"),
    ],
)
def test_field_paths(make: Any) -> None:
    def parse(text: str) -> None:
        with suppress(ConfigError):
            path = parse_field_path(text, "V2")
            FieldTree.of([(path, 1)])
            path.read({"a": {"": 1}})

    assert_grows_evenly(parse, make, 4000)


@pytest.mark.growth
@pytest.mark.parametrize("depth", [1, 20])
def test_fields_by_path(depth: int) -> None:
    steps = ".".join(["a"] * depth)
    cast = made(Cast.Value, spec=f"{steps}:string", field_syntax_version="V2")
    extract = made(ExtractField.Value, field=steps, field_syntax_version="V2")

    def records(size: int) -> list[SourceRecord]:
        return [source_record(nested(depth)) for _ in range(size)]

    for transformation in (cast, extract):
        assert_grows_evenly(lambda given, each=transformation: [each.apply(record) for record in given], records, 300)


@pytest.mark.growth
def test_many_field_paths() -> None:
    def cast(paths: str) -> None:
        transformation = made(Cast.Value, spec=paths, field_syntax_version="V2")
        transformation.apply(source_record({"a": {"b": 1}}))

    assert_grows_evenly(cast, lambda size: ",".join(f"a.b{number}.c:string" for number in range(size)), 300)
