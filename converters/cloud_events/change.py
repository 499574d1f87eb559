"""What a record of a change says of itself, in its value or in its headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Schema, SchemaAndValue, Type
from connect.errors import DataError
from converters.cloud_events.config import MetadataSource, Origin
from converters.json import JsonConverter

__all__ = ["DATA_FIELDS", "Change", "ChangeReader", "is_change"]

_ENVELOPE: Final = ".Envelope"
DATA_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "postgresql": ("before", "after"),
    "mysql": ("before", "after"),
    "mariadb": ("before", "after"),
    "mongodb": ("before", "after", "updateDescription"),
}
"""The fields of an envelope that are data, by connector."""
_ID_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "postgresql": {"lsn": "lsn", "txId": "txId", "sequence": "sequence"},
    "mysql": {"file": "file", "pos": "pos"},
    "mariadb": {"file": "file", "pos": "pos"},
    "mongodb": {"ts": "ts_ms", "ord": "ord"},
}
"""The fields of ``source`` that make the id of an event, by connector and by the name they have in it."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change, with the schema of its ``source`` block."""

    connector: str
    source_schema: Schema
    source: Mapping[str, Any]
    operation: str
    transaction: Mapping[str, Any] | None
    id: str
    type: str
    traceparent: str | None
    data_name: str
    in_value: bool
    """Whether the value is an envelope, of which some fields are data; otherwise all of it is."""


def is_change(schema: Schema) -> bool:
    """Return whether a schema is that of an envelope of change data capture."""
    return schema.type is Type.STRUCT and (schema.name or "").endswith(_ENVELOPE)


class ChangeReader:
    """Finds what records say of themselves where ``metadata.source`` says that it is."""

    def __init__(self, source: MetadataSource, *, traces: bool, names_data: bool) -> None:
        self._source = source
        self._traces = traces
        self._names_data = names_data and source.data_schema_name is Origin.HEADER
        self._headers = JsonConverter.configured({"schemas.enable": "true"})

    @property
    def reads_headers(self) -> bool:
        """Whether headers matter."""
        source = self._source
        origins = (source.whole, source.id, source.type)
        return Origin.HEADER in origins or self._traces or self._names_data

    def read(self, schema: Schema, value: Any, headers: Sequence[tuple[str, bytes | None]]) -> Change | None:
        """Return the change that a record describes; ``None`` if it describes none."""
        last = dict(headers)
        in_value = self._source.whole is Origin.VALUE
        if not (is_change(schema) if in_value else "source" in last and "op" in last):
            return None
        source_schema, source = self._block(schema, value, "source") if in_value else self._header(last, "source")
        if source_schema is None or not isinstance(source, Mapping):
            raise DataError("The record describes a change, but its source is no struct with a schema.")
        connector = str(source.get("connector"))
        if connector not in _ID_FIELDS:
            raise DataError(
                f"The record comes from the connector {connector!r}, whose events have no attributes in CloudEvents: "
                f"only those of {', '.join(_ID_FIELDS)} have."
            )
        return Change(
            connector,
            source_schema,
            source,
            value.get("op") if in_value else self._text(last, "op"),
            value.get("transaction") if in_value else self._transaction(last),
            self._text(last, "id") if self._source.id is Origin.HEADER else _generated_id(connector, source),
            self._text(last, "type")
            if self._source.type is Origin.HEADER
            else f"io.debezium.connector.{connector}.DataChangeEvent",
            self._text(last, "traceparent") if self._traces and "traceparent" in last else None,
            self._text(last, "dataSchemaName") if self._names_data else f"io.debezium.connector.{connector}.Data",
            in_value,
        )

    def _block(self, schema: Schema, value: Any, name: str) -> SchemaAndValue:
        field = schema.field(name)
        return SchemaAndValue(None if field is None else field.schema, value.get(name))

    def _transaction(self, headers: Mapping[str, bytes | None]) -> Mapping[str, Any] | None:
        found = self._header(headers, "transaction").value if "transaction" in headers else None
        return found if isinstance(found, Mapping) else None

    def _text(self, headers: Mapping[str, bytes | None], name: str) -> str:
        if name not in headers:
            raise DataError(f"The record has no header {name}, which metadata.source={name}:header needs.")
        found = self._header(headers, name).value
        if not isinstance(found, str):
            raise DataError(f"The header {name} of the record is no text, which a CloudEvent needs there.")
        return found

    def _header(self, headers: Mapping[str, bytes | None], name: str) -> SchemaAndValue:
        try:
            found: SchemaAndValue = self._headers.to_connect("", headers[name])
        except DataError as error:
            raise DataError(
                f"The header {name} is not JSON with a schema, as metadata in headers has to be: set "
                "header.converter=org.apache.kafka.connect.json.JsonConverter on the connector."
            ) from error
        return found


def _generated_id(connector: str, source: Mapping[str, Any]) -> str:
    # Java writes null for what is not there.
    parts = {"name": source.get("name")} | {name: source.get(field) for name, field in _ID_FIELDS[connector].items()}
    return ";".join(f"{name}:{'null' if value is None else value}" for name, value in parts.items())
