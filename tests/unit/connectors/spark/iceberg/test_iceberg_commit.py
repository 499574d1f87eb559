"""What becomes of a commit that a catalog refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connect.errors import RetriableError
from connectors.spark.iceberg.commit import ConflictError, swap


class RefusalError(Exception):
    """What py4j raises for an exception of Java's."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        kind = SimpleNamespace(getSimpleName=lambda: name, getName=lambda: f"org.{name}")
        self.java_exception = SimpleNamespace(
            getClass=lambda: kind, getCause=lambda: None, getMessage=lambda: text, toString=lambda: text
        )


class Operations:
    """A table of a catalog that refuses each commit."""

    def __init__(self, refusal: RefusalError) -> None:
        self._refusal = refusal

    def getClass(self) -> Any:  # noqa: N802 - Java's name
        return SimpleNamespace(getSimpleName=lambda: "HiveTableOperations")

    def commit(self, base: Any, updated: Any) -> None:
        raise self._refusal


def refused(name: str, text: str) -> str:
    with pytest.raises(RetriableError if name != "CommitFailedException" or "Lock" in text else ConflictError) as told:
        swap(None, Operations(RefusalError(name, text)), None, None)
    return str(told.value)


def test_a_metastore_without_locks_is_told_instead_of_tried_again_and_again() -> None:
    assert "schematool" in refused(
        "CommitFailedException", "org.apache.iceberg.hive.LockException: Failed to find lock"
    )


def test_another_writer_is_a_conflict_and_anything_else_is_in_doubt() -> None:
    assert "changed" in refused("CommitFailedException", "somebody has changed it")
    assert "did not confirm" in refused("CommitStateUnknownException", "cut off")
