"""The option that every config provider here has."""

from __future__ import annotations

from connect.config import LOW, Long, at_least, option

__all__ = ["ttl_ms"]


def ttl_ms() -> Long | None:
    """Declare the option ``ttl.ms``."""
    return option(
        default=None,
        importance=LOW,
        validator=at_least(0),
        doc="For how many milliseconds what was looked up holds. After that, connectors with "
        "config.action.reload=restart are restarted and look it up again. Without it, it holds until they are "
        "restarted for another reason, as with the providers of Kafka.",
    )
