"""Numbers, times and small charts."""

from __future__ import annotations

import pytest

from rest.ui.charts import sparkline
from rest.ui.formats import UNKNOWN, amount, duration, grouped, measured, moment, size


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (grouped(1234567), "1,234,567"),
        (grouped(9007199254740993), "9,007,199,254,740,993"),
        (grouped(1234.6), "1,235"),
        (grouped(None), UNKNOWN),
        (amount(0), "0"),
        (amount(3.14), "3.1"),
        (amount(1234.5), "1,234"),
        (amount(None), UNKNOWN),
        (measured(1234.0), "1,234"),
        (measured(0.25), "0.250"),
        (measured(None), UNKNOWN),
        (size(1023), "1,023 B"),
        (size(1536), "1.5 KiB"),
        (size(5 * 1024**4 * 1024), "5,120.0 TiB"),
        (size(None), UNKNOWN),
        (duration(3.25), "3.2 s"),
        (duration(59), "59 s"),
        (duration(120), "2 min"),
        (duration(7200), "2 h"),
        (duration(172800), "2 d"),
        (duration(None), UNKNOWN),
        (moment(0), "1970-01-01T00:00:00.000Z"),
        (moment(-1), None),
        (moment(10**18), None),
        (moment(None), None),
    ],
)
def test_figures(shown: str | None, text: str | None) -> None:
    assert shown == text


def test_a_line_begins_at_zero_and_fills_its_box() -> None:
    line = sparkline([0, 10, 5], "Lag", width=23, height=13)
    assert line is not None
    assert line.path == "M1.5 11.5L11.5 1.5L21.5 6.5"
    assert line.words == "Lag: between 0 and 10, now 5"


def test_a_line_has_a_gap_where_nothing_is_known() -> None:
    line = sparkline([1, None, 1, 1], "Rate", width=33, height=13)
    assert line is not None
    assert line.path == "M1.5 1.5M21.5 1.5L31.5 1.5"


@pytest.mark.parametrize("values", [[], [1.0], [None, 1.0, None]])
def test_one_value_is_no_line(values: list[float | None]) -> None:
    assert sparkline(values, "Rate") is None


def test_nothing_but_zeros_is_a_line_at_the_bottom() -> None:
    line = sparkline([0, 0], "Rate", width=13, height=13)
    assert line is not None
    assert line.path == "M1.5 11.5L11.5 11.5"
