"""Checks that a query is nothing but a query.

Whoever may create a connector must not use the query to read files of the worker, run code or change tables. Spark's
own parser reads the statement, and every part of the resulting plan is checked. The allowed operators and functions are
listed, so whatever a later Spark adds is rejected; the only tables are the rows of the load and those the configuration
names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConfigError
from connect.internals.chain.stack_trace import error_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_query"]

_OPERATORS: Final = frozenset(
    [
        "Aggregate",
        "Deduplicate",
        "Distinct",
        "Except",
        "Filter",
        "Generate",
        "GlobalLimit",
        "Intersect",
        "Join",
        "LateralJoin",
        "LocalLimit",
        "LocalRelation",
        "Offset",
        "OneRowRelation",
        "PipeOperator",
        "Pivot",
        "Project",
        "Sample",
        "Sort",
        "SubqueryAlias",
        "Union",
        "UnresolvedHaving",
        "UnresolvedHint",
        "UnresolvedInlineTable",
        "UnresolvedRelation",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedTableValuedFunction",
        "UnresolvedTVFAliases",
        "UnresolvedWith",
        "Unpivot",
        "WithWindowDefinition",
    ]
)
_REFUSED_EXPRESSIONS: Final = frozenset({"ExpressionWithUnresolvedIdentifier", "NamedParameter", "PosParameter"})
_GENERATORS: Final = frozenset(
    ["explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode", "posexplode_outer", "stack"]
)
_FUNCTION_GROUPS: Final = frozenset(
    [
        "agg_funcs",
        "array_funcs",
        "bitwise_funcs",
        "collection_funcs",
        "conditional_funcs",
        "conversion_funcs",
        "csv_funcs",
        "datetime_funcs",
        "generator_funcs",
        "hash_funcs",
        "json_funcs",
        "lambda_funcs",
        "map_funcs",
        "math_funcs",
        "predicate_funcs",
        "string_funcs",
        "struct_funcs",
        "url_funcs",
        "variant_funcs",
        "window_funcs",
    ]
)
"""Groups of Spark's own functions that compute their result from nothing but their arguments."""
_FUNCTIONS: Final = frozenset(
    [
        "aes_decrypt",
        "aes_encrypt",
        "approx_top_k_estimate",
        "assert_true",
        "bitmap_bit_position",
        "bitmap_bucket_number",
        "bitmap_count",
        "hll_sketch_estimate",
        "hll_union",
        "monotonically_increasing_id",
        "raise_error",
        "try_aes_decrypt",
        "typeof",
        "uuid",
    ]
)
"""Functions outside these groups that do the same; some of Spark's others call Java or read files."""
_MOST_PARTS: Final = 50_000


def check_query(spark: SparkSession, key: str, text: str, tables: frozenset[str]) -> None:
    """Raise :class:`~connect.errors.ConfigError` unless ``text`` is one query over ``tables``."""
    # Otherwise ${env:...} and ${spark....} in the text would be replaced by private settings of the worker.
    spark.conf.set("spark.sql.variable.substitute", "false")
    state: Any = spark._jsparkSession.sessionState()
    try:
        plan = state.sqlParser().parsePlan(text)
    except Exception as error:
        raise _refused(key, text, f"Spark cannot read it: {_first_lines(error)}") from None
    for reason in _Walk(spark, state.functionRegistry()).reasons(plan, tables):
        raise _refused(key, text, reason)


class _Walk:
    """Walks through everything that a plan of Spark's parser refers to."""

    def __init__(self, spark: SparkSession, functions: Any) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._functions = functions
        self._kinds: dict[str, frozenset[str]] = {}
        self._seen = 0

    def reasons(self, node: Any, tables: frozenset[str]) -> Iterator[str]:
        """Yield why the query is rejected, part by part; ``tables`` are the table names in scope for the part."""
        if not hasattr(node, "getClass"):
            return  # a text, a number or nothing
        self._seen += 1
        if self._seen > _MOST_PARTS:
            yield "it is too long"
            return
        name = node.getClass().getName()
        kinds = self._kinds_of(name, node)
        simple = name.rpartition(".")[2].rpartition("$")[2] or name
        if "LogicalPlan" in kinds:
            yield from self._operator(simple, node, tables)
            if simple == "UnresolvedWith":
                yield from self._with(node, tables)
                return
        elif "Expression" in kinds:
            yield from self._expression(simple, node)
        for part in self._parts(kinds, node):
            yield from self.reasons(part, tables)

    def _parts(self, kinds: frozenset[str], node: Any) -> Iterator[Any]:
        # Test for a list or map before a product: a list is both, and its parts are its items.
        if "Iterable" in kinds:
            parts = node.iterator()
        elif "Product" in kinds:
            parts = node.productIterator()
        else:
            return
        while parts.hasNext():
            yield parts.next()

    def _operator(self, simple: str, node: Any, tables: frozenset[str]) -> Iterator[str]:
        if simple not in _OPERATORS:
            yield f"only one SELECT over the records is allowed, without {_words(simple)}"
        elif simple == "UnresolvedRelation":
            name = _names(node.multipartIdentifier())
            if len(name) != 1 or name[0] not in tables or node.isStreaming():
                known = f"there are {', '.join(sorted(tables))}, and sql.tables.NAME.path makes the table NAME"
                yield f"there is no table {'.'.join(name)}: {known}"
        elif simple == "UnresolvedTableValuedFunction":
            yield from self._generator(_names(node.name()))

    def _with(self, node: Any, tables: frozenset[str]) -> Iterator[str]:
        """Yield each named query can refer to those before it, the last one to all of them."""
        for relation in self._parts(frozenset({"Iterable"}), node.cteRelations()):
            name = str(relation._1())
            own = tables | {name} if node.allowRecursion() else tables
            yield from self.reasons(relation._2(), own)
            tables |= {name}
        yield from self.reasons(node.child(), tables)

    def _expression(self, simple: str, node: Any) -> Iterator[str]:
        if simple in _REFUSED_EXPRESSIONS:
            yield "IDENTIFIER(...) and parameters are not allowed: write names and values out"
        elif simple == "UnresolvedFunction":
            yield from self._function(_names(node.nameParts()))
        elif simple == "UnresolvedGenerator":
            yield from self._generator([str(node.name().funcName())])

    def _generator(self, name: list[str]) -> Iterator[str]:
        if len(name) != 1 or name[0].lower() not in _GENERATORS:
            yield f"the table function {'.'.join(name)} is not allowed: there are {', '.join(sorted(_GENERATORS))}"

    def _function(self, name: list[str]) -> Iterator[str]:
        if len(name) != 1 or not self._is_allowed(name[0].lower()):
            yield f"the function {'.'.join(name)} is not one of Spark's own that a connector may use: use another"

    def _is_allowed(self, name: str) -> bool:
        if name in _FUNCTIONS:
            return True
        identifier = self._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
        found = self._functions.lookupFunction(identifier)
        if not found.isDefined():
            return False
        info = found.get()
        # A plugin's function may claim to be in any group.
        own = str(info.getClassName()).startswith("org.apache.spark.sql.catalyst.expressions.")
        return own and str(info.getGroup()) in _FUNCTION_GROUPS

    def _kinds_of(self, name: str, node: Any) -> frozenset[str]:
        if name not in self._kinds:
            known = {
                "LogicalPlan": "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan",
                "Expression": "org.apache.spark.sql.catalyst.expressions.Expression",
                "Iterable": "scala.collection.Iterable",
                "Product": "scala.Product",
            }
            java = self._jvm.java.lang.Class
            loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
            self._kinds[name] = frozenset(
                kind for kind, full in known.items() if java.forName(full, True, loader).isInstance(node)
            )
        return self._kinds[name]


def _names(sequence: Any) -> list[str]:
    return [str(sequence.apply(index)) for index in range(sequence.size())]


def _words(simple: str) -> str:
    return simple.removeprefix("Unresolved")


def _first_lines(error: Exception) -> str:
    lines = [line.strip() for line in error_text(error).splitlines() if line.strip()]
    return " ".join(lines[:2])[:500]


def _refused(key: str, text: str, reason: str) -> ConfigError:
    shown = " ".join(text.split())
    return ConfigError(key, shown if len(shown) <= 80 else f"{shown[:77]}...", f"The query is refused: {reason}.")
