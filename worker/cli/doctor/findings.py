"""What the doctor finds: each with what is affected, and the command or step that repairs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import click

__all__ = ["Finding", "Level", "findings_text", "worst"]


class Level(StrEnum):
    """How bad a finding is."""

    FINE = "fine"
    WARNING = "warning"
    ERROR = "error"


_SHOWN: Final = {Level.FINE: ("fine", "green"), Level.WARNING: ("WARN", "yellow"), Level.ERROR: ("FAIL", "red")}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look has found. ``repair`` says what to do; ``mend`` does it where that is safe."""

    area: str
    level: Level
    told: str
    repair: str | None = None
    mend: Callable[[], None] | None = field(default=None, compare=False, repr=False)

    def document(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {
            "area": self.area,
            "level": self.level.value,
            "told": self.told,
            "repair": self.repair,
            "repairable": self.mend is not None,
        }


def worst(findings: Iterable[Finding]) -> Level:
    """Return the level of the worst finding."""
    order = list(Level)
    return max((finding.level for finding in findings), key=order.index, default=Level.FINE)


def findings_text(findings: Iterable[Finding]) -> str:
    """Return the findings as text, each with its repair below it."""
    lines = []
    for finding in findings:
        lines.append(f"{_mark(finding.level)}  {finding.area}: {finding.told}")
        lines += [f"      -> {line}" for line in (finding.repair or "").splitlines()]
        lines += ["      -> or this command again, with --repair"] if finding.mend is not None else []
    return "\n".join(lines)


def _mark(level: Level) -> str:
    word, colour = _SHOWN[level]
    return word if os.environ.get("NO_COLOR") else click.style(word, fg=colour)
