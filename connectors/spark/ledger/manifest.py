"""Manifests: the entries of the ledger. One file each, whose appearance is the commit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from connect.data import Schema, TopicPartition
from connect.errors import ConnectError, SchemaError
from connectors.spark.schema_json import schema_from_json, schema_to_json

__all__ = ["LedgerError", "Manifest", "Move"]

_FORMAT: Final = 1


class LedgerError(ConnectError):
    """The ledger is damaged, or the target does not contain the files that it lists."""


@dataclass(frozen=True, slots=True)
class Move:
    """A staged file and its final name, both relative to the store, with its checked size and row count."""

    source: str
    target: str
    size: int
    rows: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that a restart needs: how far each partition is loaded, the tables' schemas, the files to rename.

    ``number`` is its place in the ledger, ``epoch`` the number of the claim of the driver that wrote it. A
    manifest that is only such a claim moves no files and repeats the offsets and tables of the one before. ``topics``
    are the ids of the topics of the offsets, as far as they are known.
    """

    number: int
    epoch: int
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    tables: Mapping[str, Schema] = field(default_factory=dict)
    staging: str | None = None
    moves: Sequence[Move] = ()
    topics: Mapping[str, str] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The content of its file."""
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in sorted(self.offsets.items()):
            offsets.setdefault(topic, {})[str(partition)] = offset
        document = {
            "format": _FORMAT,
            "number": self.number,
            "epoch": self.epoch,
            "offsets": offsets,
            "topics": dict(sorted(self.topics.items())),
            "tables": {name: schema_to_json(schema) for name, schema in sorted(self.tables.items())},
            "staging": self.staging,
            "files": [
                {"source": move.source, "target": move.target, "size": move.size, "rows": move.rows}
                for move in self.moves
            ],
        }
        return json.dumps(document, indent=1).encode() + b"\n"

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> Manifest:
        """The inverse of :meth:`to_bytes`; :class:`LedgerError` names the file if it is not a manifest."""
        try:
            document = json.loads(content)
            if document["format"] != _FORMAT:
                raise LedgerError(
                    f"Manifest {name} has format {document['format']}, and this version reads {_FORMAT}: run the "
                    "version of Sluice that wrote it, or a newer one."
                )
            return cls._from_document(document)
        except (ValueError, KeyError, TypeError, AttributeError, SchemaError) as error:
            raise LedgerError(
                f"Manifest {name} cannot be read ({error!r}). Restore it from a backup of the target; do not "
                "delete it, for it says which records are loaded."
            ) from error

    @classmethod
    def _from_document(cls, document: Mapping[str, Any]) -> Manifest:
        return cls(
            number=document["number"],
            epoch=document["epoch"],
            offsets={
                TopicPartition(topic, int(partition)): offset
                for topic, partitions in document["offsets"].items()
                for partition, offset in partitions.items()
            },
            topics=document.get("topics", {}),
            tables={name: schema_from_json(schema) for name, schema in document["tables"].items()},
            staging=document["staging"],
            moves=tuple(Move(file["source"], file["target"], file["size"], file["rows"]) for file in document["files"]),
        )
