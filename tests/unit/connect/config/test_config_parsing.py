"""Values go through text and back unchanged; wrong ones are refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.config import ConfigType, ParsedValue, Password, format_value, parse_value
from connect.config.types import display_value
from connect.errors import ConfigError

INTEGERS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
ITEMS = st.lists(st.text("ab.-é", min_size=1), min_size=1).map(tuple)


@given(
    st.one_of(
        st.tuples(st.just(ConfigType.BOOLEAN), st.booleans()),
        st.tuples(st.just(ConfigType.INT), st.integers(-(2**31), 2**31 - 1)),
        st.tuples(st.just(ConfigType.DOUBLE), st.floats(allow_nan=False)),
        st.tuples(st.just(ConfigType.LIST), ITEMS),
        st.tuples(st.just(ConfigType.STRING), st.text("ab ,=é", max_size=5).map(str.strip)),
    )
)
def test_parsing_undoes_formatting(case: tuple[ConfigType, ParsedValue]) -> None:
    config_type, value = case
    assert parse_value("k", format_value(value), config_type) == value
    assert parse_value("k", value, config_type) == value


@given(st.sampled_from(sorted(INTEGERS)), st.integers(-(2**70), 2**70))
def test_integers_have_a_width(config_type: ConfigType, number: int) -> None:
    bits = INTEGERS[config_type]
    if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        assert parse_value("k", f"{number:+}", config_type) == number
        return
    for value in (number, str(number), "9" * 5000):
        with pytest.raises(ConfigError, match=f"Not a number of type {config_type}"):
            parse_value("k", value, config_type)


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("-000", 0), ("+007", 7), ("0" * 5000 + "1", 1), (str(2**31 - 1), 2**31 - 1)]
)
def test_integers_may_have_zeros_before_them(text: str, number: int) -> None:
    assert parse_value("k", text, ConfigType.INT) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.", 1.0),
        (" .5 ", 0.5),
        ("-1E-2f", -0.01),
        ("0x1.8p1", 3.0),
        ("-Infinity", float("-inf")),
        ("1e400", float("inf")),
        ("-0x1p9999", float("-inf")),
    ],
)
def test_doubles_are_those_of_java(text: str, number: float) -> None:
    assert parse_value("k", text, ConfigType.DOUBLE) == number


@pytest.mark.parametrize("text", ["inf", "nan", "1_000", "0x1", "", ".", "1e", "٣"])
def test_python_only_numbers_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="Not a number of type DOUBLE"):
        parse_value("k", text, ConfigType.DOUBLE)


def test_only_what_java_trims_is_trimmed() -> None:
    assert parse_value("k", "\t\x00 a\u00a0\n", ConfigType.STRING) == "a\u00a0"


@pytest.mark.parametrize("config_type", list(ConfigType))
def test_null_is_null(config_type: ConfigType) -> None:
    assert parse_value("k", None, config_type) is None


@pytest.mark.parametrize(
    ("value", "config_type", "reason"),
    [
        (1, ConfigType.STRING, "Expected value to be a string, but it was a int"),
        (True, ConfigType.INT, "Expected value to be a 32-bit integer, but it was a bool"),
        (1.5, ConfigType.LONG, "Expected value to be a 64-bit integer, but it was a float"),
        (False, ConfigType.DOUBLE, "Expected value to be a double, but it was a bool"),
        (1, ConfigType.BOOLEAN, "Expected value to be either true or false"),
        ([1], ConfigType.LIST, "Expected a comma separated list."),
    ],
)
def test_values_of_another_type_are_refused(value: Any, config_type: ConfigType, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_value("k", value, config_type)
    assert str(refused.value) == f"Invalid value {display_value(value)} for configuration k: {reason}"


def test_a_password_of_the_wrong_type_is_hidden() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value \[hidden\] for .*it was a int") as refused:
        parse_value("k", 1234, ConfigType.PASSWORD)
    assert "1234" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (100.0, "100.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.9, "9999999.9"),
        (1e7, "1.0E7"),
        (-1.25e-7, "-1.25E-7"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (("a", "b"), "a,b"),
        ((), ""),
        (Password("p"), "[hidden]"),
        (None, None),
    ],
)
def test_formats_as_java_does(value: Any, text: str | None) -> None:
    assert format_value(value) == text
