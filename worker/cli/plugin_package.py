"""The package that ``sluice plugins new`` writes: the names and contents of its files."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connect.errors import ConnectError

__all__ = ["PluginPackage"]

_TEMPLATES: Final = Path(__file__).with_name("templates")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_OURS: Final = ("connect", "connectors", "converters", "rest", "tests", "worker")
_SUMMARIES: Final = {
    "source": "A source connector for Sluice.",
    "sink": "A sink connector for Sluice.",
    "transformation": "A transformation for Sluice.",
    "converter": "A converter for Sluice.",
}
_CLASSES: Final = {
    "source": "{}SourceConnector",
    "sink": "{}SinkConnector",
    "transformation": "{}",
    "converter": "{}Converter",
}
_LINES: Final = "printf 'line %s\\n' 1 2 3 4 5 > /tmp/in.txt            # something to read\n"
_SAMPLES: Final = {
    "source": "printf '{\"id\": %s}\\n' 1 2 3 4 5 > /tmp/in.jsonl       # something to read\n",
    "sink": "",
    "transformation": _LINES,
    "converter": _LINES,
}
"""The command that creates the input of the connector to try the plugin with; a sink's is a topic."""


@dataclass(frozen=True, slots=True)
class PluginPackage:
    """A package with one plugin. ``name`` is the distribution's name, with hyphens."""

    name: str
    kind: str

    @classmethod
    def of(cls, written: str, kind: str) -> PluginPackage:
        """Return the package of this name. Raises :class:`~connect.errors.ConnectError` for an invalid name."""
        if not _NAME.fullmatch(written):
            raise ConnectError(
                f"{written!r} cannot be the name of a package: use small letters, digits and hyphens, such as "
                "acme-orders."
            )
        package = written.replace("-", "_")
        if keyword.iskeyword(package) or package in sys.stdlib_module_names or package in _OURS:
            raise ConnectError(f"The name {written} is taken by a module of Python or of Sluice; use another one.")
        return cls(written.replace("_", "-"), kind)

    @property
    def package(self) -> str:
        """The import name."""
        return self.name.replace("-", "_")

    @property
    def class_name(self) -> str:
        """The simple name of the plugin's class."""
        return _CLASSES[self.kind].format(self._camel)

    def files(self) -> dict[str, str]:
        """Return the text of each file by its path below the project's folder."""
        own, package = f"{self.kind}/", self.package
        templates = {
            "pyproject.toml": "package/pyproject.toml",
            "README.md": "package/README.md",
            ".gitignore": "package/gitignore",
            "connector.properties": f"{own}connector.properties",
            f"{package}/__init__.py": "package/init.py",
            f"{package}/plugins.toml": f"{own}plugins.toml",
            f"{package}/{self.kind}.py": f"{own}plugin.py",
            f"tests/test_{package}.py": f"{own}test.py",
        }
        return {path: self._filled(template) for path, template in templates.items()}

    def write(self, folder: Path) -> None:
        """Write the files into a folder; raise ``ConnectError`` if it is not empty."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ConnectError(f"{folder} already exists and is not empty. Move it away, or choose another name.")
        for path, text in self.files().items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    @property
    def _camel(self) -> str:
        parts = self.name.split("-")
        # The class name always ends with the kind.
        own = parts[:-1] if len(parts) > 1 and parts[-1] == self.kind else parts
        return "".join(part.capitalize() for part in own)

    def _filled(self, template: str) -> str:
        text = (_TEMPLATES / f"{template}.template").read_text(encoding="utf-8")
        for name, value in self._values().items():
            text = text.replace(f"@@{name}@@", value)
        return text

    def _values(self) -> Mapping[str, str]:
        return {
            "distribution": self.name,
            "package": self.package,
            "name": self._camel,
            "kind": self.kind,
            "class": self.class_name,
            "summary": _SUMMARIES[self.kind],
            "sample": _SAMPLES[self.kind],
        }
