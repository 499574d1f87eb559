"""The CloudEvents converter: events of change data capture in the envelope of CloudEvents, and back."""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from connect.converter import Converter
from connect.data import Schema, SchemaAndValue, Type
from connect.errors import DataError
from connect.kits.schema_frame import read_id
from converters.avro import AvroConverter
from converters.cloud_events.change import DATA_FIELDS, Change, ChangeReader
from converters.cloud_events.config import CloudEventsConverterConfig, SerializerType
from converters.cloud_events.event import REQUIRED, EventMaker, data_schema
from converters.json import JsonConverter
from converters.json.codecs import Codecs
from converters.json.text import parse_exactly

__all__ = ["CloudEventsConverter"]

logger = logging.getLogger(__name__)

_TOMBSTONE: Final = SchemaAndValue(None, None)
_DATA: Final = "data"
_DATA_SUFFIX: Final = "-data"
"""Keeps the subjects of the schemas of data and of events in Avro apart."""
_BYTES: Final = Schema.bytes()
_MOST_NAMES: Final = 100


class CloudEventsConverter(Converter[CloudEventsConverterConfig]):
    """Writes the events of change data capture as CloudEvents in JSON or Avro, and reads CloudEvents.

    Records that describe no change become tombstones, as in Java, and a warning names the first of each kind.
    """

    def __init__(self, config: CloudEventsConverterConfig, *, is_key: bool = False) -> None:
        super().__init__(config, is_key=is_key)
        self._is_avro = config.serializer_type is SerializerType.AVRO
        self._has_avro_data = config.data_serializer_type is SerializerType.AVRO
        self._reader = ChangeReader(
            config.metadata,
            traces=config.opentelemetry_tracing_attributes_enable,
            names_data=config.schema_data_name_source_header_enable,
        )
        self.reads_headers = self._reader.reads_headers
        self._maker = EventMaker(
            extends=config.extension_attributes_enable,
            name=config.schema_cloudevents_name,
            adjustment=config.schema_name_adjustment_mode,
            content_type=f"application/{config.data_serializer_type.value}",
        )
        json = config.json
        self._encloses = not self._has_avro_data and json.schemas_enable
        self._json_data = JsonConverter(json)
        self._json_codecs = Codecs(json)
        self._json = JsonConverter(config.plain_json)
        self._avro: AvroConverter | None = None
        self._link = ""
        if self._is_avro or self._has_avro_data:
            avro = config.avro
            self._avro = AvroConverter(avro)
            self._link = avro.urls[0].address
        self._with_data = lru_cache(max(json.schemas_cache_size, 1))(_with_data)
        self._told: set[str] = set()

    def close(self) -> None:
        """Close the connections to the registry."""
        if self._avro is not None:
            self._avro.close()

    # -- writing -----------------------------------------------------------------------------------------------

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the event of a change; ``None`` for a tombstone and for what is no change."""
        return self.from_connect_with_headers(topic, (), schema, value)

    def from_connect_with_headers(
        self, topic: str, headers: Sequence[tuple[str, bytes | None]], schema: Schema | None, value: Any
    ) -> bytes | None:
        """Return the event of a change whose metadata may be in the headers of its record."""
        if value is None:
            return None
        if schema is None:
            raise DataError("A value without a schema cannot be a CloudEvent: only changes with their schemas can.")
        change = self._reader.read(schema, value, headers)
        if change is None:
            self._tell(topic, schema)
            return None
        if schema.type is not Type.STRUCT:
            raise DataError(f"A change is a struct, and the value is {schema.type.value}.")
        fields = DATA_FIELDS[change.connector] if change.in_value else None
        of_data = data_schema(schema, change.data_name, fields)
        data = {field.name: value.get(field.name) for field in of_data.fields}
        return self._event(topic, change, of_data, data)

    def _event(self, topic: str, change: Change, schema: Schema, data: Mapping[str, Any]) -> bytes | None:
        link = None
        kind: Schema | None = schema
        content: Any = data
        if self._avro is not None:
            subject = topic + _DATA_SUFFIX if self._is_avro else topic
            kind, content = _BYTES, self._avro.from_connect(subject, schema, data)
            link = f"{self._link}/schemas/ids/{read_id(content, 'Avro')}"
        elif self._encloses:
            kind = None
        shape = self._maker.shape(change, kind, has_link=link is not None)
        event = self._maker.attributes(change, shape, link)
        if kind is None:
            text = self._json.from_connect(topic, shape.schema, event)
            enclosed = self._json_data.from_connect(topic, schema, data)
            assert text is not None
            assert enclosed is not None
            return b'%b,"data":%b}' % (text[:-1], enclosed)
        event[_DATA] = content
        converter = self._avro if self._is_avro and self._avro is not None else self._json
        return converter.from_connect(topic, shape.schema, event)

    def _tell(self, topic: str, schema: Schema) -> None:
        name = schema.name or schema.type.value
        if name not in self._told and len(self._told) < _MOST_NAMES:
            self._told.add(name)
            logger.warning(
                "A record of topic %s with the schema %s describes no change, so it is written without a value, as are "
                "others like it: send them to a converter of their own.",
                topic,
                name,
            )

    # -- reading -----------------------------------------------------------------------------------------------

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Return an event with its data as a value."""
        if data is None:
            return _TOMBSTONE
        return self._read_avro(topic, data) if self._is_avro else self._read_json(topic, data)

    def _read_json(self, topic: str, message: bytes) -> SchemaAndValue:
        found = self._json.to_connect(topic, message)
        event = found.value
        _check_event(event)
        data = event.get(_DATA)
        if self._has_avro_data:
            assert self._avro is not None
            if isinstance(data, str):
                event[_DATA] = self._avro.to_connect(topic, _from_base64(data)).value
        elif self._encloses and isinstance(data, Mapping) and data.keys() == {"schema", "payload"}:
            # Digits count: they are read anew by the data's own schema.
            exact = parse_exactly(message)[_DATA]
            codecs = self._json_codecs
            event[_DATA] = codecs.reader(codecs.schema(exact["schema"])).decode(exact["payload"])
        return SchemaAndValue(None, event)

    def _read_avro(self, topic: str, message: bytes) -> SchemaAndValue:
        assert self._avro is not None
        found = self._avro.to_connect(topic, message)
        _check_event(found.value)
        content = found.value.get(_DATA)
        if found.schema is None or not isinstance(content, bytes):
            return found
        data = self._avro.to_connect(topic + _DATA_SUFFIX, content)
        return SchemaAndValue(self._with_data(found.schema, data.schema), {**found.value, _DATA: data.value})


def _with_data(event: Schema, data: Schema | None) -> Schema:
    fields = [
        replace(field, schema=data) if field.name == _DATA and data is not None else field for field in event.fields
    ]
    return event.replace(fields=tuple(fields))


def _check_event(event: Any) -> None:
    missing = list(REQUIRED) if not isinstance(event, Mapping) else [name for name in REQUIRED if name not in event]
    if missing:
        raise DataError(f"The message is no CloudEvent: it has no attribute {missing[0]}.")


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise DataError("The data of the event is not Avro in base64, as data.serializer.type=avro expects.") from error
