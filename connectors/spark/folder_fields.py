"""Fields whose values name folders, and the names that writers give these folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote_plus

__all__ = ["NULL_FOLDER", "FolderField"]

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
"""What a folder has in place of a value that is null."""
_SPECIAL: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
"""The characters that Spark writes as three in the name of a folder."""


@dataclass(frozen=True, slots=True)
class FolderField:
    """A field by whose values rows are divided: the name of a folder is ``label=`` and the value."""

    path: Sequence[str]
    """The column, and the fields in it that lead to the value."""
    label: str
    width: int | None = None
    """The number of characters of a value that the folder has, if not all."""

    def size(self, value: str, *, hive: bool) -> int:
        """Return how many bytes the name of a folder has, as Hive and Spark write it or as Iceberg does."""
        shown = value[: self.width]
        name = f"{_spark(self.label)}={_spark(shown)}" if hive else f"{_iceberg(self.label)}={_iceberg(shown)}"
        return len(name.encode())


def _spark(text: str) -> str:
    return _SPECIAL.sub("%XX", text)


def _iceberg(text: str) -> str:
    """Return the text as Java's ``URLEncoder`` writes it."""
    return quote_plus(text, safe="*").replace("~", "%7E")
