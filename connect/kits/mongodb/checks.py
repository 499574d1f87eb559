"""What a validation finds out by connecting, with the command that repairs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError
from connect.kits.mongodb.failures import told

if TYPE_CHECKING:
    from pymongo import MongoClient

__all__ = [
    "NO_REPLICA_SET",
    "NO_TRANSACTIONS",
    "collection_names",
    "is_replicated",
    "stream_problems",
    "transaction_problems",
]

_OF_SERVER: Final = ("admin", "config", "local")

NO_REPLICA_SET: Final = (
    "The server is no replica set, and only these have change streams: start mongod with --replSet, and run "
    "rs.initiate()."
)
NO_TRANSACTIONS: Final = (
    "delivery=exactly-once needs transactions, which a standalone server does not have: make it a replica set of one "
    "member (start mongod with --replSet, then rs.initiate()), or set delivery=at-least-once."
)


def is_replicated(client: MongoClient[Any]) -> bool:
    """Return whether the server is part of a replica set or of a sharded cluster."""
    with told("connect"):
        hello = client.admin.command("hello")
    return "setName" in hello or hello.get("msg") == "isdbgrid"


def stream_problems(connect: Callable[[], MongoClient[Any]]) -> Iterator[str]:
    """Yield why no change stream can be read: the server cannot be found, reached, signed in to, or has none."""
    yield from _problems(connect, NO_REPLICA_SET)


def transaction_problems(connect: Callable[[], MongoClient[Any]], *, needs_transactions: bool) -> Iterator[str]:
    """Yield why nothing can be written, or not in transactions if they are needed."""
    yield from _problems(connect, NO_TRANSACTIONS if needs_transactions else "")


def collection_names(client: MongoClient[Any]) -> Iterator[tuple[str, str]]:
    """Yield the database and name of each collection that the user may see, without the server's own.

    Raises :class:`~connect.errors.ConnectError` if the server does not answer. The client is closed.
    """
    with client, told("list the collections"):
        for database in client.list_database_names():
            if database not in _OF_SERVER:
                for name in client[database].list_collection_names(authorizedCollections=True):
                    if not name.startswith("system."):
                        yield database, name


def _problems(connect: Callable[[], MongoClient[Any]], unless_replicated: str) -> Iterator[str]:
    try:
        # The client looks a name of mongodb+srv:// up when it is made.
        with connect() as client, told("connect"):
            if not is_replicated(client) and unless_replicated:
                yield unless_replicated
            # Whether the user may sign in is seen with the first command that needs it.
            client.admin.command("connectionStatus")
    except ConnectError as error:
        yield str(error)
