"""SetSchemaMetadata: sets the name or version of the schema."""

from __future__ import annotations

from typing import Any, Final

from connect.config import HIGH, Config, ConfigRuleError, option
from connect.data import Schema
from connect.errors import ConfigError, DataError
from connect.transforms.fields.key_or_value import Change, ValueTransformation, require_map, require_struct_schema
from connect.transforms.fields.options import replace_null_with_default
from connect.transforms.fields.struct_change import defaults_of, with_defaults

__all__ = ["SetSchemaMetadata", "SetSchemaMetadataConfig"]

_PURPOSE: Final = "updating schema metadata"


class SetSchemaMetadataConfig(Config):
    """The name and the version to set."""

    schema_name: str | None = option(default=None, importance=HIGH, doc="The name to set.")
    schema_version: int | None = option(default=None, importance=HIGH, doc="The version to set.")
    replace_null_with_default: bool = replace_null_with_default()

    def check(self) -> list[ConfigError]:
        """Refuse a configuration without both name and version."""
        if self.schema_name is None and self.schema_version is None:
            text = "Neither schema name nor version configured"
            return [ConfigRuleError(text, "schema.name", "schema.version")]
        return []


class SetSchemaMetadata(ValueTransformation[SetSchemaMetadataConfig]):
    """Sets the name, the version or both on the schema of structs."""

    passes_null = False

    def change(self, schema: Schema | None) -> Change:
        """Set name and version on a schema."""
        if schema is None:
            return Change(None, _refuse)
        require_struct_schema(schema, _PURPOSE)
        name = schema.name if self.config.schema_name is None else self.config.schema_name
        version = schema.version if self.config.schema_version is None else self.config.schema_version
        defaults = defaults_of(schema) if self.config.replace_null_with_default else []

        def keep(value: Any) -> Any:
            if value is None:
                return None
            struct = require_map(value, schema, _PURPOSE)
            return with_defaults(struct, defaults) if defaults else struct

        return Change(schema.replace(name=name, version=version), keep)


def _refuse(value: Any) -> None:
    if value is not None:
        raise DataError(f"Schema required for [{_PURPOSE}]")
