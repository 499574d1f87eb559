"""Turns the result of a validation into text: each mistake once, with its keys and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Mistake", "mistakes_of", "mistakes_text", "refusal_text", "warnings_of"]

_NULL_TWICE: Final = re.compile(r"Invalid value null for configuration .*")
_FIRST_SENTENCE: Final = re.compile(r"(.+?[.;])(?:\s|$)", re.DOTALL)
_RULES: Final = (
    (re.compile(r"topics and topics\.regex are mutually exclusive"), "Remove one of them."),
    (
        re.compile(r"Must configure one of topics or topics\.regex"),
        "Set topics to the topics to read, or topics.regex to a pattern of their names.",
    ),
    (re.compile(r"Duplicate alias provided"), "Name each alias once."),
    (re.compile(r"Class .* could not be found"), "`sluice plugins list` lists the plugins there are."),
    (
        re.compile(r"Config '(.+)\.negate' was provided but"),
        r"Set \1.predicate to the alias of a predicate, or remove \1.negate.",
    ),
    (
        re.compile(r"Invalid value (.+) for configuration .*Predicate must be one of the predicates listed"),
        r"Add \1 to predicates, and set predicates.\1.type.",
    ),
    (re.compile(r"The DLQ topic '(.+?)' may not be"), r"Give the dead letters a topic of their own."),
    (
        re.compile(r"The '.*' policy does not allow"),
        "Remove it, or have connector.client.config.override.policy of the worker allow it.",
    ),
    (
        re.compile(r"does not have exactly-once source support enabled"),
        "Set exactly.once.source.support=enabled in the worker's file, or exactly.once.support=requested here.",
    ),
)


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in a configuration: its keys, the error, and the remedy, if known."""

    keys: tuple[str, ...]
    error: str
    remedy: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the mistake as a JSON object."""
        return {"keys": list(self.keys), "error": self.error, "remedy": self.remedy}


def mistakes_of(infos: Mapping[str, Any]) -> list[Mistake]:
    """Return the mistakes in a validation result, in its order."""
    found: dict[str, list[str]] = {}
    configs = {config["value"]["name"]: config for config in infos["configs"]}
    for key, config in configs.items():
        for error in _without_echoes(config["value"]["errors"]):
            found.setdefault(error, []).append(key)
    return [Mistake(tuple(keys), error, _remedy(error, configs[keys[0]])) for error, keys in found.items()]


def warnings_of(infos: Mapping[str, Any]) -> list[str]:
    """Return the warnings in a validation result, as ``sluice validate`` prints them."""
    return [f"Warning: {warning['message']}" for warning in infos.get("warnings", ())]


def mistakes_text(mistakes: Iterable[Mistake]) -> str:
    """Return the mistakes as text."""
    return "\n".join(line for mistake in mistakes for line in _lines(mistake))


def refusal_text(name: str | None, infos: Mapping[str, Any], warnings: Iterable[str]) -> str:
    """Return why the configuration of a connector is refused. Warnings follow, since they may explain mistakes."""
    found = mistakes_of(infos)
    count = "a mistake" if len(found) == 1 else f"{len(found)} mistakes"
    what = f"The configuration of {name}" if name else "The configuration"
    return "\n".join((f"{what} has {count}:", mistakes_text(found), *warnings))


def _lines(mistake: Mistake) -> Iterator[str]:
    yield f"  {', '.join(mistake.keys) or 'the configuration'}"
    yield f"    {mistake.error}"
    if mistake.remedy is not None:
        yield f"    -> {mistake.remedy}"


def _without_echoes(errors: list[str]) -> list[str]:
    """Return the errors of a key without those that merely repeat that its value is invalid."""
    first, *others = errors or [""]
    return [error for error in (first, *(error for error in others if not _NULL_TWICE.match(error))) if error]


def _remedy(error: str, config: Mapping[str, Any]) -> str | None:
    for pattern, remedy in _RULES:
        if match := pattern.search(error):
            return match.expand(remedy)
    return _meaning(config["definition"])


def _meaning(definition: Mapping[str, Any] | None) -> str | None:
    """Return the meaning of a key, from its definition."""
    if definition is None:
        return None
    default = definition["default_value"]
    kind = definition["type"].lower() + (f", by default {default}" if default else "")
    sentence = " ".join(definition["documentation"].split())
    if match := _FIRST_SENTENCE.match(sentence):
        sentence = match[1].rstrip(";.") + "."
    return f"{definition['name']} ({kind}): {sentence}"
