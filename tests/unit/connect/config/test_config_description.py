"""The REST objects and the reference of a config class."""

from __future__ import annotations

from typing import Literal

from connect.config import (
    HIGH,
    LOW,
    Config,
    ConfigValue,
    Password,
    Width,
    at_least,
    config_info,
    key_info,
    non_empty,
    option,
    to_markdown,
    value_info,
)


class FileSourceConfig(Config):
    """Reads a file.

    Line by line.
    """

    file: str | None = option(default=None, importance=HIGH, doc="Source filename.")
    topic: str = option(importance=HIGH, validator=non_empty, doc="The topic.")
    batch_size: int = option(default=2000, importance=LOW, validator=at_least(1), doc="Most records.")


class JsonConverterConfig(Config):
    schemas_enable: bool = option(
        default=True,
        importance=HIGH,
        doc="Include schemas.",
        group="Schemas",
        order=0,
        width=Width.MEDIUM,
        display_name="Enable Schemas",
        dependents=["decimal.format"],
    )
    decimal_format: Literal["NUMERIC", "BASE64"] = option(
        default="BASE64", ignore_case=True, importance=LOW, doc="How decimals are written."
    )
    ratio: float = option(default=1000.0, importance=LOW, doc="A ratio.")
    columns: tuple[str, ...] = option(default=("a", "b"), importance=LOW, doc="Columns.")
    empty: str = option(default="", importance=LOW, doc="Nothing.")
    secret: Password = option(default=Password("s3cret"), importance=LOW, doc="A secret.")
    hidden: bool = option(default=False, importance=LOW, doc="Internal.", internal=True)


def test_definitions_are_those_of_the_rest_api() -> None:
    topic, batch_size = (key_info(key) for key in FileSourceConfig.definitions()[1:])
    assert topic == {
        "name": "topic",
        "type": "STRING",
        "required": True,
        "default_value": None,
        "importance": "HIGH",
        "documentation": "The topic.",
        "group": None,
        "order_in_group": -1,
        "width": "NONE",
        "display_name": "topic",
        "dependents": [],
    }
    assert list(topic)[-4:] == ["order_in_group", "width", "display_name", "dependents"]
    assert (batch_size["name"], batch_size["required"], batch_size["default_value"]) == (
        "batch.size",
        False,
        "2000",
    )


def test_the_place_in_a_user_interface() -> None:
    info = key_info(JsonConverterConfig.definitions()[0])
    assert (info["group"], info["order_in_group"], info["width"]) == ("Schemas", 0, "MEDIUM")
    assert (info["display_name"], info["dependents"]) == ("Enable Schemas", ["decimal.format"])


def test_defaults_are_written_as_kafka_writes_them() -> None:
    defaults = [key_info(key)["default_value"] for key in JsonConverterConfig.definitions()]
    assert defaults == ["true", "BASE64", "1000.0", "a,b", "", "[hidden]", "false"]
    assert key_info(FileSourceConfig.definitions()[0])["default_value"] is None


def test_values_are_those_of_the_rest_api() -> None:
    assert value_info(ConfigValue("k", ("a", "b"), (True, "x"), ("wrong",), visible=False)) == {
        "name": "k",
        "value": "a,b",
        "recommended_values": ["true", "x"],
        "errors": ["wrong"],
        "visible": False,
    }


def test_a_validation_answers_definition_and_value() -> None:
    keys = FileSourceConfig.definitions()
    infos = [config_info(key, value) for key, value in zip(keys, FileSourceConfig.validate({}), strict=True)]
    assert infos[1]["definition"] == key_info(keys[1])
    assert infos[1]["value"]["errors"] == ['Missing required configuration "topic" which has no default value.']
    assert config_info(None, ConfigValue("x"))["definition"] is None


def test_markdown_of_a_class() -> None:
    assert to_markdown(FileSourceConfig) == (
        "Reads a file.\n\nLine by line.\n\n"
        "### `file`\n\nSource filename.\n\n- Type: string\n- Default: null\n- Importance: high\n\n"
        "### `topic`\n\nThe topic.\n\n- Type: string\n- Default: none, it is required\n"
        "- Valid values: non-empty string\n- Importance: high\n\n"
        "### `batch.size`\n\nMost records.\n\n- Type: int\n- Default: `2000`\n- Valid values: [1,...]\n"
        "- Importance: low\n"
    )


def test_markdown_leaves_out_the_internal_and_the_secret() -> None:
    text = to_markdown(JsonConverterConfig, heading=2)
    assert text.startswith("## `schemas.enable`\n")
    assert "`hidden`" not in text
    assert "s3cret" not in text
    assert "- Default: empty" in text
    assert "- Depends on it: `decimal.format`" in text
