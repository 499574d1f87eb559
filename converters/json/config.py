"""The options of the JSON converter."""

from __future__ import annotations

from connect.config import HIGH, LOW, Width, option
from converters.json.encode import DecimalFormat
from converters.universal import ConverterConfig

__all__ = ["JsonConverterConfig", "JsonDataConfig"]

_SCHEMAS = "Schemas"
_SERIALIZATION = "Serialization"


class JsonDataConfig(ConverterConfig):
    """The options of how values are written as JSON."""

    schemas_cache_size: int = option(
        default=1000,
        importance=HIGH,
        group=_SCHEMAS,
        order=1,
        width=Width.MEDIUM,
        display_name="Schema Cache Size",
        doc="How many schemas to cache in each direction.",
    )
    decimal_format: DecimalFormat = option(
        default=DecimalFormat.BASE64,
        importance=LOW,
        ignore_case=True,
        group=_SERIALIZATION,
        order=0,
        width=Width.MEDIUM,
        display_name="Decimal Format",
        doc="How decimals are written: as numbers (NUMERIC), or as the base64 text of their unscaled bytes (BASE64). "
        "Both forms are read.",
    )
    replace_null_with_default: bool = option(
        default=True,
        importance=LOW,
        group=_SERIALIZATION,
        order=1,
        width=Width.MEDIUM,
        display_name="Replace null with default",
        doc="Whether a null becomes the default of its schema, if there is one, when it is written or read.",
    )


class JsonConverterConfig(JsonDataConfig):
    """The options of the JSON converter."""

    schemas_enable: bool = option(
        default=True,
        importance=HIGH,
        group=_SCHEMAS,
        order=0,
        width=Width.MEDIUM,
        display_name="Enable Schemas",
        doc="Whether each message carries its schema, in an envelope with the members schema and payload.",
    )
    schema_content: str | None = option(
        default=None,
        importance=HIGH,
        group=_SCHEMAS,
        order=2,
        width=Width.MEDIUM,
        display_name="Schema Content",
        doc="The schema, as JSON, of all messages that are read: they then hold the payload alone, without an "
        "envelope. Used only for reading, and only with schemas.enable=true.",
    )
