"""Asks a source connector whether it supports exactly-once with its configuration (KIP-618)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from connect.errors import ConfigError
from connect.source import ConnectorTransactionBoundaries, ExactlyOnceSupport, SourceConnector
from worker.runtime.assembly import Assembly

__all__ = ["exactly_once_errors"]

T = TypeVar("T")
_SUPPORT = "exactly.once.support"
_BOUNDARY = "transaction.boundary"


def exactly_once_errors(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """Yield keys with their errors, in Kafka Connect's words."""
    if not issubclass(assembly.connector_class, SourceConnector):
        return
    connector = assembly.connector_class
    # The raw values: these two keys count even if others are invalid.
    requires = assembly.props.get(_SUPPORT, "").strip().lower() == "required"
    if requires and not assembly.supports_exactly_once:
        yield _SUPPORT, "This worker does not have exactly-once source support enabled."
    try:
        own = assembly.connector_config
    except ConfigError:
        # The errors of its keys are already reported, and without valid keys it cannot answer.
        return
    if requires:
        support = _asked(lambda: connector.exactly_once_support(own))
        if (error := support if isinstance(support, str) else _support_error(support)) is not None:
            yield _SUPPORT, error
    if assembly.props.get(_BOUNDARY, "").strip().lower() == "connector":
        answer = _asked(lambda: connector.can_define_transaction_boundaries(own))
        if (error := answer if isinstance(answer, str) else _boundary_error(answer)) is not None:
            yield _BOUNDARY, error


def _asked(question: Callable[[], T]) -> T | str:
    """Return the connector's answer, or the text of its error."""
    try:
        return question()
    except Exception as error:
        return f"An unexpected error occurred during validation: {error}"


def _support_error(support: ExactlyOnceSupport | None) -> str | None:
    if support is None:
        return (
            "The connector does not implement the API required for preflight validation of exactly-once source "
            "support. Please consult the documentation for the connector to determine whether it supports exactly-once "
            'semantics, and then consider reconfiguring the connector to use the value "requested" for this property '
            "(which will disable this preflight check and allow the connector to be created)."
        )
    if support is ExactlyOnceSupport.SUPPORTED:
        return None
    return "The connector does not support exactly-once semantics with the provided configuration."


def _boundary_error(answer: ConnectorTransactionBoundaries) -> str | None:
    if answer is ConnectorTransactionBoundaries.SUPPORTED:
        return None
    return (
        "The connector does not support connector-defined transaction boundaries with the given configuration. Please "
        "reconfigure it to use a different transaction boundary definition."
    )
