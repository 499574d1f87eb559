"""The keys and headers of records, which a storage sink wrote to objects beside that with the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from connect.data import NO_HEADERS, Header, Headers, Schema
from connect.errors import ConnectError, DataError, RetriableError
from connect.kits.files.readers.row_reader import Rows
from connect.kits.files.readers.visit import FileState, Reading, Visit
from connect.kits.files.systems.system import SourceFile

__all__ = ["Companion", "headers_of", "unwrapped_key"]

_TEXT = Schema.string()


class Companion:
    """Reads the rows of an object beside those of another, by their numbers, which only grow."""

    def __init__(self, reading: Reading, file: SourceFile) -> None:
        self._reading = reading
        self.file = file
        self._visit: Visit | None = None
        self._rows: Rows | None = None

    def values(self, numbers: Sequence[int]) -> tuple[Schema | None, list[Any]]:
        """Return the values of rows by their numbers, counted from 1, and their schema."""
        found: list[Any] = []
        schema: Schema | None = None
        try:
            while len(found) < len(numbers):
                rows = self._rows_with(numbers[len(found)])
                schema = rows.column.schema
                first = int(rows.offsets[0]["row"])
                end = first + len(rows)
                values = rows.column.values()
                found += [values[number - first] for number in numbers[len(found) :] if number < end]
        except RetriableError:
            self.close()
            raise
        except (DataError, FileNotFoundError) as error:
            self.close()
            raise ConnectError(f"{self.file.path} cannot be read beside its values: {error}") from error
        return schema, found

    def close(self) -> None:
        """Close the object."""
        if self._visit is not None:
            self._visit.close()
        self._visit, self._rows = None, None

    def _rows_with(self, number: int) -> Rows:
        """Go on to the rows that have this number."""
        if self._rows is not None and number < int(self._rows.offsets[0]["row"]):
            self.close()
        while self._rows is None or int(self._rows.offsets[-1]["row"]) < number:
            if self._visit is None:
                self._visit = self._reading.visit(FileState(self.file))
            following = next(self._visit, None)
            if following is None:
                raise DataError("it has fewer records than the values")
            if following[1].malformed:
                raise following[1].malformed[0][1].error
            self._rows = following[1]
        return self._rows


def unwrapped_key(schema: Schema | None, key: Any) -> tuple[Schema | None, Any]:
    """Return a key without the record that formats of records put around it."""
    if isinstance(key, dict) and list(key) == ["key"] and (schema is None or schema.name in (None, "RecordKey", "Row")):
        inner = None if schema is None else schema.fields[0].schema
        return inner, key["key"]
    return schema, key


def headers_of(value: Any) -> Headers:
    """Return headers from the record that has their list; their values are texts."""
    listed = value.get("headers") if isinstance(value, dict) else value
    if not listed:
        return NO_HEADERS
    if not isinstance(listed, list) or not all(isinstance(each, dict) and "key" in each for each in listed):
        raise ConnectError(f"Headers are a list of objects with key and value, not {str(value)[:100]}.")
    return Headers(Header(each["key"], each.get("value"), _TEXT) for each in listed)
