"""What a validation finds out by connecting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from connect.errors import ConnectError, RetriableError
from connectors.redis.failures import told
from connectors.redis.server import Client
from connectors.redis.structures import Structure

__all__ = ["module_problem", "notification_problem", "notification_problems", "server_problems"]

_KEYSPACE: Final = "K"
_CLASSES: Final = frozenset("Ag$lshzxetd")
_SETTING: Final = "notify-keyspace-events"


def module_problem(client: Client, structure: Structure) -> str | None:
    """Return what the server lacks to write a structure; ``None`` if it lacks nothing."""
    command = structure.module_command
    if command is None:
        return None
    try:
        with told("ask Redis for its commands"):
            client.execute_command("COMMAND", "INFO", command)
    except TypeError:
        # The client cannot read the answer about a command that the server does not know.
        pass
    else:
        return None
    module = "RedisTimeSeries" if command.startswith("TS.") else "RedisJSON"
    return (
        f"The server has no command {command}: {structure} needs Redis 8, or an older one with the module {module}. "
        "Choose another structure, such as HASH or STRING, or another server."
    )


def server_problems(connect: Callable[[], Client], structure: Structure | None = None) -> Iterator[tuple[bool, str]]:
    """Yield why the server cannot be reached or signed in to, or lacks a module, which the first value tells."""
    try:
        client = connect()
        try:
            with told("connect to Redis"):
                client.execute_command("PING")
            if structure is not None and (problem := module_problem(client, structure)):
                yield True, problem
        finally:
            client.close()
    except ConnectError as error:
        yield False, str(error)


def notification_problem(client: Client) -> str | None:
    """Return why a server does not tell of changes; ``None`` if it does, or does not say."""
    try:
        with told(f"ask for {_SETTING}"):
            found = client.execute_command("CONFIG GET", _SETTING)
    except RetriableError:
        raise
    except ConnectError:
        # Services do not let their users ask.
        return None
    pairs = found if isinstance(found, Mapping) else dict(zip(found[::2], found[1::2], strict=True))
    value = next((item for name, item in pairs.items() if _text(name) == _SETTING), None)
    if value is None:
        return None
    flags = set(_text(value))
    if _KEYSPACE in flags and flags & _CLASSES:
        return None
    return (
        f"The server does not tell which keys change ({_SETTING} is {_text(value)!r}): set it to KEA, by CONFIG SET "
        f"{_SETTING} KEA and in its redis.conf."
    )


def notification_problems(connect: Callable[[], Client]) -> Iterator[str]:
    """Yield why the keys of a server cannot be watched."""
    try:
        client = connect()
        try:
            if problem := notification_problem(client):
                yield problem
            with told("connect to Redis"):
                client.execute_command("PING")
        finally:
            client.close()
    except ConnectError as error:
        yield str(error)


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
