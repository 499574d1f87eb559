"""Java class files that say what they descend from, and nothing else."""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["ABSTRACT", "PUBLIC", "class_file"]

PUBLIC: Final = 0x0001
ABSTRACT: Final = 0x0400


def class_file(name: str, *parents: str, flags: int = PUBLIC) -> bytes:
    """A class that has nothing but ancestors, the first of which it extends."""
    names = [name, *parents]
    constants = b"".join(
        struct.pack(">BHBH", 7, 2 * number + 2, 1, len(each)) + each.replace(".", "/").encode()
        for number, each in enumerate(names)
    )
    # A long takes two places among the constants.
    constants += struct.pack(">BqBi", 5, 7, 3, 7)
    places = [2 * number + 1 for number in range(len(names))]
    own = struct.pack(f">3HH{len(parents) - 1}H", flags, *places[:2], len(parents) - 1, *places[2:])
    return b"\xca\xfe\xba\xbe\x00\x00\x00\x3d" + struct.pack(">H", 2 * len(names) + 4) + constants + own
