"""Whether a source connector supports exactly-once with its configuration (KIP-618), in Kafka Connect's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

from connect.source import ConnectorTransactionBoundaries, ExactlyOnceSupport

__all__ = ["exactly_once_faults"]

T = TypeVar("T")
_SUPPORT: Final = "exactly.once.support"
_BOUNDARY: Final = "transaction.boundary"


def exactly_once_faults(
    props: Mapping[str, str],
    support: Callable[[], ExactlyOnceSupport | None],
    boundaries: Callable[[], ConnectorTransactionBoundaries],
) -> Iterator[tuple[str, str]]:
    """Yield keys with their errors, by what the connector answers to these two questions."""
    # The raw values: these two keys count even if others are invalid.
    if props.get(_SUPPORT, "").strip().lower() == "required":
        answer = _asked(support)
        if (error := answer if isinstance(answer, str) else _support_error(answer)) is not None:
            yield _SUPPORT, error
    if props.get(_BOUNDARY, "").strip().lower() == "connector":
        defined = _asked(boundaries)
        if (error := defined if isinstance(defined, str) else _boundary_error(defined)) is not None:
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
