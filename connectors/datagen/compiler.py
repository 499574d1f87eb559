"""Compiles an Avro schema to generators.

Whoever may create a connector chooses the schema, which may be expensive by intent: the cost of a record is computed
and limited before any record is generated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, Final

from connect.data import Schema, Type, logical, validate
from connect.data.schema import INTEGER_RANGES
from connect.errors import DataError, SchemaError
from connect.kits.avro.avro_schema import AvroField, AvroSchema, is_null
from connect.kits.avro.config import AvroDataConfig
from connect.kits.avro.conventions import avro_member_name, is_map_entry, part
from connect.kits.avro.defaults import Defaults
from connect.kits.avro.to_connect import only_branch
from connectors.datagen.annotations import Annotations
from connectors.datagen.generator import (
    Arrays,
    Bytes,
    Choice,
    Converted,
    Generator,
    Lengths,
    Maps,
    Odds,
    Records,
    Texts,
    Union,
    Uuids,
    cost_of,
)
from connectors.datagen.numbers import Alternation, Decimals, Floats, Integers, Series
from connectors.datagen.pattern import pattern

__all__ = ["Compiler"]

_MOST_TYPES: Final = 2_000
_MOST_VALUES: Final = 50_000
_MOST_BYTES: Final = 100_000
_LENGTH: Final = (8, 16)
"""The lengths of what has none in the schema."""
_YEARS: Final = 130
_LAST_FLOAT: Final = 1e15
"""The end of a series of floating point numbers: beyond it they would soon not differ."""
_LOGICAL: Final = {
    logical.DATE_NAME: (logical.date_from_days, (-719_162, 2_932_897), (0, _YEARS * 365)),
    logical.TIME_NAME: (logical.time_from_milliseconds, (0, 86_400_000), (0, 86_400_000)),
    logical.TIMESTAMP_NAME: (
        logical.timestamp_from_milliseconds,
        (-62_135_596_800_000, 253_402_300_800_000),
        (0, _YEARS * 365 * 86_400_000),
    ),
}
"""The values of a logical type, the numbers it may have, and those that it has if the schema does not say."""


class Compiler:
    """Creates the generators of one schema; each gets its own streams of random numbers."""

    def __init__(self, config: AvroDataConfig) -> None:
        self._config = config
        self._streams = count()
        self._types = 0
        self._repeats = 0
        self.unknown: list[str] = []
        """The annotations that mean nothing."""

    def record(self, avro: AvroSchema, schema: Schema) -> Records:
        """Return the generator of a record schema."""
        made = self._record(avro, schema, avro.full_name)
        if made.cost > _MOST_VALUES:
            raise SchemaError(
                f"A record of {avro.full_name} may have {made.cost} values, more than {_MOST_VALUES}. Give its "
                "arrays, maps and strings a smaller length."
            )
        return made

    def _record(self, avro: AvroSchema, schema: Schema, where: str) -> Records:
        fields: dict[str, Generator] = {}
        for field, target in zip(avro.fields, schema.fields, strict=True):
            fields[target.name] = self._value(field.schema, target.schema, f"{where}.{field.name}", field)
        return Records(fields)

    def _value(self, avro: AvroSchema, schema: Schema, where: str, field: AvroField | None = None) -> Generator:
        self._types += 1
        if self._types > _MOST_TYPES:
            raise SchemaError(
                f"The schema has more than {_MOST_TYPES} types, counting each type once per use. Simplify it."
            )
        if avro.kind == "union":
            return self._union(avro, schema, where, field)
        annotations = self._annotations(where, avro)
        if annotations.has("options"):
            return self._choice(avro, schema, annotations)
        if annotations.has("iteration"):
            return self._series(avro, schema, annotations)
        return self._random(avro, schema, annotations)

    def _annotations(self, where: str, of: AvroSchema | AvroField) -> Annotations:
        found = Annotations.of(where, of.props)
        self.unknown.extend(f"{name} of {where}" for name in found.unknown)
        return found

    def _choice(self, avro: AvroSchema, schema: Schema, annotations: Annotations) -> Generator:
        defaults = Defaults(self._config)
        options = annotations.options()
        required = schema.as_required()
        try:
            values = [defaults.value(required, avro, node) for node in options]
            for value in values:
                validate(required, value)
        except DataError as error:
            raise annotations.refused("options", f"{error}; correct this value") from error
        if avro.kind == "fixed" and any(len(node) != avro.size for node in options):
            raise annotations.refused("options", f"they must have {avro.size} bytes")
        if avro.kind == "enum" and (unknown := set(values) - set(avro.symbols)):
            raise annotations.refused("options", f"{min(unknown)} is not a symbol of the enum")
        cost = cost_of(max(len(json.dumps(node)) for node in options))
        made = Choice(next(self._streams), values, cost)
        return self._between(made, annotations) if avro.kind == "string" else made

    # -- random values -------------------------------------------------------------------------------------------

    def _random(self, avro: AvroSchema, schema: Schema, annotations: Annotations) -> Generator:  # noqa: PLR0911
        if schema.name in _LOGICAL:
            return self._moment(schema, annotations)
        if schema.name == logical.DECIMAL_NAME:
            return self._decimal(avro, schema, annotations)
        match avro.kind:
            case "boolean":
                return Odds(next(self._streams), annotations.odds(0.5))
            case "int" | "long":
                return self._integer(annotations, *_range(schema.type))
            case "float" | "double":
                return self._float(schema, annotations)
            case "string":
                return self._text(annotations, is_uuid=avro.props.get("logicalType") == "uuid")
            case "enum":
                return self._enum(avro)
            case "bytes":
                return Bytes(next(self._streams), self._lengths(annotations))
            case "fixed":
                return self._fixed(avro)
            case "array" | "map":
                return self._items(avro, schema, annotations)
            case "null":
                raise SchemaError(f"{annotations.where} has no type other than null. Give it one.")
        return self._record(avro, schema, annotations.where)

    def _enum(self, avro: AvroSchema) -> Generator:
        if not avro.symbols:
            raise SchemaError(f"The enum {avro.full_name} has no symbols. Add at least one.")
        return Choice(next(self._streams), avro.symbols, cost_of(max(map(len, avro.symbols))))

    def _fixed(self, avro: AvroSchema) -> Generator:
        if avro.size > _MOST_BYTES:
            raise SchemaError(f"The fixed {avro.full_name} is longer than {_MOST_BYTES} bytes. Shorten it.")
        return Bytes(next(self._streams), Lengths(next(self._streams), avro.size, avro.size + 1))

    def _integer(self, annotations: Annotations, low: int, end: int) -> Generator:
        return Integers(next(self._streams), *_whole(annotations, *annotations.bounds("range", low, end)))

    def _float(self, schema: Schema, annotations: Annotations) -> Generator:
        largest = 3.4028234663852886e38 if schema.type is Type.FLOAT32 else 1.7976931348623157e308
        if not annotations.has("range"):
            return Floats(next(self._streams), 0.0, 1.0, is_single=schema.type is Type.FLOAT32)
        least, most = annotations.bounds("range", -largest, largest)
        if math.isinf(float(most) - float(least)):
            raise annotations.refused("range", "min and max are too far apart")
        return Floats(next(self._streams), float(least), float(most), is_single=schema.type is Type.FLOAT32)

    def _moment(self, schema: Schema, annotations: Annotations) -> Generator:
        convert, (low, high), usual = _LOGICAL[str(schema.name)]
        bounds = annotations.bounds("range", low, high) if annotations.has("range") else usual
        return Converted(Integers(next(self._streams), *_whole(annotations, *bounds)), convert)

    def _decimal(self, avro: AvroSchema, schema: Schema, annotations: Annotations) -> Generator:
        scale, digits = logical.decimal_scale(schema), avro.props.get("precision")
        if not isinstance(digits, int) or not 1 <= digits <= 18 or not 0 <= scale <= digits:
            raise SchemaError(
                f"The decimal {annotations.where} needs a precision from 1 to 18, and a scale no larger than that."
            )
        limit = 10**digits
        least, most = annotations.bounds("range", -limit / 10**scale, limit / 10**scale)
        low, high = _whole(annotations, least * 10**scale, most * 10**scale)
        return Decimals(next(self._streams), max(low, 1 - limit), min(high, limit), scale)

    def _text(self, annotations: Annotations, *, is_uuid: bool = False) -> Generator:
        made: Generator
        if annotations.has("regex"):
            made = pattern(annotations.text("regex"), lambda: next(self._streams))
        elif is_uuid and not annotations.has("length"):
            made = Uuids(next(self._streams))
        else:
            made = Texts(next(self._streams), self._lengths(annotations))
        return self._between(made, annotations)

    @staticmethod
    def _between(inner: Generator, annotations: Annotations) -> Generator:
        """Wrap strings in what stands before and after them."""
        prefix, suffix = annotations.text("prefix"), annotations.text("suffix")
        if not prefix and not suffix:
            return inner
        return Converted(inner, lambda text: f"{prefix}{text}{suffix}", cost_of(len(prefix) + len(suffix)))

    def _lengths(self, annotations: Annotations) -> Lengths:
        return Lengths(next(self._streams), *annotations.length(*_LENGTH, _MOST_BYTES))

    # -- values that hold others ---------------------------------------------------------------------------------

    def _items(self, avro: AvroSchema, schema: Schema, annotations: Annotations) -> Generator:
        if avro.kind == "array" and is_map_entry(avro.element):
            raise SchemaError(f"{annotations.where} is an array of map entries. Use a map instead.")
        lengths = self._lengths(annotations)
        self._repeats += 1
        items = self._value(avro.element, part(schema.value_schema), f"{annotations.where}[]")
        self._repeats -= 1
        if avro.kind == "array":
            return Arrays(lengths, items)
        keys = annotations.keys()
        if not keys.has("options"):
            return Maps(lengths, self._text(keys), items)
        names = list(map(str, keys.options()))
        return Maps(lengths, Choice(next(self._streams), names, cost_of(max(map(len, names)))), items)

    def _union(self, avro: AvroSchema, schema: Schema, where: str, field: AvroField | None) -> Generator:
        present = [(index, branch) for index, branch in enumerate(avro.branches) if not is_null(branch)]
        only = only_branch(avro, self._config)
        members: list[Generator] = []
        for index, branch in enumerate(avro.branches):
            if is_null(branch):
                members.append(Choice(next(self._streams), [None]))
            elif only is not None:
                members.append(self._value(branch, schema.as_required(), where))
            else:
                members.append(self._member(branch, index, schema, where))
        if not present:
            raise SchemaError(f"The union {where} has no type other than null. Add one.")
        return Union(next(self._streams), members, self._weights(avro, where, field))

    def _member(self, branch: AvroSchema, index: int, schema: Schema, where: str) -> Generator:
        """Return the generator of one member of a union that Connect represents as a struct."""
        name = avro_member_name(branch, index, self._config)
        target = schema.field(name)
        assert target is not None
        names = schema.field_names
        inner = self._value(branch, target.schema, where)
        return Converted(inner, lambda value: {each: value if each == name else None for each in names})

    def _weights(self, avro: AvroSchema, where: str, field: AvroField | None) -> list[float]:
        """Return the weight of each member of a union."""
        annotations = self._annotations(where, field) if field is not None else Annotations(where, {})
        if annotations.has("distribution"):
            return _distribution(avro, annotations)
        odds = [Annotations.of(where, each.props).odds(-1) if _has_odds(each) else None for each in avro.branches]
        null = next((each for each in odds if each is not None), None)
        others = len(avro.branches) - (null is not None)
        if null is None or not others:
            return [1.0] * len(avro.branches)
        return [null if each is not None else (1 - null) / others for each in odds]

    # -- series --------------------------------------------------------------------------------------------------

    def _series(self, avro: AvroSchema, schema: Schema, annotations: Annotations) -> Generator:
        if self._repeats:
            raise annotations.refused("iteration", "it advances once per record, so it cannot be in an array or a map")
        if avro.kind == "boolean":
            return self._alternation(annotations)
        found = annotations.iteration()
        if avro.kind in ("float", "double"):
            return self._float_series(schema, annotations)
        if avro.kind not in ("int", "long", "string") or schema.name == logical.DECIMAL_NAME:
            raise annotations.refused("iteration", f"a {avro.kind} cannot be a series")
        if schema.name in _LOGICAL:
            convert, (low, end), _ = _LOGICAL[schema.name]
        else:
            convert = None
            low, end = _range(schema.type if avro.kind != "string" else Type.INT64)
        default = end if found.step > 0 else low - 1
        numbers = (found.start, found.step, found.initial, default if found.restart is None else found.restart)
        if any(isinstance(number, float) and not number.is_integer() for number in numbers):
            raise annotations.refused("iteration", "its numbers must be integers")
        start, step, initial, restart = map(int, numbers)
        _check_series(annotations, (start, step, initial, restart), (low - 1, end))
        made = Series(start, step, initial, restart)
        if avro.kind == "string":
            return self._between(Converted(made, str), annotations)
        return Converted(made, convert) if convert is not None else made

    def _float_series(self, schema: Schema, annotations: Annotations) -> Generator:
        found = annotations.iteration()
        is_single = schema.type is Type.FLOAT32
        end = math.copysign(_LAST_FLOAT, found.step)
        numbers = (found.start, found.step, found.initial, end if found.restart is None else found.restart)
        start, step, initial, restart = map(float, numbers)
        _check_series(annotations, (start, step, initial, restart), (-abs(end), abs(end)))
        return Series(start, step, initial, restart, is_single=is_single)

    @staticmethod
    def _alternation(annotations: Annotations) -> Generator:
        found = annotations.given["iteration"]
        if not isinstance(found, dict) or not isinstance(found.get("start"), bool) or len(found) > 1:
            raise annotations.refused("iteration", "for a boolean give only start: true or false")
        return Alternation(start=found["start"])


def _range(kind: Type) -> tuple[int, int]:
    """Return the smallest number of a type, and the one after the largest."""
    low, high = INTEGER_RANGES[kind]
    return low, high + 1


def _whole(annotations: Annotations, low: float, high: float) -> tuple[int, int]:
    """Return the integers from ``low`` up to ``high``."""
    if math.ceil(low) >= math.ceil(high):
        raise annotations.refused("range", "there is no number between min and max")
    return math.ceil(low), math.ceil(high)


def _check_series(annotations: Annotations, numbers: tuple[Any, ...], bounds: tuple[Any, Any]) -> None:
    start, step, initial, restart = numbers
    low, high = bounds
    if not step or (restart > start) != (step > 0) or restart == start:
        raise annotations.refused(
            "iteration", "step must not be 0, and restart must differ from start and be reachable by the steps"
        )
    if not min(start, restart) <= initial <= max(start, restart) or initial == restart:
        raise annotations.refused("iteration", "initial must be start or between start and restart")
    if not low <= min(start, restart) or not max(start, restart) <= high:
        raise annotations.refused("iteration", f"its numbers must be between {low} and {high}")


def _has_odds(branch: AvroSchema) -> bool:
    return is_null(branch) and Annotations.of("null", branch.props).has("odds")


def _distribution(avro: AvroSchema, annotations: Annotations) -> list[float]:
    """Return the weights of the members, given as a list or as an object by name or index."""
    found = annotations.given["distribution"]
    if isinstance(found, dict):
        found = [_weight(found, index, branch) for index, branch in enumerate(avro.branches)]
    weights = list(_numbers(found)) if isinstance(found, list) else []
    if len(weights) != len(avro.branches) or len(weights) != len(found) or not 0 < sum(weights) < math.inf:
        raise annotations.refused("distribution", "give each member of the union a weight of at least 0, not all 0")
    return weights


def _weight(weights: dict[str, Any], index: int, branch: AvroSchema) -> Any:
    return weights.get(branch.full_name, weights.get(str(index), 0))


def _numbers(values: Iterable[Any]) -> Iterator[float]:
    for value in values:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
            yield float(value)
