"""Names of options that MirrorMaker had before Kafka 2.7 and took until Kafka 4, and names that it never had."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

__all__ = ["OLD_NAMES", "meant_key", "old_name_warnings", "written_key"]

OLD_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "topics.exclude": "topics.blacklist",
        "groups.exclude": "groups.blacklist",
        "config.properties.exclude": "config.properties.blacklist",
    }
)
"""The options that have an old name, which takes effect unless the new one is set."""

_PATTERN: Final = (".pattern", ".regex")
_NEW_WORDS: Final = ((".whitelist", ""), (".include", ""), (".blacklist", ".exclude"), ("", ""))
"""The endings of keys of other tools and versions, and what MirrorMaker's keys have in their place."""

_HUMP: Final = re.compile("(?<=[a-z])(?=[A-Z])")
_ALONE: Final = MappingProxyType({"whitelist": "topics", "blacklist": "topics.exclude"})
"""The keys of the first MirrorMaker."""

_LIKENESS: Final = 0.88
_LIKENESS_WITH_NEW_WORDS: Final = 0.8
"""Lower, because an ending of an old name already says that a list of names was meant."""


def written_key(props: Mapping[str, str | None], key: str) -> str:
    """Return the name under which a configuration has an option: the old one if only that is set."""
    old = OLD_NAMES.get(key)
    return old if old is not None and props.get(key) is None and props.get(old) is not None else key


def old_name_warnings(props: Mapping[str, str | None], keys: Collection[str]) -> Iterator[str]:
    """Warn about the old names of these options in a configuration."""
    for key in keys:
        old = OLD_NAMES[key]
        if props.get(old) is None:
            continue
        if written_key(props, key) == old:
            yield f"{old} is an old name of {key} and is used as such. Write {key}, since MirrorMaker 4 ignores {old}."
        else:
            yield f"{old} has no effect: it is an old name of {key}, which is set as well. Remove {old}."


def meant_key(key: str, known: Collection[str]) -> str | None:
    """Return the known key that an unknown one was probably meant to be."""
    plain = _HUMP.sub(".", key).lower().replace("_", ".")
    for ending in _PATTERN:
        plain = plain.removesuffix(ending)
    if (alone := _ALONE.get(plain)) in known:
        return alone
    ending, new = next(words for words in _NEW_WORDS if plain.endswith(words[0]))
    likeness = _LIKENESS_WITH_NEW_WORDS if ending or plain != key else _LIKENESS
    close = get_close_matches(f"{plain.removesuffix(ending)}{new}", known, 1, likeness)
    return close[0] if close else None
