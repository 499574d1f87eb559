"""ACLs for users of a broker, parsed from ``kafka-acls.sh`` commands."""

from __future__ import annotations

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Final

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

__all__ = ["Acl", "acls_of", "blocks_of"]

_TYPES: Final = {
    "cluster": ResourceType.BROKER,
    "group": ResourceType.GROUP,
    "topic": ResourceType.TOPIC,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")
_BLOCK: Final = re.compile(r"^## (?P<title>[^\n]+)$|^```bash\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Acl:
    """One permission of one user."""

    user: str
    operation: str
    resource: str
    name: str
    prefixed: bool = False

    def __str__(self) -> str:
        return f"{self.user} {self.operation} {self.resource} {self.name}{'*' if self.prefixed else ''}"

    def named(self, names: Mapping[str, str]) -> Acl:
        """The same ACL with the variables of the command replaced."""
        user, name = Template(self.user).substitute(names), Template(self.name).substitute(names)
        return Acl(user, self.operation, self.resource, name, self.prefixed)

    @property
    def binding(self) -> AclBinding:
        """The ACL for the admin client."""
        return AclBinding(*self._parts)

    @property
    def filter(self) -> AclBindingFilter:
        """The filter that deletes this ACL."""
        return AclBindingFilter(*self._parts)

    @staticmethod
    def everything() -> AclBindingFilter:
        """A filter that matches all ACLs."""
        anything: Any = None
        return AclBindingFilter(
            *(ResourceType.ANY, anything, ResourcePatternType.ANY, anything, anything),
            *(AclOperation.ANY, AclPermissionType.ANY),
        )

    @property
    def _parts(self) -> tuple[Any, ...]:
        pattern = ResourcePatternType.PREFIXED if self.prefixed else ResourcePatternType.LITERAL
        operation = AclOperation[_WORD.sub("_", self.operation).upper()]
        return (
            *(_TYPES[self.resource], self.name, pattern),
            *(f"User:{self.user}", "*", operation, AclPermissionType.ALLOW),
        )


def blocks_of(page: Path) -> dict[str, str]:
    """The shell commands of a page, by the title of their section."""
    blocks: dict[str, str] = {}
    title = ""
    for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        title = match["title"] or title
        blocks[title] = blocks.get(title, "") + (match["text"] or "")
    return blocks


def acls_of(block: str) -> Iterator[Acl]:
    """The ACLs that the commands of a block add; names may still be variables."""
    parser = _parser()
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or not words[0].endswith("kafka-acls.sh"):
            continue
        given = parser.parse_args(words[1:])
        for resource in _TYPES:
            names = ["kafka-cluster"] if resource == "cluster" else vars(given)[resource.replace("-", "_")]
            for name in names if resource != "cluster" or given.cluster else ():
                for operation in given.operation:
                    user = given.allow_principal.removeprefix("User:")
                    yield Acl(user, operation, resource, name, given.resource_pattern_type == "prefixed")


def _parser() -> ArgumentParser:
    parser = ArgumentParser("kafka-acls.sh", exit_on_error=False)
    for option in ("--bootstrap-server", "--command-config", "--allow-principal"):
        parser.add_argument(option)
    for option in ("--operation", "--topic", "--group", "--transactional-id"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("--resource-pattern-type", default="literal", choices=("literal", "prefixed"))
    for option in ("--add", "--cluster"):
        parser.add_argument(option, action="store_true")
    return parser
