"""Errors raised by calls of a producer."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError, KafkaException

__all__ = ["PRODUCER_FAILURES", "kafka_error"]

PRODUCER_FAILURES: Final = (KafkaException, SystemError)
"""The errors that calls of a producer raise: a ``SystemError`` if a callback runs while a fatal error is raised."""


def kafka_error(error: BaseException) -> KafkaError:
    """Return the client's ``KafkaError`` inside this error; raise the error again if there is none."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KafkaException):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        raise error
    refusal: KafkaError = cause.args[0]
    return refusal
