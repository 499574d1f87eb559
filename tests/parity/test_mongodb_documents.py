"""The documents that MongoDB's own connector wrote for the same records, in ten configurations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bson import json_util

from connect.data import SinkRecord, TimestampType
from connect.errors import ConnectError
from connect.testing import run_sink
from connect.testing.contexts import ErrantRecords
from connectors.mongodb import MongoSinkConnector
from equipment.servers.mongodb import MongoServer, database_name

pytestmark = pytest.mark.integration

_RUN = json.loads((Path(__file__).parent / "data/cdc/mongodb_run.json").read_text(encoding="utf-8"))
_TIMESTAMP = 1795330560039
_UNLIKE = (
    (re.compile(r"[0-9a-f]{24}"), "OID"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
)


def _records() -> list[SinkRecord]:
    return [
        SinkRecord(
            "snk2",
            None if value is None else json.dumps(value),
            key=json.dumps(key),
            partition=0,
            timestamp=_TIMESTAMP,
            offset=offset,
            timestamp_type=TimestampType.CREATE_TIME,
            original_topic="snk2",
            original_partition=0,
            original_offset=offset,
        )
        for offset, (key, value) in enumerate(_RUN["records"])
    ]


@pytest.mark.parametrize("name", [name for name in _RUN["results"] if not name.startswith("null value")])
def test_writes_the_documents_of_the_java_connector(name: str, mongodb: MongoServer) -> None:
    recorded = _RUN["results"][name]
    database = database_name()
    props = {"name": "s", "connection.uri": mongodb.uri, "database": database, "collection": "c", **recorded["config"]}
    # Only the runs that delete saw the record without a value: the others would have failed for it.
    records = _records() if recorded["config"].get("delete.on.null.values") else _records()[:3]
    tolerates = recorded["config"].get("errors.tolerance") == "all"
    run_sink(MongoSinkConnector, props, records, errant_records=ErrantRecords(tolerate=tolerates))
    with mongodb.client() as client:
        found = [json.loads(json_util.dumps(document)) for document in client[database]["c"].find()]
    assert _comparable(found) == _comparable(recorded["docs"])


def test_a_record_without_a_value_fails_the_task_and_nothing_is_written(mongodb: MongoServer) -> None:
    database = database_name()
    props = {"name": "s", "connection.uri": mongodb.uri, "database": database, "collection": "c"}
    with pytest.raises(ConnectError, match=r"offset 3 of snk2-0 cannot be written.*delete\.on\.null\.values=true"):
        run_sink(MongoSinkConnector, props, _records())
    with mongodb.client() as client:
        assert client[database]["c"].count_documents({}) == 0


def _comparable(documents: list[Mapping[str, Any]]) -> list[str]:
    texts = [json.dumps(document, sort_keys=True) for document in documents]
    for pattern, name in _UNLIKE:
        texts = [pattern.sub(name, text) for text in texts]
    return sorted(texts)
