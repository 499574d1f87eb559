"""A connection to RabbitMQ and the thread that serves it, and what its failures mean."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from connect.errors import ConnectError, MissingError, RetriableError, os_reason
from connectors.rabbitmq.config import ConnectionConfig

if TYPE_CHECKING:
    from pika.adapters.select_connection import IOLoop
    from pika.connection import Connection

__all__ = ["Session", "channel_failure", "connection_failure"]

_log = logging.getLogger(__name__)

_Opened: TypeAlias = "Callable[[Connection], None]"

_NOT_FOUND: Final = 404
_ACCESS_REFUSED: Final = 403
_RESOURCE_LOCKED: Final = 405
_PRECONDITION_FAILED: Final = 406
_NOT_ALLOWED: Final = 530
_NOT_IMPLEMENTED: Final = 540
_CLOSING_SECONDS: Final = 5.0
_CONNECTING_SECONDS: Final = 2.0
"""How long a connection that is being made when it is to be closed may take: the library forgets to close its socket
when it is to stop before."""


def connection_failure(error: BaseException, config: ConnectionConfig) -> ConnectError:
    """Return what a failed or lost connection means: an error that is retried, or one that fails the task."""
    from pika import exceptions  # noqa: PLC0415 - the library is loaded only where it is used

    reason = _first_cause(error)
    if isinstance(reason, ConnectError):
        return reason
    where = f"RabbitMQ at {config.place}"
    if isinstance(reason, exceptions.ProbableAuthenticationError | exceptions.AuthenticationError):
        return ConnectError(
            f"{where} refuses the user {config.rabbitmq_username}: correct rabbitmq.username and rabbitmq.password. "
            "(The user guest may sign in from the server's own machine only.)"
        )
    denied = isinstance(reason, exceptions.ProbableAccessDeniedError)
    closed: Any = reason if isinstance(reason, exceptions.ConnectionClosedByBroker) else None
    if denied or (closed is not None and closed.reply_code in (_NOT_ALLOWED, _ACCESS_REFUSED)):
        return _denied(config, closed.reply_text if closed is not None else str(reason))
    if (permanent := _misconfigured(reason, where)) is not None:
        return permanent
    text = os_reason(reason) or type(reason).__name__
    if closed is not None:
        return RetriableError(
            f"{where} has closed the connection: {closed.reply_text} (code {closed.reply_code}).",
            config.recovery_seconds,
        )
    return RetriableError(f"The connection to {where} has failed: {text}.", config.recovery_seconds)


def _misconfigured(reason: BaseException, where: str) -> ConnectError | None:
    """Return the error of a connection that cannot come about before something is corrected."""
    from pika import exceptions  # noqa: PLC0415 - the library is loaded only where it is used

    if isinstance(reason, exceptions.IncompatibleProtocolError):
        return ConnectError(
            f"{where} does not speak AMQP 0-9-1, or wants TLS: check rabbitmq.port and rabbitmq.security.protocol."
        )
    if isinstance(reason, ssl.SSLCertVerificationError):
        return ConnectError(
            f"The certificate of {where} is not trusted: {reason}. Check the keys rabbitmq.https.ssl.*, and that "
            "rabbitmq.host is a name in the certificate."
        )
    if isinstance(reason, ssl.SSLError) and reason.reason == "WRONG_VERSION_NUMBER":
        return ConnectError(
            f"{where} does not speak TLS: correct rabbitmq.port, or set rabbitmq.security.protocol=PLAINTEXT."
        )
    return None


def channel_failure(error: BaseException, what: str, config: ConnectionConfig) -> ConnectError:
    """Return what the end of a channel means that was for ``what``, such as "the queue orders"."""
    from pika import exceptions  # noqa: PLC0415 - the library is loaded only where it is used

    if not isinstance(error, exceptions.ChannelClosedByBroker):
        return RetriableError(f"The channel for {what} has ended: {error}.", config.recovery_seconds)
    told = error.reply_text
    if error.reply_code == _NOT_FOUND:
        return MissingError(
            f"RabbitMQ does not have {what} in the virtual host {config.rabbitmq_virtual_host}, or not now: {told}. "
            "Declare it; nothing else needs to be done.",
            config.recovery_seconds,
        )
    if error.reply_code == _ACCESS_REFUSED:
        return ConnectError(
            f"RabbitMQ refuses access to {what}: {told}. Grant the right, for example by `rabbitmqctl set_permissions "
            f"-p {config.rabbitmq_virtual_host} {config.rabbitmq_username} CONFIGURE WRITE READ`."
        )
    if error.reply_code == _NOT_IMPLEMENTED:
        return ConnectError(f"RabbitMQ cannot do that with {what}: {told}.")
    if error.reply_code == _RESOURCE_LOCKED:
        told = f"{told}. Another client has it for itself"
    text = f"RabbitMQ has closed the channel for {what}: {told} (code {error.reply_code})."
    return RetriableError(text, config.recovery_seconds)


def _denied(config: ConnectionConfig, told: str) -> ConnectError:
    vhost, user = config.rabbitmq_virtual_host, config.rabbitmq_username
    return ConnectError(
        f"RabbitMQ does not let the user {user} into the virtual host {vhost}: {told}. Correct rabbitmq.virtual.host, "
        f"or grant the right by `rabbitmqctl set_permissions -p {vhost} {user} CONFIGURE WRITE READ`."
    )


def _first_cause(error: BaseException) -> BaseException:
    """Return the error below those in which the library wraps what several attempts have met."""
    causes: list[Any] = list(getattr(error, "exceptions", ()))
    if causes:
        return _first_cause(causes[-1])
    wrapped = getattr(error, "exception", None)
    if isinstance(wrapped, BaseException):
        return _first_cause(wrapped)
    nested = next((each for each in error.args if isinstance(each, BaseException)), None)
    return error if nested is None else _first_cause(nested)


class Session:
    """One connection. It ends for good when it is lost: its user then makes another.

    ``opened`` is called in the session's thread, and ``ended`` at its end, from that thread.
    """

    def __init__(self, config: ConnectionConfig, opened: _Opened, ended: Callable[[], None]) -> None:
        self._config = config
        self._opened = opened
        self._ended = ended
        self._loop: IOLoop | None = None
        self._connection: Connection | None = None
        self._failure: ConnectError | None = None
        self._is_closing = False
        self._thread = threading.Thread(target=self._run, name="rabbitmq", daemon=True)

    def start(self) -> None:
        """Connect, in a thread."""
        from pika.adapters.select_connection import IOLoop  # noqa: PLC0415 - loaded only where it is used

        self._loop = IOLoop()
        self._thread.start()

    @property
    def failure(self) -> ConnectError | None:
        """Why the session has ended, if it has."""
        return self._failure if not self._thread.is_alive() else None

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def call(self, function: Callable[[], object]) -> None:
        """Have the session's thread call a function soon; nothing happens if it has ended."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.add_callback_threadsafe(lambda: self._called(function))

    def later(self, seconds: float, function: Callable[[], object]) -> None:
        """Have a function called after some time. Called in the session's thread."""
        if self._loop is not None:
            self._loop.call_later(seconds, lambda: self._called(function))

    def fail(self, error: ConnectError) -> None:
        """End the session for a reason. Called in the session's thread."""
        self._failure = self._failure or error
        self._close_connection()

    def close(self) -> None:
        """Close the connection after all that was asked for before, and end the thread."""
        if not self._thread.is_alive():
            return
        self.call(self._close_connection)
        self._thread.join(_CLOSING_SECONDS if self._connection is not None else _CONNECTING_SECONDS)
        if self._thread.is_alive() and self._loop is not None:
            _log.warning("RabbitMQ does not answer; its connection is dropped.")
            self._loop.add_callback_threadsafe(self._loop.stop)
            self._thread.join(_CLOSING_SECONDS)

    def _called(self, function: Callable[[], object]) -> None:
        try:
            function()
        except Exception as error:
            self.fail(connection_failure(error, self._config))

    def _close_connection(self) -> None:
        self._is_closing = True
        if self._connection is not None and self._connection.is_open:
            self._connection.close()

    def _run(self) -> None:
        from pika import SelectConnection  # noqa: PLC0415 - loaded only where it is used

        loop = self._loop
        assert loop is not None
        try:
            SelectConnection.create_connection(self._config.parameters(), self._done, custom_ioloop=loop)
            loop.start()
        except Exception as error:
            self._failure = self._failure or connection_failure(error, self._config)
        finally:
            self._failure = self._failure or RetriableError("The connection to RabbitMQ has ended.")
            loop.close()
            self._ended()

    def _done(self, made: Connection | BaseException) -> None:
        assert self._loop is not None
        if isinstance(made, BaseException):
            self._failure = self._failure or connection_failure(made, self._config)
            self._loop.stop()
            return
        self._connection = made
        made.add_on_close_callback(self._closed)
        if self._is_closing:
            made.close()
        else:
            self._called(lambda: self._opened(made))

    def _closed(self, _connection: Connection, error: BaseException) -> None:
        self._failure = self._failure or connection_failure(error, self._config)
        if self._loop is not None:
            self._loop.stop()
