"""What a validation finds out by connecting."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from connect.errors import ConnectError
from connectors.redis.failures import told
from connectors.redis.server import Client
from connectors.redis.structures import Structure

__all__ = ["module_problem", "server_problems"]


def module_problem(client: Client, structure: Structure) -> str | None:
    """Return what the server lacks to write a structure; ``None`` if it lacks nothing."""
    command = structure.module_command
    if command is None:
        return None
    with told("ask Redis for its commands"):
        found = client.execute_command("COMMAND", "INFO", command)
    known = found.get(command) if isinstance(found, dict) else (found or [None])[0]
    if known is not None:
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
