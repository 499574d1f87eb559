"""Has a connector's configuration check the system that it names, within a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.config import Config, ConfigRuleError
from connect.errors import ConfigError

__all__ = ["SystemCheck", "check_system"]

_CLASS: Final = "connector.class"
_MOST_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class SystemCheck:
    """What came of a check. Without a ``reason``, the system was asked."""

    reason: str | None = None
    errors: Sequence[ConfigError] = ()

    @property
    def document(self) -> dict[str, Any]:
        """The part of a validation's result that tells whether the system was asked."""
        if self.reason is not None:
            return {"checked": False, "reason": self.reason}
        return {"checked": True}


def check_system(config: Config, most_seconds: float = _MOST_SECONDS) -> SystemCheck:
    """Return what would fail for a valid configuration. A check that does not end in time is an error of its own.

    Its thread is left behind: it ends with the process of the inquiry.
    """
    if not config.can_check_system():
        return SystemCheck(reason="This connector has no check of its system.")
    seen: list[ConfigError] = []
    thread = threading.Thread(target=_look, args=(config, seen), name="system-check", daemon=True)
    thread.start()
    thread.join(most_seconds)
    found = list(seen)
    if thread.is_alive():
        found.append(ConfigRuleError(_overdue(most_seconds), _CLASS))
    return SystemCheck(errors=found)


def _overdue(seconds: float) -> str:
    return (
        f"The connector's system did not answer within {seconds:g} s: check its address, and that no firewall stands "
        "between it and this machine."
    )


def _look(config: Config, found: list[ConfigError]) -> None:
    try:
        # One by one: what was found before the time is over is kept.
        for error in config.check_system():
            found.append(error)  # noqa: PERF402
    except Exception as error:
        found.append(ConfigRuleError(f"The connector's system could not be checked: {error}", _CLASS))
