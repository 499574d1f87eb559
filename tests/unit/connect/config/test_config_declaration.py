"""Mistakes in a config class are told when it is declared."""

from __future__ import annotations

from typing import Any

import pytest

from connect.config import HIGH, LOW, Config, ConfigType, Importance, Width, at_least, one_of, option


def declare(annotation: Any, declared: Any, attribute: str = "batch_size") -> type[Config]:
    return type("Sample", (Config,), {"__annotations__": {attribute: annotation}, attribute: declared})


@pytest.mark.parametrize(
    "annotation", [list[str], dict[str, str], bytes, int | str, tuple[int, ...], tuple[str, str], Any]
)
def test_a_type_no_property_is_parsed_to(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"is not the type of an option|The items of a list are"):
        declare(annotation, option(importance=LOW, doc="x"))


def test_an_unresolved_name() -> None:
    with pytest.raises(TypeError, match=r"Sample: name 'Nowhere' is not defined; annotate .* top level"):
        declare("Nowhere", option(importance=LOW, doc="x"))


@pytest.mark.parametrize(
    ("default", "rule", "message"),
    [
        (0, at_least(1), "batch_size: its own validator refuses the default: .*at least 1"),
        (None, None, r"the default is None, so annotate the option with '\| None'"),
    ],
)
def test_a_default_that_would_be_refused(default: Any, rule: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        declare(int, option(default=default, validator=rule, importance=LOW, doc="x"))


def test_an_annotated_attribute_that_is_no_option() -> None:
    with pytest.raises(TypeError, match=r"batch_size has an annotation .*: declare it with option\(...\)"):
        declare(int, 5)


def test_an_option_without_annotation() -> None:
    with pytest.raises(TypeError, match=r"Sample.topic: annotate the option"):
        type("Sample", (Config,), {"topic": option(importance=LOW, doc="x")})


def test_an_attribute_that_hides_a_method() -> None:
    with pytest.raises(TypeError, match=r"Sample.validate hides a method; .* name='validate'"):
        declare(str, option(importance=LOW, doc="x"), "validate")


def test_two_attributes_with_one_key() -> None:
    with pytest.raises(TypeError, match=r"another attribute already has the key 'a\.b'"):

        class Twice(Config):
            a_b: str = option(importance=LOW, doc="x")
            c: str = option(name="a.b", importance=LOW, doc="x")


def test_unknown_dependents() -> None:
    with pytest.raises(TypeError, match="dependent 'nowhere' is not the key of an option"):
        declare(str, option(importance=LOW, doc="x", dependents=["nowhere"]))


def test_definitions_tell_all() -> None:
    class Sample(Config):
        first: int = option(default=1, importance=LOW, doc="One.", group="Common", width=Width.SHORT)
        alone: str = option(importance=HIGH, doc="Two.", display_name="Alone", dependents=("last",))
        second: str = option(default="a", importance=LOW, doc="Three.", group="Common", validator=one_of("a", "b"))
        last: bool = option(default=True, importance=LOW, doc="Four.", group="Common", order=7, internal=True)

    keys = {key.name: key for key in Sample.definitions()}
    assert list(keys) == ["first", "alone", "second", "last"]
    assert [key.order_in_group for key in keys.values()] == [1, -1, 2, 7]
    assert [key.required for key in keys.values()] == [False, True, False, False]
    assert [key.default for key in keys.values()] == [1, None, "a", True]
    assert [key.type for key in keys.values()] == [
        ConfigType.INT,
        ConfigType.STRING,
        ConfigType.STRING,
        ConfigType.BOOLEAN,
    ]
    assert keys["alone"].display_name == "Alone"
    assert keys["first"].display_name == "first"
    assert keys["first"].width is Width.SHORT
    assert keys["alone"].importance is Importance.HIGH
    assert keys["alone"].dependents == ("last",)
    assert keys["last"].internal
    assert str(keys["second"].validator) == "[a, b]"
