"""The options of the Protobuf converter."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from connect.config import LOW, MEDIUM, ConfigRuleError, at_least, option
from connect.errors import ConfigError
from connect.internals.extras import missing_extra
from converters.protobuf.conventions import ENUM, GENERALIZED_ENUM
from converters.registry import RegistryConfig

__all__ = ["ProtobufConverterConfig", "UnsignedType"]


class UnsignedType(StrEnum):
    """What ``uint64`` and ``fixed64`` are read as."""

    INT64 = "int64"
    DECIMAL = "decimal"
    STRING = "string"


class ProtobufConverterConfig(RegistryConfig):
    """The options of the Protobuf converter: the registry, and how schemas and values are mapped."""

    schemas_cache_config: int = option(
        default=1000,
        importance=LOW,
        validator=at_least(1),
        doc="How many schemas to cache in each direction.",
    )
    enhanced_protobuf_schema_support: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether structs, enums, unions and maps are named with the package and the messages they are in.",
    )
    scrub_invalid_names: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether characters that Protobuf does not allow in names are replaced with _; otherwise they are refused.",
    )
    generalized_sum_type_support: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether unions and enums have the form that all of Confluent's converters share.",
    )
    int_for_enums: bool = option(
        default=False, importance=MEDIUM, doc="Whether enums are read as their numbers; otherwise as their symbols."
    )
    optional_for_nullables: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether optional scalars are written with the label optional, so that null differs from 0 and from empty "
        "text. When reading, other scalars are then not optional.",
    )
    optional_for_proto2: bool = option(
        default=True, importance=MEDIUM, doc="Whether an optional field of proto2 that is not there is read as null."
    )
    wrapper_for_nullables: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether optional scalars are written as the messages of google/protobuf/wrappers.proto, and those are "
        "read as scalars. When reading, other scalars are then not optional.",
    )
    wrapper_for_raw_primitives: bool = option(
        default=True,
        importance=MEDIUM,
        doc="Whether a message of google/protobuf/wrappers.proto that is the whole value is read as its scalar.",
    )
    generate_struct_for_nulls: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether a message that is not there is read as a struct of defaults; otherwise as null.",
    )
    generate_index_for_unions: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the field of a oneof is called <oneof>_<index>; otherwise <oneof>.",
    )
    flatten_unions: bool = option(
        default=False,
        importance=LOW,
        doc="Whether the members of a oneof are read as fields of the message itself.",
    )
    ignore_default_for_nullables: bool = option(
        default=False,
        importance=LOW,
        doc="Whether a null in a field that has a default stays null; otherwise the default is written.",
    )
    uint64_type: UnsignedType = option(
        default=UnsignedType.INT64,
        importance=LOW,
        ignore_case=True,
        doc="What uint64 and fixed64 are read as: int64, which refuses numbers above 9223372036854775807, decimal or "
        "string.",
    )
    reference_lookup_only: bool = option(
        default=False,
        importance=LOW,
        doc="Without effect: a schema that is written refers only to files that every reader knows.",
    )
    skip_known_types: bool = option(
        default=True,
        importance=LOW,
        doc="Whether the files of google/protobuf, google/type and confluent are no references of schemas that are "
        "written. Only true is supported.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule, and one if the packages are missing."""
        yield from super().check()
        if not self.skip_known_types:
            reason = "registering the files of google and confluent is not supported: leave it out"
            yield ConfigError("skip.known.types", "false", reason)
        if self.optional_for_nullables and self.wrapper_for_nullables:
            reason = "it cannot be combined with optional.for.nullables=true: choose one form of null"
            yield ConfigError("wrapper.for.nullables", "true", reason)
        missing = missing_extra("protobuf", "google.protobuf", "grpc_tools", "google.type")
        if missing is not None:
            yield ConfigRuleError(f"Protobuf cannot be read or written here. {missing}", "schema.registry.url")

    @property
    def enum_parameter(self) -> str:
        """The name of the schema parameter that marks a string as an enum."""
        return GENERALIZED_ENUM if self.generalized_sum_type_support else ENUM

    @property
    def marks_nullables(self) -> bool:
        """Whether scalars say whether they may be null."""
        return self.optional_for_nullables or self.wrapper_for_nullables
