"""Rewrites tables in a load whose records need wider columns than can be read from the existing files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from connect.data import Schema
from connect.errors import ConnectError
from connectors.spark.schema import rewritten_columns
from connectors.spark.sink.ledger.files_merger import FilesMerger
from connectors.spark.sink.ledger.manifest import Move
from connectors.spark.sink.ledger.merge_groups import all_groups

__all__ = ["Rewritten", "rewrite"]


@dataclass(slots=True)
class Rewritten:
    """Files that replace all others of some tables."""

    moves: list[Move] = field(default_factory=list)
    removals: list[str] = field(default_factory=list)


def rewrite(
    merger: FilesMerger,
    known: Mapping[str, Schema],
    tables: Mapping[str, Schema],
    staging: str,
    number: int,
    file_size: int,
    divided_by: Collection[str],
) -> Rewritten:
    """Stage the files of those ``known`` tables again whose columns have other types in ``tables``.

    They are to be committed with the load, in the manifest with this number. Columns in ``divided_by`` are part of the
    table's folder names, which stay.
    """
    done = Rewritten()
    for name, after in sorted(tables.items()):
        before = known.get(name)
        changed = {} if before is None else rewritten_columns(before, after)
        if before is None or not changed:
            continue
        if divided := sorted(set(changed) & set(divided_by)):
            raise ConnectError(
                f"Table {name} is partitioned by {divided[0]} (partition.field.name), whose type cannot "
                "change. Set schema.conflict=new-column, or make the records alike, for example with the "
                "transformation Cast."
            )
        groups = list(all_groups(merger.data_files(name), file_size))
        for group in groups:
            if (unknown := merger.unknown_field(name, before, group)) is not None:
                raise ConnectError(
                    f"Table {name} cannot be rewritten (schema.conflict=rewrite): one of its files has a field "
                    f"{unknown} that the table does not know. Move that file out of the table."
                )
        done.moves += merger.merge(name, before, groups, staging, number, changed)
        done.removals += merger.removals(name, groups)
    return done
