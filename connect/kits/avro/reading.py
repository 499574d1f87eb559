"""The building blocks of decoders: code that reads integers, lengths and counts, and skips values.

In this code ``d`` is the message, ``n`` its length and ``i`` the current position. ``budget`` is the number of further
zero-byte values that the message may contain: without it a message of ten bytes could fill the memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from connect.kits.avro.avro_schema import AvroSchema
from connect.kits.avro.source import DEEPEST, Source, choose
from connect.kits.avro.structure import Structure
from connect.kits.avro.wire_format import MalformedError, long_tail

__all__ = ["Reading", "Skipping"]

_MOST_EMPTY: Final = 1000
"""The number of zero-byte values that a message may contain, in addition to one for each of its bytes."""
_FIXED: Final = {"float": 4, "double": 8}


class Reading:
    """Emits pieces of decoding code into a source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._spends = False

    @contextmanager
    def message(self) -> Iterator[None]:
        """Open a block for the code of one message. The budget is initialised only if some of the code spends it."""
        source = self._source
        fill = source.slot()
        yield
        if self._spends:
            fill(f"budget[0] = {_MOST_EMPTY} + n")

    def spend(self, amount: str) -> None:
        """Charge ``amount`` zero-byte values to the message's budget."""
        source = self._source
        self._spends = True
        source.line(f"budget[0] -= {amount}")
        with source.block("if budget[0] < 0"):
            source.line("raise Malformed('it has more elements and fields that take no bytes than its size allows')")

    @contextmanager
    def items(self, least: int, values: int) -> Iterator[None]:
        """Open a block for each element. Elements come in counted groups, of which the last is empty.

        An element takes at least ``least`` bytes; a zero-byte element counts as ``values`` values.
        """
        source = self._source
        count = source.new("c")
        with source.block("while True"):
            self.count(count)
            if least:
                with source.block(f"if {count} > (n - i) // {least}"):
                    source.line(
                        f"raise Malformed(f'{{{count}}} elements cannot be in the {{n - i}} bytes that are left')"
                    )
            else:
                self.spend(f"{count} * {values}")
            with source.block(f"for _ in range({count})"):
                yield

    def count(self, target: str) -> None:
        """Read the number of elements in a group, and leave the loop if the group is the last one."""
        source = self._source
        self.whole(target)
        with source.block(f"if {target} <= 0"):
            with source.block(f"if not {target}"):
                source.line("break")
            # A negative count is followed by the group's size in bytes, which is meant for skipping the group.
            source.line(f"{target} = -{target}")
            self.whole(source.new("s"))

    def rest(self, target: str, most: int = 0) -> None:
        """Read the remaining bytes, if any, of a number whose first byte is in ``target``."""
        with self._source.block(f"if {target} > 127"):
            self._source.line(f"{target}, i = long_tail(d, i, {target})")
            if most:
                with self._source.block(f"if {target} > {most}"):
                    self._source.line("raise Malformed('a whole number has more than 32 bits')")

    def whole(self, target: str, most: int = 0) -> None:
        """Read an integer."""
        self._source.line(f"{target} = d[i]; i += 1")
        self.rest(target, most)
        self._source.line(f"{target} = {target} >> 1 ^ -({target} & 1)")

    def member(self, target: str, count: int) -> None:
        """Read the index of one of ``count`` members or symbols, as twice its value.

        The value itself is not checked.
        """
        self._source.line(f"{target} = d[i]; i += 1")
        if count > 64:
            self.rest(target)

    def sized(self, target: str, suffix: str = "") -> None:
        """Read length-prefixed bytes."""
        self.end(target)
        self.slice(target, suffix)

    def end(self, target: str) -> None:
        """Read a length, and set ``j`` to the end of the bytes that follow it."""
        source = self._source
        source.line(f"{target} = d[i]; i += 1")
        self.rest(target)
        source.line(f"j = i + ({target} >> 1)")
        with source.block(f"if {target} & 1"):
            source.line("raise Malformed('a length is negative')")

    def slice(self, target: str, suffix: str = "") -> None:
        """Read the bytes up to position ``j``."""
        self.check_end()
        self._source.line(f"{target} = d[i:j]{suffix}; i = j")

    def check_end(self) -> None:
        """Reject a value that extends beyond the end of the message."""
        with self._source.block("if j > n"):
            self._source.line("raise Malformed(f'{j - i} bytes should follow where {n - i} are left')")

    def names(self) -> dict[str, object]:
        """Return the objects that the code refers to, by name."""
        return {
            "Malformed": MalformedError,
            "budget": [0],
            "long_tail": long_tail,
            "unpack_double": struct.Struct("<d").unpack_from,
            "unpack_float": struct.Struct("<f").unpack_from,
        }


class Skipping:
    """Emits code that skips values for which the reader has no field, without decoding them.

    A record is skipped by its own function, so it may contain itself.
    """

    def __init__(self, source: Source, reading: Reading, structure: Structure) -> None:
        self._source = source
        self._reading = reading
        self._structure = structure
        self._functions: dict[int, str] = {}

    def skip(self, schema: AvroSchema) -> None:
        """Emit the code that skips a value."""
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
            # Elements of zero bytes take up no space, so their number does not matter.
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
