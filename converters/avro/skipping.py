"""Code that goes past a value which the reader has no field for, without making anything of it."""

from __future__ import annotations

from typing import Final

from converters.avro.avro_schema import AvroSchema
from converters.avro.reading import Reading, choose
from converters.avro.source import DEEPEST, Source
from converters.avro.structure import Structure

__all__ = ["Skipping"]

_FIXED: Final = {"float": 4, "double": 8}


class Skipping:
    """Adds such code to a source. A record is gone past by a function of its own, so it may hold itself."""

    def __init__(self, source: Source, reading: Reading, structure: Structure) -> None:
        self._source = source
        self._reading = reading
        self._structure = structure
        self._functions: dict[int, str] = {}

    def skip(self, schema: AvroSchema) -> None:
        """Add what goes past a value."""
        if not self._structure.of(schema).least:
            return
        if schema.kind == "record":
            self._source.line(f"i = {self._function(schema)}(d, n, i)")
        elif self._source.depth < DEEPEST:
            self._inline(schema)
        else:
            name = self._source.new("skip")
            with self._source.function(f"{name}(d, n, i)"):
                self._inline(schema)
                self._source.line("return i")
            self._source.line(f"i = {name}(d, n, i)")

    def _function(self, record: AvroSchema) -> str:
        name = self._functions.get(id(record))
        if name is None:
            name = self._functions[id(record)] = self._source.new("skip")
            with self._source.function(f"{name}(d, n, i)"):
                for field in record.fields:
                    self.skip(field.schema)
                self._source.line("return i")
        return name

    def _inline(self, schema: AvroSchema) -> None:
        source, reading = self._source, self._reading
        match schema.kind:
            case "union":
                self._union(schema)
            case "array" | "map":
                self._items(schema)
            case "string" | "bytes":
                reading.end(source.new("s"))
                reading.check_end()
                source.line("i = j")
            case "float" | "double" | "fixed":
                source.line(f"j = i + {_FIXED.get(schema.kind, schema.size)}")
                reading.check_end()
                source.line("i = j")
            case _:
                reading.whole(source.new("s"))

    def _items(self, schema: AvroSchema) -> None:
        source, reading = self._source, self._reading
        is_map = schema.kind == "map"
        least = self._structure.of(schema.element).least + is_map
        if not least:
            # However many there are, they are nowhere.
            with source.block("while True"):
                reading.count(source.new("c"))
            return
        with reading.items(least, 0):
            if is_map:
                reading.end(source.new("s"))
                reading.check_end()
                source.line("i = j")
            self.skip(schema.element)

    def _union(self, schema: AvroSchema) -> None:
        source, count = self._source, len(schema.branches)
        index = source.new("u")
        self._reading.member(index, count)

        def member(number: int) -> None:
            source.line("pass")
            self.skip(schema.branches[number // 2])

        def otherwise() -> None:
            source.line(f"raise Malformed(f'a union of {count} has the member {{{index} / 2:g}}')")

        choose(source, index, range(0, 2 * count, 2), member, otherwise)
