"""Validation tells everything about every key, as Kafka does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from connect.config import (
    HIDDEN,
    HIGH,
    LOW,
    MEDIUM,
    Config,
    ConfigRuleError,
    ConfigValue,
    Long,
    ParsedValue,
    Password,
    PluginName,
    at_least,
    embed,
    invalid_value,
    known_class,
    non_empty,
    option,
    regex,
    validate_keys,
    validator,
)
from connect.errors import ConfigError


def tables(values: Mapping[str, ParsedValue]) -> Iterable[ParsedValue]:
    if values["url"] is None:
        raise ConfigRuleError("Give the url to see the tables", "table")
    return [f"{values['url']}/a", f"{values['url']}/b"]


@validator("string that starts with a capital")
def capitalised(key: str, value: str) -> None:
    if not value[0].isupper():
        raise invalid_value(key, value, f"{value} starts with {value[0]}")


class SampleConfig(Config):
    tasks_max: int = option(default=1, importance=HIGH, validator=at_least(1), doc="Tasks.")
    mode: Literal["bulk", "tail"] = option(importance=HIGH, doc="Mode.")
    interval: Long | None = option(default=None, importance=LOW, validator=at_least(0), doc="Interval.")
    column: str = option(default="", importance=LOW, doc="Column.", visible=lambda values: values["mode"] == "tail")
    url: str | None = option(default=None, importance=LOW, doc="URL.", dependents=["table"])
    table: str = option(default="", importance=LOW, doc="Table.", recommender=tables)
    converter: PluginName | None = option(
        default=None, importance=LOW, doc="Converter.", validator=known_class({"Json"}.__contains__)
    )
    password: Password | None = option(default=None, importance=LOW, validator=capitalised, doc="Password.")


def validate(**props: str | None) -> dict[str, ConfigValue]:
    return {value.name: value for value in SampleConfig.validate({k.replace("_", "."): v for k, v in props.items()})}


def test_every_key_has_a_value_in_declared_order() -> None:
    values = validate(mode="tail", url="u")
    assert list(values) == [key.name for key in SampleConfig.definitions()]
    assert all(value.errors == () for value in values.values())
    assert values["mode"] == ConfigValue("mode", "tail")


def test_the_validator_is_asked_about_a_value_that_cannot_be_read() -> None:
    values = validate(tasks_max="abc", interval="abc")
    assert values["tasks.max"].value is None
    assert values["tasks.max"].errors == (
        "Invalid value abc for configuration tasks.max: Not a number of type INT",
        "Invalid value null for configuration tasks.max: Value must be non-null",
    )
    assert values["interval"].errors == ("Invalid value abc for configuration interval: Not a number of type LONG",)
    assert values["mode"].errors == (
        'Missing required configuration "mode" which has no default value.',
        "Invalid value null for configuration mode: String must be one of: bulk, tail",
    )


def test_a_refused_value_is_shown_unless_it_is_a_class() -> None:
    values = validate(mode="x", converter="Nope")
    assert values["mode"].value == "x"
    assert values["converter"].value is None
    assert values["converter"].errors == (
        "Invalid value Nope for configuration converter: Class Nope could not be found.",
    )


def test_recommenders_see_the_other_values() -> None:
    assert validate(mode="tail", url="u")["table"].recommended_values == ("u/a", "u/b")
    refused = validate(mode="tail")["table"]
    assert refused.errors == ("Give the url to see the tables",)
    assert validate(mode="tail")["column"].visible
    assert not validate(mode="bulk")["column"].visible


def test_a_password_is_never_told() -> None:
    value = validate(mode="bulk", password="s3cret")["password"]
    assert value.errors == (
        "Invalid value [hidden] for configuration password: Value must be: string that starts with a capital",
    )
    assert "s3cret" not in repr(value)
    assert validate(mode="bulk", password="S3cret")["password"].errors == ()


def test_the_value_of_a_secret_key_is_never_told() -> None:
    class SecretsConfig(Config):
        number: int = option(importance=HIGH, doc="A number.")
        pattern: str = option(importance=HIGH, validator=regex, doc="A pattern.")
        items: tuple[str, ...] = option(importance=HIGH, doc="Items.")

    props = {"number": "s3cret", "pattern": "(s3cret", "items": "s3cret,b"}
    values = SecretsConfig.validate(props, secret_keys=props)
    assert "s3cret" not in repr(values)
    assert [value.errors for value in values] == [
        ("Invalid value [hidden] for configuration number: Not a number of type INT",),
        ("Invalid value [hidden] for configuration pattern: Value must be: valid regex",),
        (),
    ]


def test_a_short_secret_leaves_no_holes_in_words_that_would_tell_it() -> None:
    class LoginConfig(Config):
        password: Password = option(importance=HIGH, doc="To log in.")

        def check(self) -> Iterable[ConfigError]:
            yield ConfigRuleError(f"a password of letters, not {self.password.value}", "password")

    for secret in ("a", "s3cret"):
        (value,) = LoginConfig.validate({"password": secret})
        article = HIDDEN if secret == "a" else "a"
        assert value.errors == (f"{article} password of letters, not [hidden]",)


def test_embedded_keys_are_those_of_their_owner() -> None:
    class FilterConfig(Config):
        zeta: str = option(default="", importance=HIGH, doc="Z.")
        field: str = option(importance=MEDIUM, validator=non_empty, doc="F.", dependents=["zeta"])
        alpha: str = option(
            default="",
            importance=LOW,
            doc="A.",
            group="Extra",
            recommender=lambda values: [values["field"]],
            visible=lambda values: values["field"] == "f",
        )

    keys = embed(FilterConfig.definitions(), prefix="transforms.a.", group="Transforms: a", first_order=2)
    assert [(key.name, key.group, key.order_in_group) for key in keys] == [
        ("transforms.a.field", "Transforms: a", 2),
        ("transforms.a.zeta", "Transforms: a", 3),
        ("transforms.a.alpha", "Transforms: a: Extra", 4),
    ]
    assert keys[0].dependents == ("transforms.a.zeta",)
    assert keys[0].display_name == "field"
    values = validate_keys(keys, {"transforms.a.field": "f", "field": "g"})
    assert values[2] == ConfigValue("transforms.a.alpha", "", ("f",))
    refused = validate_keys(keys, {"field": "g"})
    assert refused[0].errors == ('Missing required configuration "transforms.a.field" which has no default value.',)
    assert not refused[2].visible
