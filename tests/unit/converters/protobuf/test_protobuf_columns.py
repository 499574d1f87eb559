"""Protobuf read by column is the same as by row: the same values, the same verdicts, whatever the bytes."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass

from connect.data import Schema
from connect.data.arrow import to_array
from connect.errors import DataError
from connect.kits.columns.decoder import ColumnDecoder
from converters.protobuf.columns import column_decoder
from converters.protobuf.config import ProtobufConverterConfig
from converters.protobuf.converter import ProtobufFormat
from converters.protobuf.proto_schema import ProtoSchema
from converters.protobuf.to_connect import KINDS, reading_of
from equipment.examples import examples
from equipment.growth import assert_grows_evenly

PROTO3 = """syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/empty.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
message Whole {
  int32 a = 1; int64 b = 2; uint32 c = 3; uint64 d = 4; sint32 e = 5; sint64 f = 6; fixed32 g = 7; fixed64 h = 8;
  sfixed32 i = 9; sfixed64 j = 10; float k = 11; double l = 12; bool m = 13; string n = 14; bytes o = 15; Kind p = 16;
  optional int32 oa = 21; optional string ob = 22; optional Kind oc = 23; optional bool od = 24;
  optional double oe = 2000;
  repeated int32 ra = 31; repeated sint64 rb = 32; repeated double rc = 33; repeated bool rd = 34;
  repeated string re = 35; repeated Kind rf = 36; repeated Inner rg = 37; repeated int64 rh = 38 [packed = false];
  repeated fixed32 ri = 39; repeated bytes rj = 40;
  map<string, int32> ma = 41; map<int64, Inner> mb = 42; map<bool, Kind> mc = 43; map<sint32, bytes> md = 44;
  Inner na = 51; google.protobuf.Empty nb = 52;
  oneof choice { int32 xa = 61; string xb = 58; Inner xc = 63; google.protobuf.Timestamp xd = 64; }
  oneof other { bool ya = 65; google.protobuf.Empty yb = 66; }
  google.protobuf.Timestamp la = 71; google.type.Date lb = 72; google.type.TimeOfDay lc = 73;
  confluent.type.Decimal ld = 74 [(confluent.field_meta).params = {key: "scale", value: "2"}];
  repeated google.protobuf.Timestamp le = 75;
  google.protobuf.StringValue wa = 81; google.protobuf.Int64Value wb = 82; repeated google.protobuf.BoolValue wc = 83;
  int32 sa = 91 [(confluent.field_meta).params = {key: "connect.type", value: "int8"}];
  repeated PairEntry ea = 92;
  message Inner { string x = 1; repeated int32 y = 2; Deeper z = 3; }
  message Deeper { repeated Inner2 items = 1; map<string, string> tags = 2; }
  message Inner2 { sint32 q = 1; }
  message PairEntry { string key = 1; int64 value = 2; }
  enum Kind { NONE = 0; ONE = 1; BIG = 200000; LOW = -3; }
}
"""
PROTO2 = """syntax = "proto2";
message Whole {
  required int32 a = 1; optional string b = 2; optional Kind c = 3; repeated int32 d = 4;
  repeated Kind e = 5 [packed = true];
  optional Inner f = 6; map<string, int32> g = 7;
  optional int32 h = 8 [default = 5];
  message Inner { optional double x = 1; }
  enum Kind { ONE = 1; TWO = 2; }
}
"""
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "optional": {"optional_for_nullables": True, "int_for_enums": True},
    "wrapped": {"wrapper_for_nullables": True, "flatten_unions": True},
    "structs": {"generate_struct_for_nulls": True, "generalized_sum_type_support": True},
    "enhanced": {"enhanced_protobuf_schema_support": True, "optional_for_proto2": False},
}


class Pair:
    """Both decoders of a message type, and the messages that the one by column has left to the other."""

    def __init__(self, text: str, options: dict[str, Any]) -> None:
        config = ProtobufConverterConfig(schema_registry_url=("http://127.0.0.1:1",), **options)
        compiled = ProtoSchema(text)
        self.made: Any = GetMessageClass(compiled.root)
        reader = ProtobufFormat(config).reader(compiled, compiled, 1, b"\0\0\0\0\7\0")
        assert reader.schema is not None
        self.schema: Schema = reader.schema
        self.decode = reader.decode
        self.left: list[bytes] = []
        reading = reading_of(compiled.root, config, 1)
        assert reading.schema == self.schema
        self.columns: ColumnDecoder = column_decoder(compiled.root, self.schema, config, self._by_row, 6)

    def _by_row(self, messages: Sequence[bytes]) -> list[Any]:
        self.left += messages
        return self.decode(messages)

    def check(self, messages: Sequence[bytes]) -> bool:
        """Compare the decoders, of a list and of a slice of an array; return whether the messages are good."""
        self.left.clear()
        expected = outcome(lambda: to_array(self.decode(messages), self.schema))
        assert outcome(lambda: self.columns.read(messages)) == expected
        longer = pa.array([b"first", *messages, b"last"], pa.binary()).slice(1, len(messages))
        assert outcome(lambda: self.columns.read_array(longer)) == expected
        return not isinstance(expected, str)


def outcome(work: Callable[[], Any]) -> Any:
    """The values, or the error."""
    try:
        array = work()
    except DataError as error:
        return str(error)
    array.validate(full=True)
    return array.type, [repr(ordered(value)) for value in array.to_pylist(maps_as_pydicts="strict")]


def ordered(value: Any) -> Any:
    """A value with its maps in order, since Protobuf's have none."""
    if isinstance(value, dict):
        return sorted(((key, ordered(item)) for key, item in value.items()), key=repr)
    return [ordered(item) for item in value] if isinstance(value, list) else value


class Filling:
    """Fills messages with values, of which some are extreme."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def message(self, message: Any, share: float, depth: int = 0) -> Any:
        """Fill some of the fields."""
        name = message.DESCRIPTOR.full_name
        if name == "google.type.Date":
            message.year, message.month, message.day = (
                self.random.choice(each) for each in ((1, 2024, 9999), (1, 2, 12), (1, 28, 29))
            )
            if (message.month, message.day) == (2, 29):
                message.year = 2024
            return message
        if name == "google.type.TimeOfDay":
            message.hours, message.minutes, message.nanos = self.random.randrange(24), 59, 999_999_999
            return message
        if name == "google.protobuf.Timestamp":
            message.seconds, message.nanos = self.random.randrange(-(10**10), 10**11), self.random.randrange(10**9)
            return message
        if name == "confluent.type.Decimal":
            size = self.random.choice((1, 2, 8, 9, 15))
            message.value, message.scale, message.precision = self.random.randbytes(size), 2, 5
            return message
        if name == "Whole.PairEntry":
            message.key = str(self.random.random())
            return message
        for field in message.DESCRIPTOR.fields:
            if self.random.random() < share or getattr(field, "is_required", False):
                self._field(message, field, share, depth)
        return message

    def _field(self, message: Any, field: Any, share: float, depth: int) -> None:
        if not field.is_repeated:
            if field.message_type is None:
                setattr(message, field.name, self._scalar(field))
            else:
                getattr(message, field.name).SetInParent()
                self.message(getattr(message, field.name), share, depth + 1)
            return
        found = getattr(message, field.name)
        for _ in range(self.random.choice((1, 1, 2, 3))):
            if field.message_type is None:
                found.append(self._scalar(field))
            elif not field.message_type.GetOptions().map_entry:
                self.message(found.add(), share, depth + 1)
            else:
                key = self._scalar(field.message_type.fields_by_name["key"])
                value = field.message_type.fields_by_name["value"]
                if value.message_type is None:
                    found[key] = self._scalar(value)
                else:
                    self.message(found[key], share, depth + 1)

    def _scalar(self, field: Any) -> Any:
        kind, choice = KINDS[field.type], self.random.choice
        if kind == "enum":
            return choice([value.number for value in field.enum_type.values])
        if kind in ("float", "double"):
            return choice((0.0, -0.0, 1.5, float("inf"), float("nan"), -(2.0**-20)))
        if kind == "string":
            return choice(("", "a", "é€𝄞", "x" * 200, str(self.random.random())))
        if kind == "bytes":
            return self.random.randbytes(choice((0, 1, 130)))
        if kind == "bool":
            return choice((True, False))
        if field.name == "sa":
            return choice((-128, 127, 5))
        bits = 32 if kind.endswith("32") else 64
        low, high = (
            (0, 2 ** min(bits, 63)) if kind.startswith(("u", "fixed")) else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        )
        return choice((low, high - 1, 0, 1, 300, self.random.randrange(low, high)))

    def mutated(self, message: bytes) -> bytes:
        """Return a message with something changed behind its header."""
        head, body, rand = message[:6], bytearray(message[6:]), self.random
        place = rand.randrange(len(body) + 1)
        match rand.randrange(6):
            case 0 if body:
                body[min(place, len(body) - 1)] = rand.randrange(256)
            case 1:
                del body[place:]
            case 2 if body:
                del body[min(place, len(body) - 1)]
            case 3:
                body[place:place] = rand.randbytes(rand.randrange(1, 12))
            case 4:
                body += body[place:]
            case _:
                body[place:place] = b"\xff" * rand.randrange(1, 11)
        return head + bytes(body)


PAIRS = {
    f"{syntax}-{name}": (text, options)
    for syntax, text in (("proto3", PROTO3), ("proto2", PROTO2))
    for name, options in OPTIONS.items()
}
SELDOM = ("optional", "structs", "enhanced")
EACH = [pytest.param(name, marks=pytest.mark.thorough if name.endswith(SELDOM) else ()) for name in PAIRS]
_MADE: dict[str, Pair] = {}


def pair_of(name: str) -> Pair:
    """Both decoders, which are made once."""
    if name not in _MADE:
        _MADE[name] = Pair(*PAIRS[name])
    return _MADE[name]


def messages_of(pair: Pair, filling: Filling, count: int) -> list[bytes]:
    """Good messages, of which some are nearly empty and some full."""
    shares = (0.1, 0.5, 1.0)
    return [
        b"\0\0\0\0\7\0" + filling.message(pair.made(), filling.random.choice(shares)).SerializeToString()
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", EACH)
def test_good_messages_are_read_together(name: str) -> None:
    pair = pair_of(name)
    for seed in range(examples(2)):
        assert pair.check(messages_of(pair, Filling(seed), 300))
        if pair.columns.is_fast:
            assert len(pair.left) <= 30  # those with more elements than all others
    # A default that is not zero is left to the other decoder.
    assert pair.columns.is_fast == (name not in ("proto2-enhanced", "proto2-optional-x"))


@pytest.mark.parametrize("name", EACH)
def test_a_damaged_message_has_the_same_verdict_and_changes_no_other(name: str) -> None:
    pair, filling = pair_of(name), Filling(99)
    good = messages_of(pair, filling, 64)
    fine, bad = [], 0
    for _ in range(max(examples(100), 60)):
        message = filling.mutated(filling.random.choice(good))
        expected = outcome(lambda message=message: to_array(pair.decode([message]), pair.schema))  # type: ignore[misc]
        if isinstance(expected, str):
            bad += 1
            assert outcome(lambda message=message: pair.columns.read([*good, message, *good])) == expected  # type: ignore[misc]
        else:
            fine.append(message)
    assert pair.check([*good, *fine, *good])
    assert fine
    assert bad


HEADER = b"\0\0\0\0\7\0"
SHAPES: dict[str, Callable[[int], list[bytes]]] = {
    "fields in reverse order": lambda size: [HEADER + b"\x68\x01\x10\x01\x08\x01"] * size,
    "fields that the schema lacks": lambda size: [HEADER + b"\xf8\x7f\x01" * 20] * size,
    "one long message": lambda size: [HEADER] * 100 + [HEADER + b"\xfa\x01\x01\x05" * size + b"\x9a\x02\x00" * size],
    "long lists": lambda size: [HEADER + b"\x9a\x02\x01a" * (size // 20)] * 64,
    "packed numbers": lambda size: [HEADER + b"\xfa\x01\xe4\x00" + b"\x01" * 100] * size,
    "the same key again and again": lambda size: [HEADER + b"\xca\x02\x03\x0a\x01a" * 50] * (size // 10),
    "lengths that promise too much": lambda size: [HEADER + b"\x72\xff\xff\xff\x07"] * size,
}


@pytest.mark.growth
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_as_many_odd_messages_take_twice_as_long(shape: str) -> None:
    pair = pair_of("proto3-plain")
    assert_grows_evenly(lambda messages: outcome(lambda: pair.columns.read(messages)), SHAPES[shape], 1000)


@pytest.mark.growth
@pytest.mark.thorough
@pytest.mark.parametrize("shape", SHAPES)
def test_odd_messages_cost_a_small_multiple_of_reading_them_by_row(shape: str) -> None:
    pair, messages = pair_of("proto3-plain"), SHAPES[shape](1000)
    seconds = [float("inf"), float("inf")]
    works = (lambda: to_array(pair.decode(messages), pair.schema), lambda: pair.columns.read(messages))
    for _ in range(5):
        for place, work in enumerate(works):
            started = time.thread_time()
            with contextlib.suppress(DataError):
                work()
            seconds[place] = min(seconds[place], time.thread_time() - started)
    assert seconds[1] < 4 * seconds[0] + 0.02


@pytest.mark.growth
def test_schemas_with_many_optional_fields_are_read_evenly() -> None:
    """Whether a field is optional, and its file proto3, is not looked up in a copy of everything for each field."""
    config = ProtobufConverterConfig(schema_registry_url=("http://127.0.0.1:1",))

    def message(count: int) -> Any:
        fields = "".join(f"optional string f{number} = {number};" for number in range(1, count + 1))
        return ProtoSchema(f'syntax = "proto3"; message M {{ {fields} }}').root

    assert_grows_evenly(lambda root: reading_of(root, config), message, 500)
