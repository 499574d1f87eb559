"""Errors of the client, in the kinds that the runtime knows: to be retried, of one record, or permanent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Final

from connect.errors import ConnectError, RetriableError

__all__ = ["Kind", "code_of", "failure", "kind_of", "told"]


class Kind(Enum):
    """What an error of the server or of the connection is about."""

    PASSING = "passing"
    """The same command may succeed later."""

    PERMANENT = "permanent"
    """Nothing succeeds until somebody changes the configuration or the server."""

    RECORD = "record"
    """The server refuses this command; others may succeed."""


_PASSING: Final = frozenset(
    {
        "LOADING",  # The server reads its data after a start.
        "READONLY",  # It has become a replica.
        "OOM",  # It has no memory left; keys may expire, be evicted or deleted.
        "MISCONF",  # It cannot write to its disk.
        "NOREPLICAS",  # Fewer replicas than min-replicas-to-write.
        "MASTERDOWN",
        "CLUSTERDOWN",
        "TRYAGAIN",
        "ASK",
        "BUSY",  # A script runs.
        "UNBLOCKED",
    }
)
_PERMANENT: Final = frozenset({"NOAUTH", "WRONGPASS", "NOPERM", "MOVED", "CROSSSLOT", "NOPROTO", "EXECABORT"})
_ADVICE: Final[Mapping[str, str]] = {
    "OOM": "the server has reached its maxmemory: give it more, or let it evict keys",
    "MISCONF": "the server cannot write to its disk",
    "READONLY": "the server is a replica, perhaps since a failover",
    "NOAUTH": "set redis.password",
    "WRONGPASS": "the user or the password is wrong",
    "NOPERM": "grant the user the command and the keys, as with ACL SETUSER",
    "MOVED": "the server is part of a cluster: set redis.cluster=true (redis.client.mode=Cluster)",
    "CROSSSLOT": "keys of one transaction lie on several nodes of the cluster",
}
_UNKNOWN_COMMAND: Final = "unknown command"
_UNTRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"
_TOO_MANY_CLIENTS: Final = "max number of clients"


def code_of(error: Exception) -> str:
    """Return the first word of the server's answer, such as OOM; empty if the error is no answer of the server."""
    code = getattr(error, "status_code", None)
    if isinstance(code, str) and code:
        return code
    first = str(error).partition(" ")[0]
    return first if first.isupper() else ""


def kind_of(error: Exception) -> Kind | None:  # noqa: PLR0911
    """Return what an error is about; ``None`` if it is none of the client's or the network's."""
    from redis import exceptions  # noqa: PLC0415 - the client is loaded only where it is used

    if isinstance(error, exceptions.WatchError):
        return None
    code, text = code_of(error), str(error)
    denied = (exceptions.AuthenticationError, exceptions.AuthorizationError)
    if code in _PERMANENT or _UNTRUSTED in text or isinstance(error, denied):
        return Kind.PERMANENT
    if code in _PASSING or _TOO_MANY_CLIENTS in text:
        return Kind.PASSING
    if isinstance(error, (exceptions.MovedError, exceptions.ClusterCrossSlotError, exceptions.ExecAbortError)):
        return Kind.PERMANENT
    passing = (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.RedisClusterException, OSError)
    if isinstance(error, (*passing, exceptions.ClusterError, exceptions.SlotNotCoveredError)):
        return Kind.PASSING
    if isinstance(error, exceptions.ResponseError):
        return Kind.PERMANENT if _UNKNOWN_COMMAND in text else Kind.RECORD
    return Kind.PERMANENT if isinstance(error, exceptions.RedisError) else None


def failure(error: Exception, what: str) -> ConnectError | None:
    """Return the error of the plugin API that an error of the client stands for; ``None`` if it is another error.

    ``what`` says what failed, as in "write records".
    """
    kind = kind_of(error)
    if kind is None:
        return None
    advice = _ADVICE.get(code_of(error))
    text = f"Cannot {what}: {error}" + (f"; {advice}." if advice else "")
    return RetriableError(text) if kind is Kind.PASSING else ConnectError(text)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn errors of the client into those of the plugin API; ``what`` says what is done."""
    try:
        yield
    except ConnectError:
        raise
    except Exception as error:
        known = failure(error, what)
        if known is None:
            raise
        raise known from error
