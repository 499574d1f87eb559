"""What is said of a download that is under way."""

from __future__ import annotations

import pytest

from connect.internals.jvm.download import so_far


@pytest.mark.parametrize(
    ("megabytes", "sizes", "text"),
    [
        (0.0, [], "0 MB, 0.0 MB/s"),
        (30.0, [], "30 MB, 3.0 MB/s"),
        (30.0, [40_000_000, 20_000_000], "[######..............] 30 of about 90 MB, 3.0 MB/s, about 20 s to go"),
        (30.0, [40_000_000, 20_000_000, 15_000_000], "[########............] 30 of 75 MB, 3.0 MB/s, about 15 s to go"),
        (75.0, [40_000_000, 20_000_000, 15_000_000], "[####################] 75 of 75 MB, 7.5 MB/s, about 0 s to go"),
    ],
)
def test_it_has_the_rate_and_what_remains(megabytes: float, sizes: list[int], text: str) -> None:
    assert so_far(megabytes, 10.0, sizes, 3) == text
