"""Records as commands: pure, so that a record that cannot be written is known before anything is sent."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from connect.data import Schema, SinkRecord, Type
from connect.data.numerals import double_text, float_text, integer_text
from connect.errors import DataError
from connect.kits.json_text import json_text, parse_json
from connectors.redis.structures import Structure, Writing

__all__ = ["Command", "RecordWriter"]

Command: TypeAlias = tuple[bytes | str | int | float, ...]

_TOPIC: Final = "${topic}"
_TTL: Final = "redis.key.ttl"
_LONGEST_TTL: Final = 1 << 33
_SMALLEST_TIME, _LARGEST_TIME = 0, (1 << 63) - 1


class RecordWriter:
    """Makes the commands that write a record."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._charset = writing.charset
        self._prefixes: dict[str, bytes] = {}
        self._collections: dict[str, bytes] = {}
        self._make = self._maker()

    def commands(self, record: SinkRecord) -> Sequence[Command]:
        """Return the commands that write a record; raise :class:`~connect.errors.DataError` if it cannot be."""
        return self._make(record)

    def collection(self, topic: str) -> bytes:
        """Return the key of the collection, or the channel, of a topic."""
        found = self._collections.get(topic)
        if found is None:
            found = self._encoded(self._writing.keyspace.replace(_TOPIC, topic))
            self._collections[topic] = found
        return found

    def _maker(self) -> Callable[[SinkRecord], Sequence[Command]]:
        return {
            Structure.SET: self._string,
            Structure.HSET: self._hash,
            Structure.JSONSET: self._json,
            Structure.JSONMERGE: self._json,
            Structure.XADD: self._entry,
            Structure.LPUSH: self._item,
            Structure.RPUSH: self._item,
            Structure.SADD: self._member,
            Structure.ZADD: self._scored,
            Structure.TSADD: self._sample,
            Structure.DEL: self._deletion,
            Structure.PUBLISH: self._message,
        }[self._writing.structure]

    # -- structures of a key for each record ---------------------------------------------------------------------

    def _string(self, record: SinkRecord) -> Sequence[Command]:
        key = self._key(record)
        if record.value is None:
            return (("DEL", key),)
        value, ttl = self._value(record), self._ttl(record)
        return (("SET", key, value, "EX", ttl),) if ttl else (("SET", key, value),)

    def _hash(self, record: SinkRecord) -> Sequence[Command]:
        key = self._key(record)
        if record.value is None:
            return (("DEL", key),)
        ttl = self._ttl(record)
        fields, absent = self._fields(record)
        if not fields and not absent:
            raise DataError("The value has no fields, and there is no empty hash.")
        made: list[Command] = []
        if fields:
            made.append(("HSET", key, *fields))
        if absent:
            made.append(("HDEL", key, *absent))
        return _expiring(made, key, ttl)

    def _json(self, record: SinkRecord) -> Sequence[Command]:
        key = self._key(record)
        if record.value is None:
            return (("DEL", key),)
        text, ttl = self._json_value(record), self._ttl(record)
        if self._writing.structure is Structure.JSONMERGE:
            return _expiring([("JSON.MERGE", key, self._path(record), text)], key, ttl)
        return _expiring([("JSON.SET", key, "$", text)], key, ttl)

    def _deletion(self, record: SinkRecord) -> Sequence[Command]:
        return (("DEL", self._key(record)),)

    # -- collections ---------------------------------------------------------------------------------------------

    def _entry(self, record: SinkRecord) -> Sequence[Command]:
        if record.value is None:
            raise DataError("A record without a value has no fields, and a stream takes no entry without fields.")
        fields, _ = self._fields(record)
        if not fields:
            raise DataError("The value has no fields, and a stream takes no entry without fields.")
        key, length = self.collection(record.topic), self._writing.stream_length
        limit: Command = ("MAXLEN", "~", length) if length else ()
        return _expiring([("XADD", key, *limit, "*", *fields)], key, self._ttl(record))

    def _item(self, record: SinkRecord) -> Sequence[Command]:
        key, member = self.collection(record.topic), self._name(record)
        if record.value is None:
            return (("LREM", key, 0, member),)
        return _expiring([(self._writing.structure.value, key, member)], key, self._ttl(record))

    def _member(self, record: SinkRecord) -> Sequence[Command]:
        key, member = self.collection(record.topic), self._name(record)
        if record.value is None:
            return (("SREM", key, member),)
        return _expiring([("SADD", key, member)], key, self._ttl(record))

    def _scored(self, record: SinkRecord) -> Sequence[Command]:
        key, member = self.collection(record.topic), self._name(record)
        if record.value is None:
            return (("ZREM", key, member),)
        return _expiring([("ZADD", key, _number(record.value, "score"), member)], key, self._ttl(record))

    def _sample(self, record: SinkRecord) -> Sequence[Command]:
        key, time = self.collection(record.topic), record.key
        if isinstance(time, dt.datetime):
            time = round(time.timestamp() * 1000)
        if not isinstance(time, int) or isinstance(time, bool) or not _SMALLEST_TIME <= time <= _LARGEST_TIME:
            raise DataError("The key is no time: a time series takes milliseconds since 1970 as an integer.")
        if record.value is None:
            return (("TS.DEL", key, time, time),)
        added: Command = ("TS.ADD", key, time, _number(record.value, "sample"), "ON_DUPLICATE", "LAST")
        return _expiring([added], key, self._ttl(record))

    def _message(self, record: SinkRecord) -> Sequence[Command]:
        value = b"" if record.value is None else self._value(record)
        return (("PUBLISH", self.collection(record.topic), value),)

    # -- parts ---------------------------------------------------------------------------------------------------

    def _key(self, record: SinkRecord) -> bytes:
        name = self._name(record)
        if not self._writing.keyspace:
            return name
        prefix = self._prefixes.get(record.topic)
        if prefix is None:
            prefix = self.collection(record.topic) + self._encoded(self._writing.separator)
            self._prefixes[record.topic] = prefix
        return prefix + name

    def _name(self, record: SinkRecord) -> bytes:
        """The record's key as a key or member."""
        key = record.key
        if isinstance(key, str):
            name = self._encoded(key)
        elif isinstance(key, bytes):
            name = key
        elif key is None:
            raise DataError("The record has no key: have a transformation make one, such as ValueToKey.")
        elif isinstance(key, (Mapping, list)):
            raise DataError("The key is no text: take a field of it by the transformation ExtractField$Key.")
        else:
            name = self._text(key, record.key_schema)
        if not name:
            raise DataError("The key is empty.")
        return name

    def _value(self, record: SinkRecord) -> bytes:
        return self._text(record.value, record.value_schema)

    def _json_value(self, record: SinkRecord) -> bytes:
        value = record.value
        if isinstance(value, (str, bytes)):
            data = self._encoded(value) if isinstance(value, str) else value
            parse_json(data, "The value")
            return data
        return json_text(value, schema=record.value_schema).encode()

    def _path(self, record: SinkRecord) -> str:
        header = record.headers.last_with_key(self._writing.json_path_header) if len(record.headers) else None
        if header is None or header.value is None:
            return self._writing.json_path
        return str(header.value)

    def _fields(self, record: SinkRecord) -> tuple[list[bytes], list[bytes]]:
        """Return names and values of the fields, one after the other, and the names of those that are null."""
        value, schema = record.value, record.value_schema
        if not isinstance(value, Mapping):
            raise DataError(
                "The value is neither a struct nor a map: choose a converter that makes one, such as the JsonConverter."
            )
        members = {field.name: field.schema for field in schema.fields} if schema is not None and schema.fields else {}
        items = schema.value_schema if schema is not None and not members else None
        written: list[bytes] = []
        absent: list[bytes] = []
        for name, item in value.items():
            field = self._encoded(name) if isinstance(name, str) else self._text(name, None)
            if item is None:
                absent.append(field)
            else:
                written += (field, self._text(item, members.get(name, items)))
        return written, absent

    def _text(self, value: Any, schema: Schema | None) -> bytes:  # noqa: PLR0911
        match value:
            case str():
                return self._encoded(value)
            case bytes() | bytearray() | memoryview():
                return bytes(value)
            case bool():
                return b"true" if value else b"false"
            case int():
                return integer_text(value).encode()
            case float():
                is_single = schema is not None and schema.type is Type.FLOAT32
                return (float_text(value) if is_single else double_text(value)).encode()
            case Decimal():
                return format(value, "f").encode()
            case dt.datetime():
                return value.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()
            case dt.date() | dt.time():
                return value.isoformat().encode()
            case _:
                return json_text(value, schema=schema).encode()

    def _encoded(self, text: str) -> bytes:
        try:
            return text.encode(self._charset)
        except UnicodeEncodeError as error:
            raise DataError(f"A text cannot be written in redis.charset={self._charset}: {error.reason}.") from error

    def _ttl(self, record: SinkRecord) -> int:
        """Return how many seconds the key lives; 0 is for ever."""
        header = record.headers.last_with_key(_TTL) if len(record.headers) else None
        if header is None or header.value is None:
            return self._writing.ttl_seconds
        text = header.value.decode("ascii", "replace") if isinstance(header.value, bytes) else str(header.value)
        try:
            seconds = int(text)
        except ValueError:
            seconds = _LONGEST_TTL + 1
        if seconds > _LONGEST_TTL:
            raise DataError(f"The header {_TTL} is {text[:40]!r}, which is no number of seconds.")
        return max(0, seconds)


def _expiring(made: list[Command], key: bytes, ttl: int) -> Sequence[Command]:
    if ttl:
        made.append(("EXPIRE", key, ttl))
    return made


def _number(value: Any, what: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return integer_text(value)
    if isinstance(value, float) and not math.isnan(value):
        return repr(value)
    if isinstance(value, Decimal) and not value.is_nan():
        return format(value, "f")
    raise DataError(f"The value is no number, and a {what} is one.")
