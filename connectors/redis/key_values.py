"""Keys and their values, as records tell them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Schema
from connect.errors import DataError
from connectors.redis.failures import Kind, failure, kind_of, told
from connectors.redis.server import Client

__all__ = ["KEY_VALUE_SCHEMA", "KeyState", "read_keys"]

KEY_VALUE_SCHEMA: Final = Schema.struct(
    {
        "key": Schema.string(),
        "ttl": Schema.int64(optional=True),
        "type": Schema.string(),
        "hash": Schema.map(Schema.string(), Schema.string(), optional=True),
        "string": Schema.string(optional=True),
        "json": Schema.string(optional=True),
        "list": Schema.array(Schema.string(), optional=True),
        "set": Schema.array(Schema.string(), optional=True),
        "zset": Schema.map(Schema.string(), Schema.float64(), optional=True),
    },
    name="com.redis.kafka.connect.keys.Value",
)

_JSON: Final = "ReJSON-RL"
_NO_KEY: Final = "none"


@dataclass(frozen=True, slots=True)
class KeyState:
    """A key with its value. ``error`` says why the value cannot be told, in place of it."""

    key: bytes
    value: Mapping[str, Any]
    error: DataError | None = None


def _texts(answer: Sequence[bytes]) -> list[str]:
    return [item.decode() for item in answer]


def _pairs(answer: Any) -> dict[str, str]:
    items = answer.items() if isinstance(answer, Mapping) else zip(answer[::2], answer[1::2], strict=True)
    return {name.decode(): value.decode() for name, value in items}


def _scores(answer: Any) -> dict[str, float]:
    if answer and isinstance(answer[0], bytes):
        answer = zip(answer[::2], answer[1::2], strict=True)
    return {member.decode(): float(score) for member, score in answer}


def _sorted_texts(answer: Any) -> list[str]:
    return sorted(_texts(answer))


_READERS: Final[Mapping[str, tuple[str, tuple[Any, ...], Callable[[Any], Any]]]] = {
    "string": ("GET", (), lambda answer: answer.decode()),
    "hash": ("HGETALL", (), _pairs),
    "list": ("LRANGE", (0, -1), _texts),
    "set": ("SMEMBERS", (), _sorted_texts),
    "zset": ("ZRANGE", (0, -1, "WITHSCORES"), _scores),
    _JSON: ("JSON.GET", (), lambda answer: answer if isinstance(answer, str) else answer.decode()),
}
"""By the type of a key: the command that reads its value, its arguments, and what becomes of the answer."""


def read_keys(client: Client, keys: Sequence[bytes]) -> list[KeyState]:
    """Return the states of keys. One that changes its type meanwhile is left out: its change is told anew."""
    with told("read keys"):
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.execute_command("TYPE", key)
            pipe.execute_command("PTTL", key)
        about = pipe.execute()
        types = [_text(item) for item in about[::2]]
        for key, kind in zip(keys, types, strict=True):
            if kind in _READERS:
                command, arguments, _ = _READERS[kind]
                pipe.execute_command(command, key, *arguments)
        answers = iter(pipe.execute(raise_on_error=False))
    found = []
    for key, kind, ttl in zip(keys, types, about[1::2], strict=True):
        answer = next(answers) if kind in _READERS else None
        if isinstance(answer, Exception):
            if kind_of(answer) is not Kind.RECORD:
                raise failure(answer, "read keys") or answer
            continue
        if kind in _READERS and answer is None:
            # It was deleted between the two reads.
            kind, ttl = _NO_KEY, -2  # noqa: PLW2901
        found.append(_state(key, kind, int(ttl), answer))
    return found


def _state(key: bytes, kind: str, ttl: int, answer: Any) -> KeyState:
    shown = "json" if kind == _JSON else kind
    value: dict[str, Any] = dict.fromkeys(field.name for field in KEY_VALUE_SCHEMA.fields)
    value |= {"key": key.decode(errors="backslashreplace"), "ttl": ttl, "type": shown}
    try:
        value["key"] = key.decode()
        if kind in _READERS:
            value[shown] = _READERS[kind][2](answer)
    except UnicodeError:
        return KeyState(key, value, DataError(f"The key {value['key']} or its value is not UTF-8."))
    return KeyState(key, value)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
