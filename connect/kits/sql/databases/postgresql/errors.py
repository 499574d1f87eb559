"""Which errors of PostgreSQL pass by themselves, and why a server refuses a connection: its SQLSTATE.

libpq drops that. It makes a text of the answer, in the server's language (``lc_messages``), and psycopg's error has
neither the state nor ``diag``. So the server is asked once more, and libpq is told to make the text of states.
"""

from __future__ import annotations

import ctypes
import re
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn
    from sqlalchemy import Dialect

__all__ = ["connect_with_state", "is_transient", "is_transient_state"]

_CLASSES: Final = ("08", "53", "58")
"""A connection, resources or the server's files."""
_STATES: Final = frozenset(
    {
        *("40000", "40001", "40003", "40P01"),  # rolled back: conflict, unknown end, deadlock
        *("25006", "25P03"),  # a standby after a failover, a transaction that was idle for too long
        *("55006", "55P03"),  # an object in use, a lock
        *(
            "57014",
            "57P05",
            "57P01",
            "57P02",
            "57P03",
        ),  # cancelled, idle for too long, shutting down, crashed, starting
    }
)
_REFUSALS: Final = (
    "starting up", "shutting down", "recovery", "too many clients", "too many connections", "connection slots",
    "not yet accepting", "terminating connection",
)  # fmt: skip
"""What a server says in English that refuses a connection for now, where its SQLSTATE cannot be had."""
_OWN: Final = (
    "no password supplied", "does not support SSL", "certificate verify failed", "server certificate for",
    "certificate file", "authentication method", "channel binding", "GSSAPI encryption",
)  # fmt: skip
"""What libpq itself says of a server that it will not log in to: in English, as psycopg's has no translations."""
_ANSWER: Final = ":  "
"""What follows the severity in the text of a server's answer, in any language. Texts of libpq itself do not have it."""
_STATES_ONLY: Final = 3
"""PQERRORS_SQLSTATE"""
_STATE: Final = re.compile(r":  ([0-9A-Z]{5})$", re.MULTILINE)
_NOT_NOW: Final = "57P03"
_OF_POOLERS: Final = "08P01"
"""What PgBouncer's older versions say of every refusal. They say in English which it is."""
_ACCEPTED: Final = ""
_DEFAULT_SECONDS: Final = 10


def is_transient(error: BaseException) -> bool:
    """Return whether an error may pass by itself, by its SQLSTATE; :func:`connect_with_state` gives that of a refusal
    its own.

    Without one the server was not reached, or the connection was lost: that may pass, unless libpq itself gave up.
    """
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return is_transient_state(state)
    if type(error).__name__ not in ("OperationalError", "ConnectionTimeout", "InterfaceError"):
        return False
    text = str(error)
    if _is_answer(text):
        return any(words in text for words in _REFUSALS)
    return not any(words in text for words in _OWN)


def is_transient_state(state: str) -> bool:
    """Return whether what PostgreSQL reports by a SQLSTATE may pass."""
    return state.startswith(_CLASSES) or state in _STATES


def _is_answer(text: str) -> bool:
    """Return whether the text of libpq for a connection that failed has an answer of the server."""
    return _ANSWER in text


def connect_with_state(dialect: Dialect, arguments: Mapping[str, Any]) -> Any:
    """Connect with psycopg; the error of a server that refuses has its ``sqlstate``.

    Of several hosts a refusal counts that may pass, if there is one.
    """
    psycopg: Any = dialect.loaded_dbapi
    try:
        return dialect.connect(**arguments)
    except psycopg.OperationalError as error:
        set_verbosity = _function(psycopg, "PQsetErrorVerbosity")
        if error.sqlstate is None and _is_answer(str(error)) and set_verbosity is not None:
            set_verbosity.argtypes = [ctypes.c_void_p, ctypes.c_int]
            error.sqlstate = _state(list(_answers(psycopg, arguments, set_verbosity)))
        raise


def _state(answers: Sequence[str]) -> str | None:
    """Return the state to go by; ``None`` if the servers gave none."""
    refusals = [answer for answer in answers if _is_answer(answer)]
    if not refusals or _ACCEPTED in answers:
        # Of those that have just refused, one accepts or all have gone meanwhile.
        return _NOT_NOW
    states = [state for answer in refusals for state in _STATE.findall(answer) if state != _OF_POOLERS]
    return next(filter(is_transient_state, states), states[0] if states else None)


def _answers(psycopg: Any, arguments: Mapping[str, Any], set_verbosity: Any) -> Iterator[str]:
    """Yield what each host says to these arguments, with states in place of texts."""
    keys = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    own = {key: value for key, value in arguments.items() if key in keys}
    deadline = time.monotonic() + (int(arguments.get("connect_timeout", 0)) or _DEFAULT_SECONDS)
    lists = [str(arguments[key]).split(",") for key in ("host", "hostaddr", "port")]
    for host, address, port in zip(*lists, strict=True):
        place = {"host": host, "hostaddr": address, "port": port}
        connection = psycopg.pq.PGconn.connect_start(psycopg.conninfo.make_conninfo("", **{**own, **place}).encode())
        try:
            set_verbosity(connection.pgconn_ptr, _STATES_ONLY)
            is_accepted = _is_accepted(psycopg.pq.PollingStatus, connection, deadline)
            yield _ACCEPTED if is_accepted else connection.error_message.decode(errors="replace")
        finally:
            connection.finish()


def _function(psycopg: Any, name: str) -> Any:
    """Return a function of the libpq that psycopg has loaded; ``None`` if it is not compiled against one."""
    path = sys.modules[psycopg.pq.PGconn.__module__].__file__ or ""
    # What a library is linked with is searched too.
    return None if path.endswith(".py") else getattr(ctypes.CDLL(path), name, None)


def _is_accepted(polling: Any, connection: PGconn, deadline: float) -> bool:
    """Connect until the server accepts the connection or refuses it."""
    while (state := connection.connect_poll()) in (polling.READING, polling.WRITING):
        poll = select.poll()
        poll.register(connection.socket, select.POLLIN if state == polling.READING else select.POLLOUT)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return False
    return bool(state == polling.OK)
