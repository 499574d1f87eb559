"""Keys of rows in offsets, as Debezium keeps them: an array of Java objects, serialized and written in hexadecimal.

Only the classes that keys of tables have are read and written: text, whole numbers, truth values, doubles and bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from connect.errors import ConnectError

__all__ = ["Key", "key_from_java", "key_to_java"]

Key: TypeAlias = tuple[Any, ...]
"""The values of a row's key columns: text, int, bool, float or bytes each."""

_HEAD: Final = bytes.fromhex("aced0005")
_NULL: Final = 0x70
_REFERENCE: Final = 0x71
_CLASS: Final = 0x72
_OBJECT: Final = 0x73
_STRING: Final = 0x74
_ARRAY: Final = 0x75
_END: Final = 0x78
_LONG_STRING: Final = 0x7C
_FIRST_HANDLE: Final = 0x7E0000
_LONGEST_SHORT: Final = 0xFFFF
_INT32: Final = range(-(2**31), 2**31)
_MOST_DEPTH: Final = 8

_OBJECTS: Final = ("[Ljava.lang.Object;", bytes.fromhex("90ce589f1073296c"))
_BYTES: Final = ("[B", bytes.fromhex("acf317f8060854e0"))
_NUMBER: Final = ("java.lang.Number", bytes.fromhex("86ac951d0b94e08b"))
_BOXES: Final = {
    "java.lang.Integer": (bytes.fromhex("12e2a0a4f7818738"), b"I", ">i"),
    "java.lang.Long": (bytes.fromhex("3b8be490cc8f23df"), b"J", ">q"),
    "java.lang.Double": (bytes.fromhex("80b3c24a296bfb04"), b"D", ">d"),
    "java.lang.Boolean": (bytes.fromhex("cd207280d59cfaee"), b"Z", ">?"),
}
_FORMATS: Final = {"B": ">b", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}


def key_to_java(key: Key) -> str:
    """Write a key as Debezium does. Raises :class:`~connect.errors.ConnectError` for a value of another type."""
    return _Writer().write(key).hex()


def key_from_java(text: str) -> Key | None:
    """Read a key as Debezium writes it; ``None`` if it is null.

    Raises :class:`~connect.errors.ConnectError` if it holds other classes.
    """
    try:
        return _Reader(bytes.fromhex(text)).read()
    except (ValueError, IndexError, struct.error, KeyError) as error:
        raise ConnectError(
            "The offset holds the key of an incremental snapshot in a form that is not known. Delete the keys that "
            "begin with incremental_snapshot from the offset, and send the signal again."
        ) from error


class _Writer:
    """Writes one array of objects."""

    def __init__(self) -> None:
        self._out = bytearray(_HEAD)
        self._handles: dict[str, int] = {}
        self._next = _FIRST_HANDLE

    def write(self, key: Key) -> bytes:
        self._out.append(_ARRAY)
        self._array_class(*_OBJECTS)
        self._take_handle()
        self._out += struct.pack(">i", len(key))
        for value in key:
            self._value(value)
        return bytes(self._out)

    def _take_handle(self) -> int:
        handle, self._next = self._next, self._next + 1
        return handle

    def _value(self, value: Any) -> None:
        match value:
            case None:
                self._out.append(_NULL)
            case bool():
                self._boxed("java.lang.Boolean", value)
            case int():
                self._boxed("java.lang.Integer" if value in _INT32 else "java.lang.Long", value)
            case float():
                self._boxed("java.lang.Double", value)
            case str():
                self._string(value)
            case bytes():
                self._out.append(_ARRAY)
                self._array_class(*_BYTES)
                self._take_handle()
                self._out += struct.pack(">i", len(value)) + value
            case _:
                raise ConnectError(f"A key with a value of type {type(value).__name__} cannot be kept in an offset.")

    def _string(self, value: str) -> None:
        encoded = _modified_utf8(value)
        if len(encoded) > _LONGEST_SHORT:
            self._out += bytes([_LONG_STRING]) + struct.pack(">q", len(encoded)) + encoded
        else:
            self._out += bytes([_STRING]) + struct.pack(">H", len(encoded)) + encoded
        self._take_handle()

    def _known_class(self, name: str) -> bool:
        """Write a reference to a class that was described before, or note that it is described now."""
        if name in self._handles:
            self._out += bytes([_REFERENCE]) + struct.pack(">i", self._handles[name])
            return True
        self._handles[name] = self._take_handle()
        return False

    def _described(self, name: str, uid: bytes, fields: bytes) -> None:
        encoded = name.encode()
        self._out += bytes([_CLASS]) + struct.pack(">H", len(encoded)) + encoded + uid + b"\x02" + fields
        self._out.append(_END)

    def _array_class(self, name: str, uid: bytes) -> None:
        if not self._known_class(name):
            self._described(name, uid, b"\x00\x00")
            self._out.append(_NULL)

    def _boxed(self, name: str, value: float) -> None:
        uid, code, form = _BOXES[name]
        self._out.append(_OBJECT)
        if not self._known_class(name):
            self._described(name, uid, b"\x00\x01" + code + b"\x00\x05value")
            if code == b"Z":
                self._out.append(_NULL)
            elif not self._known_class(_NUMBER[0]):
                self._described(*_NUMBER, b"\x00\x00")
                self._out.append(_NULL)
        self._take_handle()
        self._out += struct.pack(form, value)


class _Class:
    """A class description: its name, the formats of its fields, and the class that it extends."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: list[str] = []
        self.parent: _Class | None = None

    def formats(self) -> list[str]:
        """Return the formats of all fields, those of the parent first."""
        return [*(self.parent.formats() if self.parent is not None else ()), *self.fields]


class _Reader:
    """Reads one array of objects."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._handles: list[Any] = []

    def read(self) -> Key | None:
        if self._take(len(_HEAD)) != _HEAD:
            raise ValueError("no serialized Java object")
        found = self._object(0)
        if found is not None and not isinstance(found, tuple):
            raise ValueError("no array")
        return found

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise ValueError("cut off")
        self._at += count
        return taken

    def _number(self, form: str) -> Any:
        (number,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return number

    def _text(self, form: str = ">H") -> str:
        return _from_modified_utf8(self._take(self._number(form)))

    def _object(self, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise ValueError("nested")
        match self._take(1)[0]:
            case 0x70:
                return None
            case 0x71:
                return self._handles[self._number(">i") - _FIRST_HANDLE]
            case 0x74:
                return self._kept(self._text())
            case 0x7C:
                return self._kept(self._text(">q"))
            case 0x75:
                return self._array(depth)
            case 0x73:
                return self._boxed(depth)
        raise ValueError("another kind of object")

    def _kept(self, value: Any) -> Any:
        self._handles.append(value)
        return value

    def _array(self, depth: int) -> Any:
        of = self._class(depth)
        place = len(self._handles)
        self._handles.append(None)
        count = self._number(">i")
        if of.name == _BYTES[0]:
            self._handles[place] = self._take(count)
        else:
            self._handles[place] = tuple(self._object(depth + 1) for _ in range(min(count, len(self._data))))
        return self._handles[place]

    def _boxed(self, depth: int) -> Any:
        of = self._class(depth)
        place = len(self._handles)
        self._handles.append(None)
        values = [self._number(form) for form in of.formats()]
        (self._handles[place],) = values
        return self._handles[place]

    def _class(self, depth: int) -> _Class:
        code = self._take(1)[0]
        if code == _REFERENCE:
            found = self._handles[self._number(">i") - _FIRST_HANDLE]
            if not isinstance(found, _Class):
                raise ValueError("no class")
            return found
        if code != _CLASS or depth > _MOST_DEPTH:
            raise ValueError("no class")
        described = _Class(self._text())
        self._take(8)
        self._handles.append(described)
        self._take(1)
        for _ in range(self._number(">H")):
            kind = chr(self._take(1)[0])
            self._text()
            described.fields.append(_FORMATS[kind])
        if self._take(1)[0] != _END:
            raise ValueError("annotated")
        if self._data[self._at] == _NULL:
            self._at += 1
        else:
            described.parent = self._class(depth + 1)
        return described


def _modified_utf8(text: str) -> bytes:
    """Encode as Java does: a zero in two bytes, and other planes as surrogates."""
    units = text.encode("utf-16-be", "surrogatepass")
    pairs: Sequence[int] = struct.unpack(f">{len(units) // 2}H", units)
    return b"".join(b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass") for unit in pairs)


def _from_modified_utf8(data: bytes) -> str:
    text = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")
