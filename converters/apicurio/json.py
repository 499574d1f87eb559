"""The JSON converter for Apicurio Registry, where messages name their schema and hold a payload."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Final

from connect.converter import Converter
from connect.data import Column, Schema, SchemaAndValue, ValueColumn
from connect.errors import DataError
from connect.kits.schema_json import schema_to_json
from converters.apicurio.client import ApicurioRegistry, artifact_of
from converters.apicurio.config import ExtJsonConfig, UseId
from converters.json import JsonConverter
from converters.json.codecs import Codecs
from converters.json.config import JsonConverterConfig
from converters.json.encode import encoder
from converters.json.errors import DoubtError
from converters.json.nesting import TOO_DEEP, check_schema
from converters.json.reader import Reader
from converters.json.text import dump, parse_exactly
from converters.registry.codecs import remembering

__all__ = ["ExtJsonConverter"]

_TOMBSTONE: Final = SchemaAndValue(None, None)
_KIND: Final = "KCONNECT"
_ID: Final = "schemaId"
_PAYLOAD: Final = "payload"
_BEFORE_ID: Final = b'{"schemaId":'
_AFTER_ID: Final = b',"payload":'
_OPENING: Final = re.compile(_BEFORE_ID.replace(b"{", rb"\{") + rb"(?:0|[1-9][0-9]{0,18})" + _AFTER_ID)
_LARGEST_ID: Final = 2**63 - 1


class ExtJsonConverter(Converter[ExtJsonConfig]):
    """Writes and reads ``{"schemaId":7,"payload":...}``, with Kafka Connect's schemas in Apicurio Registry.

    Payloads are those of the JSON converter. A message that is damaged raises a :class:`~connect.errors.DataError`; a
    registry that does not answer raises a :class:`~connect.errors.RetriableError`.
    """

    def __init__(self, config: ExtJsonConfig, *, is_key: bool = False) -> None:
        super().__init__(config, is_key=is_key)
        self._registry = ApicurioRegistry(config)
        self._use = UseId.GLOBAL_ID if config.api == 2 else UseId.CONTENT_ID
        size = max(config.schemas_cache_size, 1)
        plain = JsonConverterConfig.parse({**config.originals, "schemas.enable": "false", "schema.content": None})
        self._writer = JsonConverter(plain)
        self._codecs = Codecs(plain)
        self._ids: Callable[[str, Schema], int] = lru_cache(size)(self._new_id)
        self._readers: Callable[[int], Reader] = remembering(size, self._new_reader)

    def close(self) -> None:
        """Close the connections to the registry."""
        self._registry.close()

    # -- writing -----------------------------------------------------------------------------------------------

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Return the message of a value; ``None`` for a null without a schema."""
        if schema is None and value is None:
            return None
        return _message(self._id(topic, schema), self._writer.from_connect(topic, schema, value))

    def from_connect_column(self, topic: str, column: Column) -> Sequence[bytes | None]:
        """Return the message of every value in a column; errors as in :meth:`from_connect`."""
        if column.schema is None or not len(column):
            return [self.from_connect(topic, None, value) for value in column]
        number = self._id(topic, column.schema)
        return [_message(number, payload) for payload in self._writer.from_connect_column(topic, column)]

    def _id(self, topic: str, schema: Schema | None) -> int:
        if schema is None:
            raise DataError(
                "A value without a schema cannot be written, since the message names a schema in the registry: give it "
                "one, or use the JSON converter with schemas.enable=false."
            )
        return self._ids(topic, schema)

    def _new_id(self, topic: str, schema: Schema) -> int:
        artifact = artifact_of(self.config, topic, None, is_key=self.is_key)
        if not self.config.auto_register and (self.config.find_latest or artifact.version is not None):
            raise DataError(
                "Values can be written in no other schema than their own: set apicurio.registry.find-latest=false, and "
                "leave out apicurio.registry.artifact.version."
            )
        check_schema(schema)
        text = dump(schema_to_json(schema, self._default)).decode()
        find = self._registry.registered if self.config.auto_register else self._registry.looked_up
        return find(artifact, text, _KIND).of(self._use)

    def _default(self, schema: Schema, value: Any) -> Any:
        replaces, form = self.config.replace_null_with_default, self.config.decimal_format
        return encoder(schema, replace_null=replaces, decimal_format=form)(value)

    # -- reading -----------------------------------------------------------------------------------------------

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """Return the schema and the value of a message; raise :class:`~connect.errors.DataError` if it is none."""
        if data is None:
            return _TOMBSTONE
        try:
            node = parse_exactly(data)
            if not isinstance(node, Mapping) or not {_ID, _PAYLOAD} <= node.keys():
                raise DataError(f'The message is not JSON with the members "{_ID}" and "{_PAYLOAD}".')
            reader = self._readers(_checked_id(node[_ID]))
            return SchemaAndValue(reader.schema, reader.decode(node[_PAYLOAD]))
        except RecursionError as error:
            raise DataError(TOO_DEEP) from error

    def to_connect_column(self, topic: str, data: Sequence[bytes | None]) -> Sequence[Column]:
        """Return the values of many messages, starting a new column where the schema changes."""
        columns: list[Column] = []
        for opening, run in groupby(data, _opening):
            columns += self._columns(topic, opening, list(run))
        return columns

    def _columns(self, topic: str, opening: bytes | None, messages: Sequence[Any]) -> Iterator[Column]:
        try:
            if opening is not None:
                reader = self._readers(_checked_id(int(opening[len(_BEFORE_ID) : -len(_AFTER_ID)])))
                payloads = [message[len(opening) : -1] for message in messages]
                yield ValueColumn(reader.read_column(payloads), reader.schema)
                return
        except (DoubtError, RecursionError):
            pass  # the rows say what it is
        for message in messages:
            schema, value = self.to_connect(topic, message)
            yield ValueColumn([value], schema)

    def _new_reader(self, number: int) -> Reader:
        text = self._registry.by_id(self._use, number).text
        try:
            return self._codecs.reader(self._codecs.schema(parse_exactly(text.encode())))
        except DataError as error:
            raise DataError(
                f"The schema with the {self._use.value} {number} is none of Kafka Connect's: {error} Use the converter "
                "with which the message was written."
            ) from error


def _message(number: int, payload: bytes | None) -> bytes:
    return b'{"schemaId":%d,"payload":%b}' % (number, b"null" if payload is None else payload)


def _opening(message: bytes | None) -> bytes | None:
    """Return what stands before the payload in messages as Java writes them, ``None`` for all others."""
    found = None if message is None or not message.endswith(b"}") else _OPENING.match(message)
    return None if found is None else found[0]


def _checked_id(number: Any) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _LARGEST_ID:
        raise DataError(f'The message names no schema: its "{_ID}" is {number!r}.')
    return number
