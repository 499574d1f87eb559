"""Columns: computed when somebody looks, sliced and taken without looking."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence

import pyarrow as pa
import pytest

from connect.data import ArrowColumn, Constant, Lazy, Schema, StructColumn, ValueColumn
from connect.errors import DataError


class Counted:
    """Computes the numbers below ten, and counts how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Sequence[int]:
        self.calls += 1
        return range(10)


def test_constant() -> None:
    constant = Constant("x", 3)
    assert list(constant) == ["x", "x", "x"]
    assert (constant[0], constant[-3], len(constant)) == ("x", "x", 3)
    assert list(constant[1:]) == ["x", "x"]
    assert isinstance(constant[::2], Constant)
    for outside in (3, -4):
        with pytest.raises(IndexError):
            constant[outside]


def test_lazy_computes_once_and_not_for_its_length() -> None:
    compute = Counted()
    lazy = Lazy(10, compute)
    assert (len(lazy), compute.calls) == (10, 0)
    assert (lazy[3], list(lazy)[-1], compute.calls) == (3, 9, 1)


def test_slices_of_lazy_are_lazy() -> None:
    compute = Counted()
    lazy = Lazy(10, compute)
    part = lazy[2:8][1:3]
    assert (len(part), compute.calls) == (2, 0)
    assert (list(part), list(lazy[:2]), compute.calls) == ([3, 4], [0, 1], 1)


def test_lazy_lets_go_of_what_it_was_computed_from() -> None:
    compute = Counted()
    lazy = Lazy(10, compute)
    gone = weakref.ref(compute)
    assert lazy[0] == 0
    del compute
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    "column",
    [
        ValueColumn(["a", "b", None, "d"], Schema.string(optional=True)),
        ArrowColumn(pa.array(["a", "b", None, "d"]), Schema.string(optional=True)),
        ValueColumn(Lazy(4, lambda: ["a", "b", None, "d"]), Schema.string(optional=True)),
    ],
    ids=["values", "arrow", "lazy"],
)
def test_columns_are_alike(column: ValueColumn | ArrowColumn) -> None:
    assert len(column) == 4
    assert list(column) == ["a", "b", None, "d"]
    assert (column[3], list(column[1:3])) == ("d", ["b", None])
    assert column.slice(1, 3).schema is column.schema
    assert list(column.slice(1, 3)) == ["b", None]
    assert list(column.slice(3, 9)) == ["d"]
    assert list(column.slice(3, 1)) == []
    assert list(column.take([3, 0, 0])) == ["d", "a", "a"]
    assert list(column.take([])) == []
    assert column.to_arrow().to_pylist() == ["a", "b", None, "d"]
    assert "Column(" in repr(column)


def test_slices_keep_what_was_computed() -> None:
    column = ArrowColumn(pa.array([[1], [2]]), Schema.array(Schema.int64(optional=True)))
    second = column.values()[1]
    assert column.slice(1, 2).values()[0] is second


def test_taking_of_a_constant_is_constant() -> None:
    taken = ValueColumn(Constant(None, 5), None).take([1, 2])
    assert isinstance(taken.values(), Constant)
    assert list(taken) == [None, None]


def test_a_column_held_by_field_is_one_of_structs() -> None:
    schema = Schema.struct({"line": Schema.string(), "origin": Schema.string(optional=True)})
    column = StructColumn({"line": ["a", "b", "c"], "origin": Constant("race", 3)}, schema)
    rows = [{"line": line, "origin": "race"} for line in "abc"]
    assert (len(column), column.schema) == (3, schema)
    assert list(column) == rows
    assert column.values() is column.values()
    assert list(column.slice(1, 5)) == rows[1:]
    assert list(column.take([2, 0])) == [rows[2], rows[0]]
    assert isinstance(column.slice(0, 2).fields["origin"], Constant)
    assert column.to_arrow().to_pylist() == rows
    assert "StructColumn(line, origin" in repr(column)


def test_an_arrow_column_has_the_type_of_its_schema() -> None:
    column = ArrowColumn(pa.array(["a"], pa.large_string()), Schema.string())
    assert column.to_arrow().type == pa.string()
    with pytest.raises(DataError, match="cast it to string"):
        ArrowColumn(pa.array([1]), Schema.string()).to_arrow()


def test_a_schemaless_arrow_column_stays_as_it_is() -> None:
    array = pa.array(["a"], pa.large_string())
    assert ArrowColumn(array, None).to_arrow() is array
    assert list(ArrowColumn(array, None)) == ["a"]
