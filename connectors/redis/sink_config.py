"""The options of the sink: the keys of both generations of Redis's own connector."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    at_least,
    invalid_value,
    one_of,
    option,
    validator,
)
from connect.errors import ConfigError
from connectors.redis.checks import server_problems
from connectors.redis.connection import ConnectionConfig
from connectors.redis.structures import COMMANDS, TYPES, Structure, Writing

__all__ = ["RedisSinkConfig", "charset", "python_charset"]

_PATHS: Final = ("redis.json.path", "redis.json.path.fixed")
_DEFAULT: Final = Structure.XADD
_MAXLEN: Final = "redis.stream.maxlen"


def python_charset(name: str) -> str | None:
    """Return Python's name of a character set; ``None`` if it is unknown."""
    try:
        found = codecs.lookup(name.strip()).name
        "".encode(found)
    except (LookupError, ValueError):
        return None
    return found


@validator("name of a character set")
def charset(key: str, value: str) -> None:
    """Refuse names that are unknown."""
    if python_charset(value) is None:
        raise invalid_value(key, value, "There is no character set of this name: UTF-8 is what Redis's tools read")


class RedisSinkConfig(ConnectionConfig):
    """Where to write, and what records become."""

    redis_type: str | None = option(
        default=None,
        importance=HIGH,
        validator=one_of(*TYPES, ignore_case=True),
        doc=f"The data structure: {', '.join(TYPES)}. By default redis.command says.",
    )
    redis_command: str | None = option(
        default=None,
        importance=HIGH,
        validator=one_of(*COMMANDS, ignore_case=True),
        doc=f"The command that writes a record: {', '.join(COMMANDS)}. By default redis.type says, or XADD.",
    )
    redis_push_direction: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=one_of("LEFT", "RIGHT", ignore_case=True),
        doc="For redis.type=LIST: to which end of the list items are pushed. By default to the right one.",
    )
    redis_key: str = option(
        default="${topic}",
        importance=MEDIUM,
        doc="The key of a collection, and the beginning of other keys, before redis.separator and the record's key. "
        "${topic} stands for the topic. Empty takes the record's key as it is.",
    )
    redis_keyspace: str | None = option(default=None, importance=MEDIUM, doc="The newer name of redis.key.")
    redis_separator: str = option(
        default=":", importance=MEDIUM, doc="What stands between redis.key and the record's key."
    )
    redis_charset: str = option(
        default="UTF-8", importance=MEDIUM, validator=charset, doc="The character set of keys and values."
    )
    redis_multiexec: bool | None = option(
        default=None,
        importance=MEDIUM,
        doc="Whether records are written in one transaction (MULTI) with their offsets, and so exactly once. "
        "By default yes for streams and lists, where a record that is written twice is there twice.",
    )
    redis_offset_behavior: Literal["Earliest", "None"] = option(
        default="Earliest",
        importance=LOW,
        doc="What to do with a partition whose offset is not in Redis, as after it was emptied: write it from its "
        "beginning (Earliest), or go on from the offset committed in Kafka (None).",
    )
    redis_wait_replicas: int = option(
        default=0, importance=MEDIUM, validator=at_least(0), doc="How many replicas must have what is written (WAIT)."
    )
    redis_wait_timeout: Long = option(
        default=1000, importance=MEDIUM, validator=at_least(1), doc="How many milliseconds to wait for the replicas."
    )
    redis_key_ttl: Long = option(
        default=-1,
        importance=MEDIUM,
        doc="How many seconds keys live after they were written; none or less is for ever. A record's header "
        "redis.key.ttl overrides it.",
    )
    redis_stream_maxlen: Long = option(
        default=0,
        importance=MEDIUM,
        validator=at_least(0),
        doc="About how many entries a stream keeps (MAXLEN ~); 0 keeps all.",
    )
    redis_json_path: str = option(
        default="$", importance=MEDIUM, doc="For JSONMERGE: the header that holds the path where a value is merged."
    )
    redis_json_path_fixed: str = option(
        default="$",
        importance=MEDIUM,
        doc="For JSONMERGE: the path where a value is merged if there is no such header.",
    )
    retry_backoff_ms: Long = option(
        default=1_000,
        importance=LOW,
        validator=at_least(1),
        doc="How long to wait before a server that does not answer is tried again. It is tried until it does.",
    )

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        place = "redis.uri" if self.redis_uri.value else "redis.host"
        for is_module, problem in server_problems(self.client, self.writing.structure):
            yield ConfigRuleError(problem, self.structure_key if is_module else place)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        yield from self._structure_errors()
        yield from self._transaction_errors()
        if self.redis_wait_replicas and self.redis_cluster:
            yield ConfigRuleError(
                "redis.wait.replicas cannot be told of a cluster, each of whose nodes has replicas of its own: set "
                "min-replicas-to-write on the servers, and remove redis.wait.replicas.",
                "redis.wait.replicas",
            )

    def warnings(self) -> Iterable[str]:
        """Yield warnings about a valid configuration."""
        if self.originals.get("redis.pool"):
            yield "The key redis.pool has no effect: a task has one connection, which keeps the order of its commands."

    @property
    def structure_key(self) -> str:
        """The key that says what records become."""
        return "redis.type" if self.redis_type else "redis.command"

    @property
    def structure(self) -> Structure:
        """What records become."""
        if self.redis_command:
            return COMMANDS[self.redis_command.strip().upper()]
        if self._pushes_left and self._named_type is Structure.RPUSH:
            return Structure.LPUSH
        return self._named_type or _DEFAULT

    @property
    def _pushes_left(self) -> bool:
        return (self.redis_push_direction or "").strip().upper() == "LEFT"

    @property
    def _named_type(self) -> Structure | None:
        return TYPES[self.redis_type.strip().upper()] if self.redis_type else None

    @property
    def writing(self) -> Writing:
        """How records are written."""
        structure = self.structure
        is_exact = structure.appends if self.redis_multiexec is None else self.redis_multiexec
        return Writing(
            structure=structure,
            keyspace=self._keyspace,
            separator=self.redis_separator.strip(),
            charset=python_charset(self.redis_charset) or "utf-8",
            ttl_seconds=max(0, self.redis_key_ttl),
            stream_length=self.redis_stream_maxlen,
            json_path_header=self.redis_json_path.strip(),
            json_path=self.redis_json_path_fixed.strip(),
            is_exact=is_exact,
            is_offset_tagged=self.redis_cluster and is_exact,
            keeps_offsets=structure is not Structure.PUBLISH,
            refills=self.redis_offset_behavior == "Earliest",
            wait_replicas=self.redis_wait_replicas,
            wait_ms=self.redis_wait_timeout,
            retry_seconds=self.retry_backoff_ms / 1000,
        )

    @property
    def _keyspace(self) -> str:
        return (self.redis_key if self.redis_keyspace is None else self.redis_keyspace).strip()

    def _structure_errors(self) -> Iterator[ConfigError]:
        if self.redis_type and self.redis_command:
            of_type, of_command = TYPES[self.redis_type.strip().upper()], self.structure
            pushes = {Structure.LPUSH, Structure.RPUSH}
            merges = {Structure.JSONSET, Structure.JSONMERGE}
            if of_type is not of_command and {of_type, of_command} not in (pushes, merges):
                yield ConfigRuleError(
                    f"redis.type={self.redis_type} and redis.command={self.redis_command} are different structures: "
                    "remove one of them.",
                    *("redis.type", "redis.command"),
                )
        if self.redis_keyspace is not None and "redis.key" in self.originals and self.redis_keyspace != self.redis_key:
            yield ConfigRuleError(
                "redis.keyspace and redis.key are two names of one option: remove one of them.",
                *("redis.keyspace", "redis.key"),
            )
        structure = self.structure
        pushed = {True: Structure.LPUSH, False: Structure.RPUSH}[self._pushes_left]
        if self.redis_push_direction and structure is not pushed:
            key = "redis.push.direction"
            yield ConfigRuleError(
                f"{key}={self.redis_push_direction} requires redis.type=LIST: remove one of them.", key
            )
        if structure.is_collection and not self._keyspace:
            yield ConfigRuleError(
                f"{structure} writes all records to one key: set redis.key, such as ${{topic}}.", "redis.key"
            )
        for key in _PATHS:
            if structure is not Structure.JSONMERGE and self.originals.get(key):
                yield ConfigRuleError(f"{key} requires redis.command=JSONMERGE: set it, or remove {key}.", key)
        if self.redis_stream_maxlen and structure is not Structure.XADD:
            yield ConfigRuleError(f"{_MAXLEN} requires redis.type=STREAM: set it, or remove {_MAXLEN}.", _MAXLEN)

    def _transaction_errors(self) -> Iterator[ConfigError]:
        if self.redis_multiexec and not self.structure.is_transactional:
            names = ", ".join(item for item in Structure if item.is_transactional)
            yield ConfigRuleError(
                f"redis.multiexec=true is for {names}: remove it. What {self.structure} writes twice is there once.",
                "redis.multiexec",
            )
