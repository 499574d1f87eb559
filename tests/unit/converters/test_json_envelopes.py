"""Envelopes in every form that producers give them: what they hold is the same, by row, by column and in Arrow."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.data import Schema, ValueColumn, decimal_schema
from connect.errors import DataError
from converters.json import JsonConverter, JsonConverterConfig
from equipment.examples import examples
from equipment.growth import assert_cost_at_most
from equipment.strategies.schemas import schemas
from equipment.strategies.values import values_of
from equipment.vectors import encoded

ORDER = Schema.struct(
    {
        "id": Schema.int64(),
        "payload": Schema.string(optional=True),
        "schema": Schema.float64(),
        "price": decimal_schema(2),
        "half": Schema.float32(),
    },
    name="shop.Order",
    doc='has "payload": and "schema": in it',
)
VALUE = {"id": 7, "payload": '"schema":', "schema": 0.5, "price": Decimal("12.30"), "half": 1.5}


def converter(**options: Any) -> JsonConverter:
    return JsonConverter(JsonConverterConfig(**options))


def parts_of(message: bytes | None) -> tuple[str, str]:
    """The text of the schema and that of the payload."""
    assert message is not None
    text = message.decode()
    described, end = json.JSONDecoder().raw_decode(text, len('{"schema":'))
    del described
    return text[len('{"schema":') : end], text[end + len(',"payload":') : -1]


FORMS: dict[str, Callable[[str, str], str]] = {
    "as written": '{{"schema":{},"payload":{}}}'.format,
    "a line": '{{"schema":{},"payload":{}}}\n'.format,
    "white space": ' \r\n{{ "schema" : {} ,\t"payload" : {} }}\r\n'.format,
    "a byte order mark": '\ufeff{{"schema":{},"payload":{}}}'.format,
    "text behind": '{{"schema":{},"payload":{}}} {{"x":1}}'.format,
    "payload first": lambda schema, payload: f'{{"payload":{payload},"schema":{schema}}}',
    "payload first, a line": lambda schema, payload: f'{{"payload":{payload},"schema":{schema}}}\n',
    "payload first, white space": lambda schema, payload: f' {{ "payload" : {payload} , "schema" : {schema} }} ',
    "payload first, text behind": lambda schema, payload: f'{{"payload":{payload},"schema":{schema}}}x',
    "escaped names": '{{"sch\\u0065ma":{},"p\\u0061yload":{}}}'.format,
    "a schema twice": '{{"schema":{{"type":"int8"}},"schema":{},"payload":{}}}'.format,
    "a schema around": '{{"schema":{{"type":"x"}},"payload":{1},"schema":{0}}}'.format,
    "a payload twice": '{{"payload":{{"x":1}},"schema":{},"payload":{}}}'.format,
    "a payload around": '{{"payload":1,"payload":{1},"schema":{0}}}'.format,
}


def readings(json_converter: JsonConverter, messages: list[bytes]) -> dict[str, Any]:
    """What the messages hold, by each way of reading them; ``DataError`` for what is refused."""

    def outcome(read: Callable[[], list[tuple[Schema | None, Any]]]) -> Any:
        try:
            return [(schema, encoded(value, schema)) for schema, value in read()]
        except DataError:
            return DataError

    def flat(columns: Any) -> list[tuple[Schema | None, Any]]:
        return [(column.schema, value) for column in columns for value in column]

    return {
        "row": outcome(lambda: [tuple(json_converter.to_connect("t", message)) for message in messages]),
        "column": outcome(lambda: flat(json_converter.to_connect_column("t", messages))),
        "arrow": outcome(lambda: flat(json_converter.to_connect_arrow("t", messages))),
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("decimal_format", ["NUMERIC", "BASE64"])
def test_every_form_is_read_alike(form: str, decimal_format: str) -> None:
    schema, payload = parts_of(converter(decimal_format=decimal_format).from_connect("t", ORDER, VALUE))
    json_converter, message = converter(), FORMS[form](schema, payload).encode()
    expected = [(ORDER, encoded(VALUE, ORDER))] * 40
    for _ in range(2):
        assert readings(json_converter, [message] * 40) == dict.fromkeys(("row", "column", "arrow"), expected)


@settings(max_examples=examples(30), deadline=None)
@given(st.data(), st.lists(schemas(), min_size=1, max_size=3), st.booleans())
def test_forms_may_be_mixed(data: st.DataObject, several: list[Schema], numeric: bool) -> None:
    writer = converter(decimal_format="NUMERIC" if numeric else "BASE64")
    messages = []
    for _ in range(data.draw(st.integers(1, 12))):
        schema = data.draw(st.sampled_from(several))
        parts = parts_of(writer.from_connect("t", schema, data.draw(values_of(schema))))
        messages.append(FORMS[data.draw(st.sampled_from(sorted(FORMS)))](*parts).encode())
    expected = readings(converter(), messages)["row"]
    fresh = [converter().to_connect("t", message) for message in messages]
    assert expected == [(schema, encoded(value, schema)) for schema, value in fresh]
    assert readings(converter(), messages) == dict.fromkeys(("row", "column", "arrow"), expected)


NUMBERS = [
    "5.0",
    "-5.9",
    "1e3",
    "1E+3",
    "3000000000.5",
    "1e30",
    "1e-400",
    "007",
    "-00.5",
    "0.000",
    "1e99",
    "-0",
    "-0.0",
]
NUMBERS += ["12345678901234567890", "0.1234567890123456789", "1.00000005960464477539062500000000001", "1e-310", "null"]
NUMBERS += [
    "1.00000005960464",
    "9007199254740993",
    "123456789012345.6",
    "1e400",
    '"7"',
    "true",
    "1e-0300",
    "2.5E-00300",
]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(st.sampled_from(NUMBERS), min_size=4, max_size=4), min_size=1, max_size=9), st.data())
def test_odd_numbers_are_read_alike(rows: list[list[str]], data: st.DataObject) -> None:
    fields = {
        "a": Schema.int32(optional=True),
        "b": decimal_schema(2, optional=True),
        "c": Schema.float32(optional=True),
        "d": Schema.float64(optional=True),
    }
    schema, _ = parts_of(converter().from_connect("t", Schema.struct(fields, optional=True), None))
    form = FORMS[data.draw(st.sampled_from(sorted(FORMS)))]
    texts = [", ".join(f'"{name}": {text}' for name, text in zip(fields, row, strict=True)) for row in rows]
    messages = [form(schema, f"{{{text}}}").encode() for text in texts]
    # Alone in its converter a message is read exactly from the start: it is preceded by none.
    alone = [converter(decimal_format="NUMERIC") for _ in messages]
    try:
        expected: Any = [
            (pair.schema, encoded(pair.value, pair.schema))
            for json_converter, message in zip(alone, messages, strict=True)
            for pair in [json_converter.to_connect("t", message)]
        ]
    except DataError:
        expected = DataError
    assert readings(converter(), messages) == dict.fromkeys(("row", "column", "arrow"), expected)


@pytest.mark.parametrize(
    "message",
    [
        b'{"payload":{"a":1,"schema":{"type":"int32"}}',
        b'{"payload":1,"schema":{"type":"int32"}',
        b'{"payload":1,"schema":{"type":"int32"},}',
        b'{"payload":1,"schema":{"type":"int32"},"more":1}',
        b'{"payload":1,,"schema":{"type":"int32"}}',
        b'{"payload":1 2,"schema":{"type":"int32"}}',
        b'{"payload":,"schema":{"type":"int32"}}',
        b'{"payload":"1,"schema":{"type":"int32"}}',
        b'{"payload":"schema":{"type":"int32"}}',
        b'{"schema":{"type":"int32"},"payload":1,2}',
        b'{"schema":{"type":"int32"},"payload":1}}'[:-2],
        b'{"schema":{"type":"int32"},"payload":}',
        b'{"schema":{"type":"int32"},"payload":1,"more":1}',
        b'{"schema":{"type":"int32"}}',
        b'{"payload":1}',
        b"{}",
        b"",
        b" ",
        b"1",
        b"[]",
        b"{1:2}",
        b"nope",
    ],
)
def test_what_is_no_envelope_is_refused_among_envelopes(message: bytes) -> None:
    sound = [b'{"payload":1,"schema":{"type":"int32"}}', b'{"schema":{"type":"int32"},"payload":1}']
    for other in sound:
        json_converter = converter()
        assert json_converter.to_connect("t", other) == (Schema.int32(), 1)
        for before in (0, 5, 40):
            messages = [other] * before + [message] + [other] * 5
            assert set(readings(json_converter, messages).values()) == {DataError}


def test_a_message_in_another_form_costs_little_more() -> None:
    """Another order, white space, numeric decimals, a fraction in a whole number: a few times as much at most."""
    schema, payload = parts_of(converter().from_connect("t", ORDER, VALUE))
    plain = FORMS["as written"](schema, payload)
    numeric = plain.replace(payload.partition('"price":')[2].partition(",")[0], "12.30")
    odd = {
        "a line": (FORMS["a line"](schema, payload), 3),
        "payload first": (FORMS["payload first"](schema, payload), 3),
        "payload first, white space": (FORMS["payload first, white space"](schema, payload), 3),
        "numeric": (numeric, 3),
        "a fraction": (plain.replace('"id":7', '"id":7.0'), 5),
        "a long fraction": (numeric.replace('"schema":0.5', '"schema":0.12345678901234567890'), 12),
        "a zero": (plain.replace('"id":7', '"id":07'), 20),
        "text behind": (FORMS["text behind"](schema, payload), 30),
    }

    def read(message: str) -> Callable[[], None]:
        json_converter, given = converter(), message.encode()

        def fifty_times() -> None:
            for _ in range(50):
                json_converter.to_connect("t", given)

        return fifty_times

    assert_cost_at_most(read(plain), {name: (read(message), most) for name, (message, most) in odd.items()})


def test_no_more_frames_are_remembered_than_configured() -> None:
    json_converter = converter(schemas_cache_size=2)
    for version in range(6):
        schema, payload = parts_of(json_converter.from_connect("t", Schema.int32(version=version), version))
        for form in FORMS.values():
            found = json_converter.to_connect("t", form(schema, payload).encode())
            assert found == (Schema.int32(version=version), version)
    assert len(json_converter._codecs._frames) == 2


def test_versions_beyond_32_bits_keep_the_low_ones() -> None:
    message = b'{"schema":{"type":"int32","version":12345678901234567890},"payload":1}'
    assert converter().to_connect("t", message).schema == Schema.int32(version=-350287150)


def test_column_values_are_not_shared() -> None:
    message = b'{"payload":{"a":[1]},"schema":null}'
    (column,) = converter().to_connect_column("t", [message] * 8)
    first, second, *_ = column
    first["a"].append(2)
    assert second == {"a": [1]}
    assert isinstance(column, ValueColumn)
