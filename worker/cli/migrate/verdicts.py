"""Decides of each connector of a Java cluster whether it can run here, and what differs. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from worker.cli.mistakes import Mistake, mistakes_of

__all__ = ["NEEDS_JAVA_PLUGIN", "Place", "Verdict", "Verdicts", "java_plugin_text", "unknown_converters", "verdict_of"]

NEEDS_JAVA_PLUGIN: Final = (
    "nothing stands for it here: it runs as a Java plugin, if its jars are in a folder of plugin.path"
)
_CONVERTERS: Final = ("key.converter", "value.converter")
_HALTED: Final = "STOPPED"


class Verdict(StrEnum):
    """What can be done with a connector."""

    READY = "ready"
    DIFFERS = "differs"
    MISSING = "missing"
    HERE = "here"


@dataclass(frozen=True, slots=True)
class Place:
    """A connector in one of the two clusters: its configuration, and its state."""

    config: Mapping[str, str] = field(repr=False)
    state: str | None

    @property
    def is_halted(self) -> bool:
        """Whether nothing of it runs."""
        return self.state == _HALTED


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdict on a connector, with the reasons, and the class that it becomes."""

    name: str
    verdict: Verdict
    java_class: str
    becomes: str | None = None
    reasons: Sequence[str] = ()

    @property
    def is_ready(self) -> bool:
        """Whether it may be taken over."""
        return self.verdict in (Verdict.READY, Verdict.DIFFERS)

    def document(self) -> dict[str, Any]:
        """Return the verdict as a JSON object."""
        return {
            "name": self.name,
            "verdict": self.verdict.value,
            "java_class": self.java_class,
            "becomes": self.becomes,
            "reasons": list(self.reasons),
        }


def java_plugin_text(java_class: str) -> str:
    """Return what to say of a class that nothing stands for here."""
    return f"{java_class}: {NEEDS_JAVA_PLUGIN}"


def unknown_converters(config: Mapping[str, str]) -> list[str]:
    """Return the converters that a connector takes from its Java worker, which REST does not show."""
    return [key for key in _CONVERTERS if not config.get(key)]


def verdict_of(
    name: str, there: Place, here: Place | None, becomes: str | None, infos: Mapping[str, Any] | None
) -> Verdicts:
    """Return the verdict. ``becomes`` is the class here, ``infos`` what the validation says; ``None`` without one."""
    java_class = there.config.get("connector.class", "")
    if here is not None and not here.is_halted:
        both = "" if there.is_halted else " It runs in both clusters: stop one."
        verdict = Verdict.HERE if there.is_halted else Verdict.MISSING
        return Verdicts(name, verdict, java_class, becomes, [f"It is {here.state} here.{both}"])
    if becomes is None or infos is None:
        return Verdicts(name, Verdict.MISSING, java_class, None, [java_plugin_text(java_class)])
    wrong = [_told(mistake) for mistake in mistakes_of(infos)]
    if lacking := unknown_converters(there.config):
        wrong.append(
            f"It takes {' and '.join(lacking)} from the Java worker's file, which cannot be seen from here: give "
            f"--default {lacking[0]}=CLASS as it is there."
        )
    if wrong:
        return Verdicts(name, Verdict.MISSING, java_class, becomes, wrong)
    if warnings := [str(warning["message"]) for warning in infos.get("warnings", ())]:
        return Verdicts(name, Verdict.DIFFERS, java_class, becomes, warnings)
    return Verdicts(name, Verdict.READY, java_class, becomes)


def _told(mistake: Mistake) -> str:
    keys = ", ".join(mistake.keys)
    return f"{keys}: {mistake.error}" if keys else mistake.error
