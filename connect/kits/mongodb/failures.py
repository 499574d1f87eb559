"""Errors of the driver, in the kinds that the runtime knows: to be retried, of one record, or permanent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from connect.errors import ConnectError, RetriableError

__all__ = [
    "DUPLICATE_KEY",
    "failure",
    "is_lost_position",
    "is_passing_code",
    "is_too_large",
    "told",
    "too_large",
    "write_error_text",
]

DUPLICATE_KEY: Final = 11000

_PASSING: Final = frozenset(
    {
        6,  # HostUnreachable
        7,  # HostNotFound
        24,  # LockTimeout
        43,  # CursorNotFound
        46,  # LockBusy
        50,  # MaxTimeMSExpired
        64,  # WriteConcernTimeout
        89,  # NetworkTimeout
        91,  # ShutdownInProgress
        112,  # WriteConflict
        134,  # ReadConcernMajorityNotAvailableYet
        175,  # QueryPlanKilled
        189,  # PrimarySteppedDown
        225,  # TransactionTooOld
        236,  # SessionNotFound of a server that restarted
        244,  # TransactionAborted
        251,  # NoSuchTransaction
        262,  # ExceededTimeLimit
        290,  # TransactionExceededLifetimeLimitSeconds
        314,  # ObjectIsBusy
        317,  # ConnectionPoolExpired
        358,  # InternalTransactionNotSupported while a cluster is upgraded
        384,  # ConnectionError
        388,  # TransactionTooLargeForCache, of which smaller ones may find room
        9001,  # SocketException
        10058,
        10107,  # NotWritablePrimary
        11600,  # InterruptedAtShutdown
        11602,  # InterruptedDueToReplStateChange
        13388,  # StaleConfig
        13435,  # NotPrimaryNoSecondaryOk
        13436,  # NotPrimaryOrSecondary
    }
)
"""Codes of the server's errors that pass: the same operation may succeed later."""

_ADVICE: Final[Mapping[int, str]] = {
    13: "the user lacks the right for it: grant the role readWrite (for change streams read) on the database",
    18: "the user or the password of connection.uri is wrong",
    40573: "it is no replica set, and only these have change streams: start mongod with --replSet, and run "
    "rs.initiate()",
    20: "the server does not allow it, as a single server without a replica set does not allow transactions and change "
    "streams",
    263: "transactions do not allow it",
    8000: "the user or the password of connection.uri is wrong",
}
_TOO_LARGE: Final = 10334
_LOST: Final = frozenset({136, 222, 234, 260, 280, 286})
"""Codes of a resume token that the server cannot continue from."""
_LABELS: Final = ("TransientTransactionError", "RetryableWriteError", "UnknownTransactionCommitResult")


def is_lost_position(error: Exception) -> bool:
    """Return whether the server cannot continue a change stream from the resume token that it was given."""
    return getattr(error, "code", None) in _LOST or "resume token" in str(error)


def is_too_large(error: Exception) -> bool:
    """Return whether an event is larger than the server can send."""
    return getattr(error, "code", None) == _TOO_LARGE


def too_large(error: Exception) -> ConnectError | None:
    """Return the error for an event that is larger than the server can send; ``None`` for other errors."""
    if not is_too_large(error):
        return None
    return ConnectError(
        f"A change event is larger than 16 MB and cannot be read ({error}). Let it have less: leave out the whole "
        "document of updates, or the document before the change."
    )


def is_passing_code(code: int | None) -> bool:
    """Return whether an error of the server with this code passes."""
    return code in _PASSING


def failure(error: Exception, what: str) -> ConnectError | None:
    """Return the error of the plugin API that an error of the driver stands for; ``None`` if it is another error.

    ``what`` says what failed, as in "write records".
    """
    from pymongo import errors  # noqa: PLC0415 - the driver is loaded only where it is used

    if not isinstance(error, errors.PyMongoError):
        return None
    told = f"Cannot {what}: {_text(error)}"
    if isinstance(error, errors.ConfigurationError):
        return ConnectError(f"{told}; correct connection.uri.")
    if isinstance(error, (errors.ConnectionFailure, errors.WaitQueueTimeoutError)):
        return RetriableError(told)
    if isinstance(error, errors.OperationFailure):
        if is_passing_code(error.code) or any(map(error.has_error_label, _LABELS)):
            return RetriableError(told)
        advice = _ADVICE.get(error.code or 0)
        return ConnectError(f"{told}; {advice}." if advice else told)
    return ConnectError(told)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn errors of the driver into those of the plugin API; ``what`` says what is done."""
    try:
        yield
    except ConnectError:
        raise
    except Exception as error:
        known = failure(error, what)
        if known is None:
            raise
        raise known from error


def write_error_text(error: Mapping[str, Any]) -> str:
    """Return the server's reasons for refusing one write, in the form of the Java connector's dead letters."""
    details = error.get("errInfo") or {}
    return f"v=1, code={error.get('code')}, message={error.get('errmsg')}, details={details!r}"


def _text(error: Exception) -> str:
    """Return the message of an error without the description of the topology, which repeats it for each server."""
    text = str(error)
    text = text.partition(", Timeout: ")[0].partition(", full error: ")[0]
    code = getattr(error, "code", None)
    return f"{text} (code {code})" if code is not None else text
