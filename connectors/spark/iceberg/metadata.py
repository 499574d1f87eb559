"""An Iceberg table's metadata in the JSON of its specification, and what a connector stores in it.

=================================  =========================================================================
``sluice.offsets.<connector>``     in the summary of each snapshot that the connector commits, and, as a copy
                                   from the same commit, in the properties of the table
``sluice.claim.<connector>``       in the properties: the driver that the table belongs to
``sluice.keys.<connector>``        in the properties: the columns by which its changes find rows
``sluice.schema``                  in the properties: the columns as Connect's types, which say more than Iceberg's
=================================  =========================================================================

**Which offsets count.** Those of the branch's newest snapshot that has any, because there offsets and rows belong
together. This also holds after a rollback: the records it has taken away are loaded again. Other writers commit
snapshots without offsets, and expiry removes old snapshots; when every snapshot with offsets has expired, the copy in
the properties counts. If that copy comes from a snapshot that was rolled back, the offsets are unknown, which is an
error. A table that was replaced (``CREATE OR REPLACE TABLE``) begins a new history, without offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from connect.data import Schema
from connect.errors import ConnectError
from connect.kits.schema_json import schema_from_json
from connectors.spark.iceberg.positions import Positions, parse_positions

__all__ = ["SCHEMA_PROPERTY", "TableMetadata", "claim_property", "offsets_property"]

SCHEMA_PROPERTY = "sluice.schema"


def offsets_property(connector: str) -> str:
    """Return the key of a connector's offsets."""
    return f"sluice.offsets.{connector}"


def claim_property(connector: str) -> str:
    """Return the key that says which of a connector's drivers a table belongs to."""
    return f"sluice.claim.{connector}"


@dataclass(frozen=True)
class TableMetadata:
    """One version of a table's metadata."""

    document: Mapping[str, Any]
    name: str

    @classmethod
    def from_json(cls, text: str, name: str) -> TableMetadata:
        """Read Iceberg's own JSON of the table ``name``."""
        return cls(json.loads(text), name)

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the table."""
        found: Mapping[str, str] = self.document.get("properties", {})
        return found

    @property
    def data_place(self) -> str:
        """The folder below which the table's files are."""
        return self.properties.get("write.data.path") or str(self.document.get("location", ""))

    @property
    def layout(self) -> tuple[str, int, int]:
        """What the files of a table are written for: the table's identity, its schema and its partitioning."""
        document = self.document
        return document["table-uuid"], document["current-schema-id"], document["default-spec-id"]

    @property
    def schema(self) -> Mapping[str, Any]:
        """The current schema, in Iceberg's JSON."""
        number = self.document["current-schema-id"]
        found: Mapping[str, Any] = next(item for item in self.document["schemas"] if item["schema-id"] == number)
        return found

    @property
    def declared(self) -> Schema | None:
        """The columns as declared by the connector that created them."""
        text = self.properties.get(SCHEMA_PROPERTY)
        return None if text is None else schema_from_json(json.loads(text))

    def positions(self, connector: str, branch: str) -> Positions:
        """Return how far the connector has loaded this branch of the table."""
        key = offsets_property(connector)
        for summary in self._summaries(branch):
            if summary is None:
                return self._copied(key)
            if key in summary:
                return parse_positions(summary[key], self.name)
        return Positions()

    def head(self, branch: str) -> int | None:
        """Return the newest snapshot of a branch, or the one from which it would start."""
        reference = self.document.get("refs", {}).get(branch)
        number = self.document.get("current-snapshot-id") if reference is None else reference["snapshot-id"]
        return None if number == -1 else number

    def has_branch(self, branch: str) -> bool:
        """Return whether the branch exists."""
        return branch in self.document.get("refs", {})

    def _copied(self, key: str) -> Positions:
        """Return the copy in the properties, unless it comes from a snapshot that has been rolled back."""
        text = self.properties.get(key)
        if text is None:
            return Positions()
        # The branch has no snapshot with offsets, so a snapshot with this copy is no longer part of it.
        if any(item.get("summary", {}).get(key) == text for item in self.document.get("snapshots", ())):
            raise ConnectError(
                f"Table {self.name} was rolled back to a snapshot whose offsets are no longer known, because "
                f"older snapshots have expired. Remove its property {key}, and set the connector's offsets to "
                "where it should continue."
            )
        return parse_positions(text, self.name)

    def _summaries(self, branch: str) -> Iterator[Mapping[str, str] | None]:
        """Yield the summaries of the branch's snapshots, newest first; a final ``None`` means that older ones have
        expired.
        """
        snapshots = {item["snapshot-id"]: item for item in self.document.get("snapshots", ())}
        number = self.head(branch)
        while number is not None:
            snapshot = snapshots.get(number)
            if snapshot is None:
                yield None
                return
            yield snapshot.get("summary", {})
            number = snapshot.get("parent-snapshot-id")
