"""The options of the mapping of schemas and values."""

from __future__ import annotations

from connect.config import LOW, Config, at_least, option
from connect.kits.avro.names import ENUM, GENERALIZED_ENUM

__all__ = ["AvroDataConfig"]


class AvroDataConfig(Config):
    """The options of the mapping between Connect's data and Avro's, as in Java's ``AvroDataConfig``."""

    schemas_cache_config: int = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        doc="How many schemas to cache in each direction.",
    )
    connect_meta_data: bool = option(
        default=True,
        importance=LOW,
        doc="Whether what Avro lacks (name, version, doc, parameters and default of schemas, 8- and 16-bit integers) "
        "is written into the Avro schema as connect.* properties, and read from them.",
    )
    enhanced_avro_schema_support: bool = option(
        default=False,
        importance=LOW,
        doc="Whether enums are written as enums again, and members of unions are named with their namespace.",
    )
    scrub_invalid_names: bool = option(
        default=False,
        importance=LOW,
        doc="Whether characters that Avro does not allow in names are replaced with _; otherwise they are refused.",
    )
    discard_type_doc_default: bool = option(
        default=False,
        importance=LOW,
        doc="Whether to leave out docs of types and defaults of enums; the doc of a field is then that of its schema.",
    )
    allow_optional_map_keys: bool = option(
        default=False,
        importance=LOW,
        doc="Whether a map whose keys are optional strings is written as an Avro map, not as an array of entries.",
    )
    flatten_singleton_unions: bool = option(
        default=True,
        importance=LOW,
        doc="Whether a union of one type is read as that type; otherwise it is read as a struct with one field.",
    )
    generalized_sum_type_support: bool = option(
        default=False,
        importance=LOW,
        doc="Whether unions and enums have the form that all of Confluent's converters share: the members of unions "
        "are called connect_union_field_0, connect_union_field_1, ...",
    )
    ignore_default_for_nullables: bool = option(
        default=False,
        importance=LOW,
        doc="Whether a null in a field that has a default is written as null; otherwise the default is written.",
    )

    @property
    def enum_parameter(self) -> str:
        """The name of the schema parameter that marks a string as an enum."""
        return GENERALIZED_ENUM if self.generalized_sum_type_support else ENUM

    @property
    def writes_enums(self) -> bool:
        """Whether strings marked as enums are written as Avro enums."""
        return self.generalized_sum_type_support or self.enhanced_avro_schema_support
