"""Records for the tests of transformations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from connect.data import NO_HEADERS, Headers, Schema, SinkRecord


@pytest.fixture
def record() -> Callable[..., SinkRecord]:
    """Make a record consumed from the topic ``orders``; name what matters."""

    def make(
        value: Any = None, schema: Schema | None = None, *, headers: Headers = NO_HEADERS, **others: Any
    ) -> SinkRecord:
        given: dict[str, Any] = {"topic": "orders", "partition": 2, "timestamp": 1_700_000_000_123, "offset": 7}
        given |= {"original_topic": "orders", "original_partition": 2, "original_offset": 7}
        return SinkRecord(value=value, value_schema=schema, headers=headers, **(given | others))

    return make
