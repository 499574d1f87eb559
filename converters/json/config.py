"""The options of the JSON converter."""

from __future__ import annotations

from connect.config import HIGH, LOW, Width, option
from converters.json.encode import DecimalFormat
from converters.universal import ConverterConfig

__all__ = ["JsonConverterConfig"]

_SCHEMAS = "Schemas"
_SERIALIZATION = "Serialization"


class JsonConverterConfig(ConverterConfig):
    """The options of the JSON converter."""

    schemas_enable: bool = option(
        default=True,
        importance=HIGH,
        group=_SCHEMAS,
        order=0,
        width=Width.MEDIUM,
        display_name="Enable Schemas",
        doc="Whether each message holds its schema, in an envelope with the members schema and payload.",
    )
    schemas_cache_size: int = option(
        default=1000,
        importance=HIGH,
        group=_SCHEMAS,
        order=1,
        width=Width.MEDIUM,
        display_name="Schema Cache Size",
        doc="How many schemas are remembered in each direction, so that they need not be translated again.",
    )
    schema_content: str | None = option(
        default=None,
        importance=HIGH,
        group=_SCHEMAS,
        order=2,
        width=Width.MEDIUM,
        display_name="Schema Content",
        doc="A schema, as JSON, that all messages to be read have: they then hold the payload alone, without an "
        "envelope. Used only with schemas.enable=true, and only to read.",
    )
    decimal_format: DecimalFormat = option(
        default=DecimalFormat.BASE64,
        importance=LOW,
        ignore_case=True,
        group=_SERIALIZATION,
        order=0,
        width=Width.MEDIUM,
        display_name="Decimal Format",
        doc="How decimals are written: NUMERIC, as numbers, or BASE64, as the base64 text of their unscaled bytes. "
        "Both are read.",
    )
    replace_null_with_default: bool = option(
        default=True,
        importance=LOW,
        group=_SERIALIZATION,
        order=1,
        width=Width.MEDIUM,
        display_name="Replace null with default",
        doc="Whether a null is replaced by the default of its schema, where it has one, when written and when read.",
    )
