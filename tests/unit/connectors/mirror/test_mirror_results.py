"""What was verified, as a record."""

from __future__ import annotations

import pytest

from connect.errors import DataError
from connectors.mirror.verification.comparison import Difference, PartitionReport
from connectors.mirror.verification.results import Verified


def test_what_was_verified_comes_back_from_its_record() -> None:
    report = PartitionReport("orders", 1, "A.orders", equal=5, difference=Difference(7, 6, "another value"))
    verified = Verified.of(report, 1_700_000_000_000, 100)
    assert verified == Verified("orders", 1, "A.orders", 1_700_000_000_000, 5, 100, 7)
    assert Verified.decode(verified.key(), verified.value()) == verified


@pytest.mark.parametrize(
    ("key", "value"), [(None, None), (b"{}", b"{}"), (b"[]", b"1"), (b'{"x":1}', b"{}"), (b"x", b"")]
)
def test_what_is_no_such_record_is_told(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DataError, match="not the record of a verification"):
        Verified.decode(key, value)
