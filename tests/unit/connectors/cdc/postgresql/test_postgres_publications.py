"""What makes a publication fit, or who has to do it."""

from __future__ import annotations

from typing import Any

import pytest

from connect.errors import ConnectError
from connect.kits.cdc.tables import TableId
from connectors.cdc.postgresql.catalog import CapturedTable
from connectors.cdc.postgresql.config import AutoCreateMode
from connectors.cdc.postgresql.publications import PublicationState, publication_steps
from equipment.growth import assert_grows_evenly


def table(name: str, oid: int, **more: Any) -> CapturedTable:
    kept = {"is_partitioned": False, "is_partition": False, "identity": "d", "rows": 0, "has_primary_key": True} | more
    return CapturedTable(oid, TableId("shop", "public", name), **kept)


A, B = table("a", 1), table("b", 2)
WHOLE = table("p", 3, is_partitioned=True)
PART = table("p1", 4, is_partition=True, root_oid=3)


def state(*names: str, **more: Any) -> PublicationState:
    kept: dict[str, Any] = {"has_all_tables": False, "is_via_root": False, "left_out": ()} | more
    return PublicationState(**kept, tables=frozenset(("public", name) for name in names))


def steps(mode: str, found: PublicationState | None, *captured: CapturedTable, via_root: bool = False) -> list[str]:
    everything = [A, B, WHOLE, PART]
    return list(
        publication_steps("pub", AutoCreateMode(mode), found, captured, everything, via_root=via_root, skipped={"t"})
    )


@pytest.mark.parametrize(
    ("mode", "statement"),
    [
        ("all_tables", 'CREATE PUBLICATION "pub" FOR ALL TABLES;'),
        ("filtered", 'CREATE PUBLICATION "pub" FOR TABLE "public"."a", "public"."p";'),
        ("no_tables", 'CREATE PUBLICATION "pub";'),
    ],
)
def test_a_missing_one_is_created(mode: str, statement: str) -> None:
    assert steps(mode, None, A, PART) == [statement]


def test_a_missing_one_is_told() -> None:
    with pytest.raises(ConnectError, match=r'Run CREATE PUBLICATION "pub" FOR TABLE "public"."a";'):
        steps("disabled", None, A)


@pytest.mark.parametrize("found", [state("a"), state(has_all_tables=True), state("a", left_out=("truncate",))])
def test_one_that_fits_stays(found: PublicationState) -> None:
    assert steps("filtered", found, A) == []


@pytest.mark.parametrize("found", [state("a"), state("a", "b", "x")])
def test_a_filtered_one_follows_the_tables(found: PublicationState) -> None:
    assert steps("filtered", found, A, B) == ['ALTER PUBLICATION "pub" SET TABLE "public"."a", "public"."b";']


def test_another_is_told_which_tables_it_lacks() -> None:
    with pytest.raises(ConnectError, match=r'Run ALTER PUBLICATION "pub" ADD TABLE "public"."b"; or set'):
        steps("disabled", state("a"), A, B)


def test_operations_that_are_left_out_are_told() -> None:
    with pytest.raises(ConnectError, match=r"leaves out delete. Run ALTER PUBLICATION"):
        steps("disabled", state("a", left_out=("delete",)), A)


def test_changes_of_partitions_are_sent_as_configured() -> None:
    setting = 'ALTER PUBLICATION "pub" SET (publish_via_partition_root = true);'

    assert steps("filtered", state("p"), WHOLE, via_root=True) == [setting]
    with pytest.raises(ConnectError, match=r"Run ALTER PUBLICATION .* \(publish_via_partition_root = true\)"):
        steps("disabled", state("p"), WHOLE, via_root=True)


def test_many_missing_tables_are_told_in_even_time() -> None:
    def told(captured: list[CapturedTable]) -> None:
        with pytest.raises(ConnectError, match="lacks tables"):
            steps("disabled", state("a"), *captured)

    assert_grows_evenly(told, lambda count: [table(f"t{number}", number) for number in range(count)], 1000)
