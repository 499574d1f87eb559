"""The data structures that records are written to, by the names of both generations of Redis's own connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["COMMANDS", "TYPES", "Structure", "Writing"]


class Structure(StrEnum):
    """What a record becomes: named by the command that writes it."""

    SET = "SET"
    HSET = "HSET"
    JSONSET = "JSONSET"
    JSONMERGE = "JSONMERGE"
    XADD = "XADD"
    LPUSH = "LPUSH"
    RPUSH = "RPUSH"
    SADD = "SADD"
    ZADD = "ZADD"
    TSADD = "TSADD"
    DEL = "DEL"
    PUBLISH = "PUBLISH"

    @property
    def is_collection(self) -> bool:
        """Whether all records of a topic go to one key (or channel)."""
        return self in _COLLECTIONS

    @property
    def appends(self) -> bool:
        """Whether a record that is written twice is there twice."""
        return self in _APPENDING

    @property
    def is_transactional(self) -> bool:
        """Whether records can be written in one transaction with their offsets."""
        return self in _TRANSACTIONAL

    @property
    def redis_type(self) -> str:
        """What TYPE answers of the key of a collection."""
        return _TYPES_OF_KEYS[self]

    @property
    def module_command(self) -> str | None:
        """The server's command that is there only if its module is."""
        return _OF_MODULES.get(self)


_COLLECTIONS: Final = frozenset(
    Structure(name) for name in ("XADD", "LPUSH", "RPUSH", "SADD", "ZADD", "TSADD", "PUBLISH")
)
_APPENDING: Final = frozenset({Structure.XADD, Structure.LPUSH, Structure.RPUSH})
_TRANSACTIONAL: Final = _APPENDING | {Structure.SADD, Structure.ZADD}
_TYPES_OF_KEYS: Final[Mapping[Structure, str]] = {
    Structure.XADD: "stream",
    Structure.LPUSH: "list",
    Structure.RPUSH: "list",
    Structure.SADD: "set",
    Structure.ZADD: "zset",
}
_OF_MODULES: Final[Mapping[Structure, str]] = {
    Structure.JSONSET: "JSON.SET",
    Structure.JSONMERGE: "JSON.MERGE",
    Structure.TSADD: "TS.ADD",
}

COMMANDS: Final[Mapping[str, Structure]] = {item.value: item for item in Structure}
"""The values of ``redis.command``."""

TYPES: Final[Mapping[str, Structure]] = {
    "STRING": Structure.SET,
    "HASH": Structure.HSET,
    "JSON": Structure.JSONSET,
    "STREAM": Structure.XADD,
    "LIST": Structure.RPUSH,
    "SET": Structure.SADD,
    "ZSET": Structure.ZADD,
    "TIMESERIES": Structure.TSADD,
    "PUBSUB": Structure.PUBLISH,
}
"""The values of ``redis.type``."""


@dataclass(frozen=True, slots=True)
class Writing:
    """How records are written, whatever the keys of the configuration are."""

    structure: Structure
    keyspace: str = ""
    """The key of a collection and the beginning of others; ``${topic}`` stands for the topic."""
    separator: str = ":"
    charset: str = "utf-8"
    ttl_seconds: int = 0
    """How long keys live; 0 is for ever."""
    stream_length: int = 0
    """About how many entries a stream keeps; 0 keeps all."""
    json_path_header: str = ""
    json_path: str = "$"
    is_exact: bool = False
    """Whether records are written in one transaction with their offsets."""
    java_offset_prefix: str = "com.redis.kafka.connect.sink.offset."
    is_offset_tagged: bool = False
    """Whether the keys of offsets lie in the slot of the collection."""
    keeps_offsets: bool = True
    refills: bool = True
    """Whether a partition without an offset in Redis is written from its beginning."""
    wait_replicas: int = 0
    wait_ms: int = 1000
    retry_seconds: float = 1.0
