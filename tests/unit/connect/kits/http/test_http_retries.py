"""Statuses, waits and rate limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.kits.http.retries import Backoff, pause_asked, retry_after, status_ranges

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "among", "not_among"),
    [
        ("404", [404], [403, 405]),
        ("200..299, 304", [200, 299, 304], [300, 303]),
        ("500-", [500, 599, 600], [499]),
        ("404,413,500-503", [404, 413, 502], [504]),
        ("299..200", [250], [300]),
        ("", [], [200]),
    ],
)
def test_ranges_of_statuses(text: str, among: list[int], not_among: list[int]) -> None:
    ranges = status_ranges(text)
    assert all(status in ranges for status in among)
    assert not any(status in ranges for status in not_among)


@pytest.mark.parametrize("text", ["4xx", "40", "4040", "-500", "200...299", "a-b"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is neither a status"):
        status_ranges(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("0", 0.0),
        (" 1.5 ", 1.5),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:50", 30.0),
        ("Tuesday, 14-Nov-23 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0.0),
        ("Tue, 14 Nov 2033 22:00:00 GMT", 86_400.0),
        ("999999999", 86_400.0),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("1e400", None),
    ],
)
def test_a_server_says_when_to_come_back(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}, NOW) == seconds
    assert retry_after({}, NOW) is None


@given(st.text(max_size=50))
def test_any_wait_is_bounded(text: str) -> None:
    for found in (retry_after({"retry-after": text}, NOW), pause_asked(_limits("0", text), NOW)):
        assert found is None or 0 <= found <= 86_400


@pytest.mark.parametrize(
    ("remaining", "reset", "seconds"),
    [
        ("0", "30", 30.0),
        ("0", str(int(NOW) + 40), 40.0),
        ("0", str(int(NOW) * 1000 + 40_000), 40.0),
        ("0", str(int(NOW) - 40), 0.0),
        ("1", "30", None),
        ("0", "tomorrow", None),
    ],
)
def test_a_rate_limit_that_is_used_up_is_waited_for(remaining: str, reset: str, seconds: float | None) -> None:
    assert pause_asked(_limits(remaining, reset), NOW) == seconds


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(1.0, 60.0)
    assert [backoff.seconds(tries, share=1.0) for tries in (1, 2, 3, 7, 1000)] == [1, 2, 4, 60, 60]
    assert backoff.seconds(1, share=0.0) == 0.5
    assert 0.5 <= backoff.seconds(1) <= 1.0
    assert Backoff(3.0, 60.0, constant=True).seconds(9) == 3.0
    assert Backoff(5.0, 1.0).seconds(4, share=1.0) == 5.0


def _limits(remaining: str, reset: str) -> dict[str, str]:
    return {"x-ratelimit-remaining": remaining, "x-ratelimit-reset": reset}
