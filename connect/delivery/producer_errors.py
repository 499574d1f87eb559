"""What calls of a producer fail with."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError, KafkaException

__all__ = ["PRODUCER_FAILURES", "kafka_error"]

PRODUCER_FAILURES: Final = (KafkaException, SystemError)
"""What calls of a producer raise: a ``SystemError`` if a callback runs while it tells of a fatal error."""


def kafka_error(error: BaseException) -> KafkaError:
    """The error of Kafka's client within this one; raises it again if it is not the client's."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KafkaException):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        raise error
    told: KafkaError = cause.args[0]
    return told
