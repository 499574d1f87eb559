"""A record that a source gives up is kept whatever is in it."""

from __future__ import annotations

from typing import Any

import pytest

from connect.data import SourceRecord
from connect.errors import DataError
from connect.internals.chain.tolerance import Failure, Stage
from worker.runtime.dead_letters.queue import DeadLetterQueue


class KeepingProducer:
    """A producer that keeps what it is given, and acknowledges it."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []

    def produce(self, _topic: str, value: bytes | None, _key: bytes | None, **_others: Any) -> None:
        self.values.append(value)

    def poll(self, _timeout: float) -> int:
        return 0


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ({"wei": 12345678901234567890123}, b'{"wei": 12345678901234567890123}'),
        ({"half": "\ud83d"}, b'{"half": "\\ud83d"}'),
        ({"n": 1}, b'{"n":1}'),
    ],
)
def test_what_a_source_read_is_kept_as_json(value: Any, kept: bytes) -> None:
    producer: Any = KeepingProducer()
    record = SourceRecord("t", value, source_partition={}, source_offset={})
    DeadLetterQueue(producer, "dlq", None).report(
        Failure(Stage.VALUE_CONVERTER, "a.B", DataError("it does not fit"), record=record)
    )
    assert producer.values == [kept]
