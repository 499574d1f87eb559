"""Manifests: the entries of the ledger. Each is one file, whose appearance is the commit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from connect.data import Schema, TopicPartition
from connect.errors import ConnectError, SchemaError
from connect.kits.schema_json import schema_from_json, schema_to_json
from connectors.spark.sink.sql.windows import OpenWindows
from connectors.spark.stores.store import Upload

__all__ = ["LedgerError", "Manifest", "Move"]

_FORMAT: Final = 1
_WITH_REMOVALS: Final = 2
"""The format of manifests that remove files: a version that does not know this must not read past them."""
_WITH_WINDOWS: Final = 3
"""The format of manifests that name rows the query has not processed yet, for the same reason."""
_FORMATS: Final = (_FORMAT, _WITH_REMOVALS, _WITH_WINDOWS)


class LedgerError(ConnectError):
    """The ledger is damaged, or the target does not contain the files that it lists."""


@dataclass(frozen=True, slots=True)
class Move:
    """A staged file and its final name, both relative to the store, with its checked size and row count.

    ``upload`` describes a staged file of an object store, which is an upload. The row count of such a file is known
    only if all rows of a Spark partition went into one file.
    """

    source: str
    target: str
    size: int
    rows: int | None
    upload: Upload | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything a restart needs: how far each partition is loaded, the tables' schemas, the files to rename.

    ``number`` is its place in the ledger, ``epoch`` the number of the claim of the driver that wrote it. A manifest
    that is only a claim moves no files and repeats the offsets and tables of the previous one. ``topics`` are the topic
    ids for the offsets, as far as known. ``records`` are, by table, the schemas of the rows before the query.
    ``removals`` are files whose rows are in the moved files; they are removed before those appear. ``windows`` are the
    open windows of a query, by ``topic/table``.
    """

    number: int
    epoch: int
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    tables: Mapping[str, Schema] = field(default_factory=dict)
    staging: str | None = None
    moves: Sequence[Move] = ()
    topics: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[str, Schema] = field(default_factory=dict)
    removals: Sequence[str] = ()
    windows: Mapping[str, OpenWindows] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the content of the manifest's file."""
        offsets: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in sorted(self.offsets.items()):
            offsets.setdefault(topic, {})[str(partition)] = offset
        document = {
            "format": _WITH_WINDOWS if self.windows else _WITH_REMOVALS if self.removals else _FORMAT,
            "number": self.number,
            "epoch": self.epoch,
            "offsets": offsets,
            "topics": dict(sorted(self.topics.items())),
            "tables": {name: schema_to_json(schema) for name, schema in sorted(self.tables.items())},
            "records": {name: schema_to_json(schema) for name, schema in sorted(self.records.items())},
            "staging": self.staging,
            "files": [_move_to_json(move) for move in self.moves],
            **({"removals": list(self.removals)} if self.removals else {}),
            **({"windows": {name: each.to_json() for name, each in self.windows.items()}} if self.windows else {}),
        }
        return json.dumps(document, indent=1).encode() + b"\n"

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> Manifest:
        """Return the inverse of :meth:`to_bytes`; raises :class:`LedgerError`, which names the file, if it is not a
        manifest.
        """
        try:
            document = json.loads(content)
            if document["format"] not in _FORMATS:
                raise LedgerError(
                    f"Manifest {name} has format {document['format']}, but this version reads only {_FORMAT} "
                    f"to {_WITH_WINDOWS}: run the version of Sluice that wrote it, or a newer one."
                )
            return cls._from_document(document)
        except (ValueError, KeyError, TypeError, AttributeError, SchemaError) as error:
            raise LedgerError(
                f"Manifest {name} cannot be read ({error!r}). Restore it from a backup of the target; do not "
                "delete it, because it records what is loaded."
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
            records={name: schema_from_json(schema) for name, schema in document.get("records", {}).items()},
            staging=document["staging"],
            moves=tuple(map(_move_from_json, document["files"])),
            removals=tuple(document.get("removals", ())),
            windows={name: OpenWindows.from_json(each) for name, each in document.get("windows", {}).items()},
        )


def _move_to_json(move: Move) -> dict[str, Any]:
    document = {"source": move.source, "target": move.target, "size": move.size, "rows": move.rows}
    if move.upload is None:
        return document
    return {**document, "upload": {"id": move.upload.id, "parts": list(move.upload.parts)}}


def _move_from_json(document: Mapping[str, Any]) -> Move:
    upload = document.get("upload")
    return Move(
        document["source"],
        document["target"],
        document["size"],
        document["rows"],
        None if upload is None else Upload(upload["id"], tuple(upload["parts"])),
    )
