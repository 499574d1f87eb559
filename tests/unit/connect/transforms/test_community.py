"""Transformations that Confluent, Aiven and others brought, by their Java names."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from connect.data import NO_HEADERS, Schema, SinkRecord, timestamp_schema
from connect.errors import ConfigError, DataError
from connect.internals.chain.specs import TransformationSpec
from connect.internals.plugins import PluginKind, PluginRegistry
from connect.transforms.community.change_case import changed_case

REGISTRY = PluginRegistry.discover()
PERSON = Schema.struct({"id": Schema.int32(), "name": Schema.string(optional=True)}, name="Person", version=2)
ANN = {"id": 1, "name": "Ann"}
TEXT = Schema.string()


def made(java: str, **options: str) -> Any:
    """The transformation of a Java class, from options with underscores for dots."""
    spec = TransformationSpec("t", java, {key.rstrip("_").replace("_", "."): value for key, value in options.items()})
    return REGISTRY.load(PluginKind.TRANSFORMATION, spec.type).configured(spec.props)


# -- Confluent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("behavior", "schema", "expected"),
    [
        ("nullify", PERSON, None),
        ("retain", PERSON, PERSON),
        ("force_optional", PERSON, PERSON.as_optional()),
        ("validate", PERSON.as_optional(), PERSON.as_optional()),
        ("validate", None, None),
    ],
)
def test_drop_keeps_the_schema_as_it_is_told(behavior: str, schema: Any, expected: Any, record: Any) -> None:
    dropped = made("io.confluent.connect.transforms.Drop$Value", schema_behavior=behavior)
    for value in (ANN, None):
        changed = dropped.apply(record(value, schema, key="k"))
        assert (changed.value, changed.value_schema, changed.key) == (None, expected, "k")


def test_drop_checks_that_the_schema_allows_null(record: Any) -> None:
    dropped = made("io.confluent.connect.transforms.Drop$Key", schema_behavior="validate")
    with pytest.raises(DataError, match="key allows no null"):
        dropped.apply(record(key="k", key_schema=TEXT))


@pytest.mark.parametrize(
    ("value", "options", "topic"),
    [
        ({"time": "2019-08-06"}, {"message_timestamp_format": "yyyy-MM-dd"}, "foo-orders-2019.08.06"),
        ({"ts": "2019-08-07", "time": None}, {"message_timestamp_format": "yyyy-MM-dd"}, "foo-orders-2019.08.07"),
        ({"ts": 1_565_136_000_000}, {}, "foo-orders-2019.08.07"),
        ({"ts": "2019-08-07T23:59:59+02:00"}, {}, "foo-orders-2019.08.07"),
        ({"ts": "2019-08-07T23:59:59-02:00"}, {}, "foo-orders-2019.08.08"),
        ({"ts": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)}, {}, "foo-orders-2020.01.01"),
    ],
)
def test_topics_are_named_by_a_time_in_the_value(value: Any, options: Any, topic: str, record: Any) -> None:
    router = made(
        "io.confluent.connect.transforms.MessageTimestampRouter",
        topic_format="foo-${topic}-${timestamp}",
        topic_timestamp_format="yyyy.MM.dd",
        message_timestamp_keys="timestamp,time,ts",
        **options,
    )
    assert router.apply(record(value)).topic == topic


@pytest.mark.parametrize("value", [{}, {"ts": None}, {"ts": "x"}, {"ts": True}, {"ts": [1]}, None, 5])
def test_a_value_without_a_time_names_no_topic(value: Any, record: Any) -> None:
    router = made("io.confluent.connect.transforms.MessageTimestampRouter", message_timestamp_keys="ts")
    with pytest.raises(DataError):
        router.apply(record(value))


def test_replace_field_is_known_by_confluents_name(record: Any) -> None:
    replace = made("io.confluent.connect.transforms.ReplaceField$Value", blacklist="name")
    assert replace.apply(record(ANN)).value == {"id": 1}


# -- Aiven ---------------------------------------------------------------------------------------------------------

ABC = {"id": 1, "name": "abc"}
SHA1 = "a9993e364706816aba3e25717850c26c9cd0d89d"


@pytest.mark.parametrize(
    ("function", "digest"),
    [
        ("md5", "900150983cd24fb0d6963f7d28e17f72"),
        ("sha1", SHA1),
        ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ],
)
def test_text_is_replaced_by_its_hash(function: str, digest: str, record: Any) -> None:
    field = made("io.aiven.kafka.connect.transforms.Hash$Value", field_name="name", function=function)
    for schema in (PERSON, None):
        changed = field.apply(record(dict(ABC), schema))
        assert (changed.value, changed.value_schema) == ({"id": 1, "name": digest}, schema)
    whole = made("io.aiven.kafka.connect.transforms.Hash$Key", function=function)
    assert whole.apply(record(key="abc", key_schema=TEXT)).key == digest


def test_a_hash_of_nested_text(record: Any) -> None:
    nested = made("io.aiven.kafka.connect.transforms.Hash$Value", field_name="person.name", function="sha1")
    schema = Schema.struct({"person": PERSON})
    assert nested.apply(record({"person": ABC}, schema)).value == {"person": {"id": 1, "name": SHA1}}


@pytest.mark.parametrize("value", [{"id": 1, "name": None}, {"id": 1}])
@pytest.mark.parametrize("schema", [PERSON, None])
def test_what_has_no_text_to_hash_passes_or_fails(value: Any, schema: Any, record: Any) -> None:
    given = {"field_name": "name", "function": "md5"}
    lenient = made("io.aiven.kafka.connect.transforms.Hash$Value", skip_missing_or_null="true", **given)
    assert lenient.apply(record(value, schema)).value == value
    with pytest.raises(DataError, match=r"skip\.missing\.or\.null"):
        made("io.aiven.kafka.connect.transforms.Hash$Value", **given).apply(record(value, schema))


def test_a_number_is_not_hashed(record: Any) -> None:
    with pytest.raises(DataError, match="must be of type STRING"):
        made("io.aiven.kafka.connect.transforms.Hash$Value", field_name="id", function="md5").apply(record(ANN, PERSON))
    with pytest.raises(DataError, match="must be text"):
        made("io.aiven.kafka.connect.transforms.Hash$Value", field_name="id", function="md5").apply(record(ANN))


def test_fields_are_joined(record: Any) -> None:
    concat = made(
        "io.aiven.kafka.connect.transforms.ConcatFields$Value",
        field_names="id,name,at.city,none",
        output_field_name="all",
        delimiter="-",
        field_replace_missing="*",
    )
    value = {"id": 1, "name": None, "at": {"city": "Rome"}}
    assert concat.apply(record(value)).value == {**value, "all": "1-*-Rome-*"}
    schema = Schema.struct({**{f.name: f.schema for f in PERSON.fields}, "at": Schema.struct({"city": TEXT})}, name="P")
    changed = concat.apply(record(value, schema))
    assert changed.value == {**value, "all": "1-*-Rome-*"}
    fields = {field.name: field.schema for field in schema.fields}
    assert changed.value_schema is Schema.struct({**fields, "all": Schema.string(optional=True)})


def test_fields_are_not_joined_into_one_that_is_there(record: Any) -> None:
    concat = made("io.aiven.kafka.connect.transforms.ConcatFields$Value", field_names="id", output_field_name="name")
    assert concat.apply(record(dict(ANN))).value == {"id": 1, "name": "1"}
    with pytest.raises(DataError, match="name already"):
        concat.apply(record(ANN, PERSON))


def test_records_become_tombstones(record: Any) -> None:
    headers = NO_HEADERS.add("h", 1, None)
    changed = made("io.aiven.kafka.connect.transforms.MakeTombstone").apply(
        record(ANN, PERSON, key="k", headers=headers)
    )
    assert (changed.value, changed.value_schema, changed.key, changed.headers) == (None, None, "k", headers)


KEY = Schema.struct({"a": Schema.int32(), "b": TEXT})


@pytest.mark.parametrize(
    ("options", "added", "fields"),
    [
        ({"key_fields": "a"}, {"a": 7}, {"a": Schema.int32()}),
        ({"key_fields": "a,b", "value_fields": "x"}, {"x": 7, "b": "k"}, {"x": Schema.int32(), "b": TEXT}),
        ({"key_fields": "*"}, {"_key": {"a": 7, "b": "k"}}, {"_key": KEY}),
        (
            {"key_fields": "*,a", "value_fields": "all"},
            {"all": {"a": 7, "b": "k"}, "a": 7},
            {"all": KEY, "a": Schema.int32()},
        ),
        ({"key_fields": "b", "value_fields": "name"}, {"name": "k"}, {"name": TEXT}),
    ],
)
def test_the_key_is_copied_into_the_value(options: Any, added: Any, fields: Any, record: Any) -> None:
    copied = made("io.aiven.kafka.connect.transforms.KeyToValue", **options)
    key = {"a": 7, "b": "k"}
    assert copied.apply(record(ANN, key=key)).value == {**ANN, **added}
    changed = copied.apply(record(ANN, PERSON, key=key, key_schema=KEY))
    assert changed.value == {**ANN, **added}
    assert changed.value_schema is PERSON.replace(
        fields=Schema.struct({**{field.name: field.schema for field in PERSON.fields}, **fields}).fields
    )
    assert (changed.key, changed.key_schema) == (key, KEY)


def test_a_key_of_text_is_copied_as_a_whole(record: Any) -> None:
    copied = made("io.aiven.kafka.connect.transforms.KeyToValue", key_fields="*", value_fields="id2")
    changed = copied.apply(record(ANN, PERSON, key="k"))
    assert changed.value == {**ANN, "id2": "k"}
    assert changed.value_schema.field("id2").schema is Schema.string(optional=True)


@pytest.mark.parametrize(
    "record_of",
    [
        {"value": ANN, "schema": PERSON, "key": {"a": 1}},
        {"value": ANN, "schema": PERSON, "key": "k", "key_schema": TEXT},
        {"value": ANN, "key": "k"},
        {"value": ANN, "key": None},
        {"value": None, "key": {"a": 1}},
        {"value": "text", "key": {"a": 1}},
    ],
)
def test_a_key_without_the_fields_is_refused(record_of: Any, record: Any) -> None:
    with pytest.raises(DataError):
        made("io.aiven.kafka.connect.transforms.KeyToValue", key_fields="a").apply(record(**record_of))


def test_two_fields_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="different names"):
        made("io.aiven.kafka.connect.transforms.KeyToValue", key_fields="a,b", value_fields="x,x")


# -- jcustenborder -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "wanted", "expected"),
    [
        ("customer_id", "LOWER_UNDERSCORE", "LOWER_CAMEL", "customerId"),
        ("customer_id", "LOWER_UNDERSCORE", "UPPER_CAMEL", "CustomerId"),
        ("customer_id", "LOWER_UNDERSCORE", "UPPER_UNDERSCORE", "CUSTOMER_ID"),
        ("customer_id", "LOWER_UNDERSCORE", "LOWER_HYPHEN", "customer-id"),
        ("CUSTOMER_ID", "UPPER_UNDERSCORE", "LOWER_CAMEL", "customerId"),
        ("CUSTOMER_ID", "UPPER_UNDERSCORE", "LOWER_UNDERSCORE", "customer_id"),
        ("customerId", "LOWER_CAMEL", "LOWER_UNDERSCORE", "customer_id"),
        ("CustomerId", "UPPER_CAMEL", "LOWER_UNDERSCORE", "customer_id"),
        ("HTTPServer", "UPPER_CAMEL", "LOWER_UNDERSCORE", "h_t_t_p_server"),
        ("customerId", "LOWER_CAMEL", "UPPER_CAMEL", "CustomerId"),
        ("already", "LOWER_CAMEL", "LOWER_CAMEL", "already"),
        ("", "LOWER_CAMEL", "UPPER_UNDERSCORE", ""),
    ],
)
def test_names_change_their_case(name: str, given: Any, wanted: Any, expected: str) -> None:
    assert changed_case(name, given, wanted) == expected


CASES = {"from_": "LOWER_UNDERSCORE", "to": "LOWER_CAMEL"}


def test_names_change_at_any_depth(record: Any) -> None:
    change = made("com.github.jcustenborder.kafka.connect.transform.common.ChangeCase$Value", **CASES)
    inner = Schema.struct({"post_code": TEXT}, optional=True, name="A")
    schema = Schema.struct({"first_name": TEXT, "home_address": inner, "all_addresses": Schema.array(inner)}, name="P")
    value = {"first_name": "Ann", "home_address": None, "all_addresses": [{"post_code": "1"}, None]}
    expected = {"firstName": "Ann", "homeAddress": None, "allAddresses": [{"postCode": "1"}, None]}
    changed = change.apply(record(value, schema))
    new = Schema.struct({"postCode": TEXT}, optional=True, name="A")
    assert changed.value == expected
    assert changed.value_schema is Schema.struct(
        {"firstName": TEXT, "homeAddress": new, "allAddresses": Schema.array(new)}, name="P"
    )
    assert change.apply(record(value)).value == expected


def test_names_within_some_fields_stay(record: Any) -> None:
    change = made(
        "com.github.jcustenborder.kafka.connect.transform.common.ChangeCase$Value",
        passthrough_fields="by_name",
        **CASES,
    )
    assert change.apply(record({"by_name": {"en_us": 1}})).value == {"byName": {"en_us": 1}}


@pytest.mark.parametrize("schema", [None, Schema.struct({"a_b": TEXT, "a_B": TEXT})])
def test_two_fields_do_not_become_one(schema: Any, record: Any) -> None:
    change = made("com.github.jcustenborder.kafka.connect.transform.common.ChangeCase$Value", **CASES)
    with pytest.raises(DataError, match="would be called aB"):
        change.apply(record({"a_b": "1", "a_B": "2"}, schema))


def now_of(record: SinkRecord, **options: str) -> SinkRecord:
    name = "com.github.jcustenborder.kafka.connect.transform.common.TimestampNowField$Value"
    changed: SinkRecord = made(name, **options).apply(record)
    return changed


def test_fields_get_the_current_time(record: Any) -> None:
    before = dt.datetime.now(dt.UTC)
    changed = now_of(record(dict(ANN), PERSON), fields="name,at", add_amount="2", add_chronounit="HOURS")
    after = dt.datetime.now(dt.UTC)
    assert before - dt.timedelta(milliseconds=1) <= changed.value["at"] - dt.timedelta(hours=2) <= after
    assert changed.value["name"] == changed.value["at"]
    assert changed.value_schema is PERSON.replace(
        fields=Schema.struct({"id": Schema.int32(), "name": timestamp_schema(), "at": timestamp_schema()}).fields
    )


def test_fields_get_the_seconds_since_1970(record: Any) -> None:
    yesterday = {"target_type": "Unix", "add_amount": "-1", "add_chronounit": "DAYS"}
    changed = now_of(record(dict(ANN)), fields="at", **yesterday)
    assert abs(changed.value["at"] - dt.datetime.now(dt.UTC).timestamp() + 86_400) < 60
    schema = PERSON.replace(fields=Schema.struct({"at": Schema.int64(optional=True)}).fields)
    assert now_of(record({"at": 1}, schema), fields="at", **yesterday).value_schema is schema


def test_a_tombstone_gets_no_time(record: Any) -> None:
    assert now_of(record(None, PERSON), fields="at") == record(None, PERSON)
