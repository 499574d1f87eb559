"""The bytes of the ``connect`` group protocol: the members' metadata and the leader's assignments.

Versions 0 (``default``, eager), 1 (``compatible``, KIP-415) and 2 (``sessioned``, KIP-507) share one layout; only the
later ones carry the held assignment, revocations and the delay. Byte for byte like Apache Kafka Connect's, except for
one byte after the metadata of a draining worker, which Kafka Connect does not read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from connect.errors import DataError
from worker.unit import Unit

__all__ = [
    "CONFIG_MISMATCH",
    "EAGER",
    "NO_ERROR",
    "PROTOCOL_TYPE",
    "VERSIONS",
    "Assignment",
    "MemberMetadata",
    "decode_assignment",
    "decode_metadata",
    "encode_assignment",
    "encode_metadata",
    "offered",
]

PROTOCOL_TYPE: Final = "connect"
EAGER: Final = 0
NO_ERROR: Final = 0
CONFIG_MISMATCH: Final = 1
"""The error code if the leader knows older configurations than a member, so that nothing was assigned."""

VERSIONS: Final[Mapping[str, int]] = MappingProxyType({"default": 0, "compatible": 1, "sessioned": 2})
"""The version of each protocol, by the name under which members offer it to the broker."""

_DRAINING: Final = b"\x01"

_OFFERED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "eager": ("default",),
        "compatible": ("compatible", "default"),
        "sessioned": ("sessioned", "compatible", "default"),
    }
)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The leader's assignment for a member: in version 0 all its units, in later versions only changes.

    ``delay``, in ms, is how long to wait before joining again.
    """

    leader: str
    leader_url: str
    config_offset: int
    assigned: frozenset[Unit] = frozenset()
    revoked: frozenset[Unit] = frozenset()
    delay: int = 0
    error: int = NO_ERROR


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """The metadata with which a member joins. ``held`` is ``None`` if it holds no units, and always in version 0.

    A ``draining`` member loses its units and gets no new ones; not in version 0.
    """

    url: str
    config_offset: int
    held: Assignment | None = None
    draining: bool = False


def offered(connect_protocol: str) -> tuple[str, ...]:
    """Return the protocols that a worker offers for its ``connect.protocol``, the preferred one first."""
    return _OFFERED[connect_protocol.lower()]


def encode_metadata(metadata: MemberMetadata, version: int) -> bytes:
    """Encode the metadata of a member that offers this version."""
    head = struct.pack(">h", version) + _string(metadata.url) + struct.pack(">q", metadata.config_offset)
    if version == EAGER:
        return head
    tail = _DRAINING if metadata.draining else b""
    if metadata.held is None:
        return head + struct.pack(">i", -1) + tail
    held = encode_assignment(metadata.held, version)
    return head + struct.pack(">i", len(held)) + held + tail


def decode_metadata(data: bytes) -> MemberMetadata:
    """Decode a member's metadata. Raises ``DataError`` if it is malformed."""
    reader = _Reader("metadata", data)
    version = reader.version()
    url, offset = reader.string(), reader.number(">q")
    held = reader.nullable_bytes() if version != EAGER else None
    draining = version != EAGER and reader.mark(_DRAINING)
    reader.end()
    return MemberMetadata(url, offset, decode_assignment(held) if held else None, draining)


def encode_assignment(assignment: Assignment, version: int) -> bytes:
    """Encode a member's assignment in the version that the group has agreed on."""
    data = (
        struct.pack(">hh", version, assignment.error)
        + _string(assignment.leader)
        + _string(assignment.leader_url)
        + struct.pack(">q", assignment.config_offset)
        + _units(assignment.assigned)
    )
    if version == EAGER:
        return data
    return data + _units(assignment.revoked) + struct.pack(">i", assignment.delay)


def decode_assignment(data: bytes) -> Assignment:
    """Decode an assignment. Raises ``DataError`` if it is malformed."""
    reader = _Reader("assignment", data)
    version, error = reader.version(), reader.number(">h")
    leader, leader_url, offset = reader.string(), reader.string(), reader.number(">q")
    assigned = reader.units()
    revoked, delay = frozenset[Unit](), 0
    if version != EAGER:
        revoked, delay = reader.units(), reader.number(">i")
    reader.end()
    return Assignment(leader, leader_url, offset, assigned, revoked, delay, error)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _units(units: Iterable[Unit]) -> bytes:
    of_connector: dict[str, list[int]] = {}
    for unit in sorted(units):
        of_connector.setdefault(unit.connector, []).append(unit.task)
    parts = [struct.pack(">i", len(of_connector))]
    for connector, tasks in of_connector.items():
        parts += (_string(connector), struct.pack(f">i{len(tasks)}i", len(tasks), *tasks))
    return b"".join(parts)


class _Reader:
    """Reads one field after the other. A null array or string counts as empty, as in Java."""

    def __init__(self, what: str, data: bytes) -> None:
        self._what = what
        self._data = data
        self._at = 0

    def version(self) -> int:
        # A later version may only append fields, so it is read as the newest known one.
        return self.number(">h")

    def number(self, form: str) -> int:
        number: int = struct.unpack(form, self._take(struct.calcsize(form)))[0]
        return number

    def string(self) -> str:
        data = self._take(max(0, self.number(">h")))
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise self._malformed(f"a text is not UTF-8: {error.reason}") from error

    def nullable_bytes(self) -> bytes | None:
        length = self.number(">i")
        return None if length < 0 else self._take(length)

    def units(self) -> frozenset[Unit]:
        units: set[Unit] = set()
        for _ in range(self.number(">i")):
            connector = self.string()
            units.update(Unit(connector, self.number(">i")) for _ in range(self.number(">i")))
        return frozenset(units)

    def mark(self, mark: bytes) -> bool:
        is_there = self._data[self._at :] == mark
        self._at += len(mark) if is_there else 0
        return is_there

    def end(self) -> None:
        if self._at != len(self._data):
            raise self._malformed(f"{len(self._data) - self._at} bytes are left over")

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) < count:
            raise self._malformed(f"{count} bytes should follow byte {self._at}, {len(taken)} do")
        self._at += count
        return taken

    def _malformed(self, why: str) -> DataError:
        return DataError(
            f"The {self._what} of a member of the connect group is malformed: {why}. Make sure that only workers of "
            "one Connect cluster use this group.id"
        )
