"""The options of the JSON Schema converter."""

from __future__ import annotations

from collections.abc import Iterable

from connect.config import LOW, MEDIUM, ConfigRuleError, at_least, option
from connect.errors import ConfigError
from connect.internals.extras import missing_extra
from converters.json.encode import DecimalFormat
from converters.registry import RegistryConfig

__all__ = ["JsonSchemaConverterConfig"]


class JsonSchemaConverterConfig(RegistryConfig):
    """The options of the JSON Schema converter: the registry, and how schemas and values are mapped."""

    schemas_cache_config: int = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        doc="How many schemas to cache in each direction.",
    )
    object_additional_properties: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether objects may have properties that their schema does not declare. false writes "
        "additionalProperties: false into every object of a schema.",
    )
    use_optional_for_nonrequired: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether fields that a schema does not require are read as optional fields.",
    )
    preserve_additional_properties: bool = option(
        default=False,
        importance=LOW,
        doc="Whether properties that the schema does not declare are read into the field "
        "__connect_additional_properties__, a map of JSON texts; otherwise they are left out.",
    )
    decimal_format: DecimalFormat = option(
        default=DecimalFormat.BASE64,
        importance=LOW,
        ignore_case=True,
        doc="How decimals are written: as numbers (NUMERIC), or as the base64 text of their unscaled bytes (BASE64). "
        "Both forms are read.",
    )
    generalized_sum_type_support: bool = option(
        default=False,
        importance=LOW,
        doc="Whether unions and enums have the form that all of Confluent's converters share: the members of unions "
        "are called connect_union_field_0, connect_union_field_1, ...",
    )
    flatten_singleton_unions: bool = option(
        default=True,
        importance=LOW,
        doc="Whether a oneOf or anyOf of one schema is read as that schema; otherwise it is read as a struct with one "
        "field.",
    )
    ignore_default_for_nullables: bool = option(
        default=False,
        importance=LOW,
        doc="Whether a null in a field that has a default stays null; otherwise it becomes the default.",
    )
    ignore_modern_dialects: bool = option(
        default=False,
        importance=LOW,
        doc="Whether schemas of the drafts 2019-09 and 2020-12 are read as if they were of draft 7.",
    )
    json_fail_invalid_schema: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether every payload, written or read, must be valid by its schema; one that is not is refused.",
    )
    json_indent_output: bool = option(
        default=False, importance=LOW, doc="Whether the JSON is written indented, on several lines."
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule, and one if the packages are missing."""
        yield from super().check()
        missing = missing_extra("json-schema", "jsonschema_rs", "referencing")
        if missing is not None:
            yield ConfigRuleError(f"JSON Schema cannot be read or written here. {missing}", "schema.registry.url")
