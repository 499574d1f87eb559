"""Documents that MongoDB never takes, since they or their operations are too large: bad records, and their neighbours
are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import bson
import pytest
from pymongo.database import Database

from connect.data import SinkRecord
from connect.errors import ConnectError, RetriableError
from connect.testing.samples import sink_records

pytestmark = pytest.mark.integration

Sink = Callable[..., list[tuple[SinkRecord, Exception]]]

_MEGABYTE: Final = 1 << 20
_MODELS: Final = "com.mongodb.kafka.connect.sink.writemodel.strategy"
_IDS: Final = "com.mongodb.kafka.connect.sink.processor.id.strategy"
_BY_VALUE: Final = {
    "document.id.strategy": f"{_IDS}.PartialValueStrategy",
    "document.id.strategy.partial.value.projection.type": "AllowList",
    "document.id.strategy.partial.value.projection.list": "n,k",
}


def text(megabytes: float) -> str:
    return "x" * int(megabytes * _MEGABYTE)


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize(
    ("large", "props"),
    [
        ({"n": 1, "t": text(17)}, {}),
        ({"n": 1, "t": "x" * (16 * _MEGABYTE - len(bson.encode({"n": 1, "t": ""})))}, {}),
        ({"n": 1, "t": text(17)}, {"writemodel.strategy": f"{_MODELS}.UpdateOneDefaultStrategy"}),
        (
            {"n": 1, "k": text(9), "t": text(5)},
            {**_BY_VALUE, "writemodel.strategy": f"{_MODELS}.UpdateOneBusinessKeyTimestampStrategy"},
        ),
        (
            {"n": 1, "k": text(9), "t": text(5)},
            {**_BY_VALUE, "writemodel.strategy": f"{_MODELS}.ReplaceOneBusinessKeyStrategy"},
        ),
    ],
    ids=["document", "document-with-id", "update", "update-by-key", "replacement-by-key"],
)
def test_what_is_too_large_concerns_its_record_alone(
    large: dict[str, Any], props: dict[str, str], delivery: str, sink: Sink, documents: Database[dict[str, Any]]
) -> None:
    given = sink_records([{"n": 0, "k": ""}, large, {"n": 2, "k": ""}], topic="orders")
    ((refused, error),) = sink(given, tolerate=True, delivery=delivery, **props)
    assert refused.offset == 1
    assert "bytes" in str(error) or "size" in str(error)
    assert sorted(found["n"] for found in documents.orders.find()) == [0, 2]
    with pytest.raises(ConnectError) as failure:
        sink(given, name="strict", delivery=delivery, **props)
    assert not isinstance(failure.value, RetriableError)


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_document_that_grows_too_large_concerns_its_record_alone(
    delivery: str, sink: Sink, documents: Database[dict[str, Any]]
) -> None:
    documents.orders.insert_many([{"_id": n, "first": text(9) if n == 1 else ""} for n in range(3)])
    given = sink_records(
        [{"_id": 0, "second": "y"}, {"_id": 1, "second": text(9)}, {"_id": 2, "second": "y"}], topic="orders"
    )
    props = {"writemodel.strategy": f"{_MODELS}.UpdateOneDefaultStrategy", "delivery": delivery}
    props["document.id.strategy"] = f"{_IDS}.ProvidedInValueStrategy"
    ((refused, _),) = sink(given, tolerate=True, **props)
    assert refused.offset == 1
    assert documents.orders.count_documents({"second": "y"}) == 2
