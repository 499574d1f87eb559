"""The base of converters that serve keys, values and headers, and the option that all converters share."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, TypeVar

from connect.config import LOW, Config, option
from connect.converter import Converter, HeaderConverter
from connect.data import Schema, SchemaAndValue

__all__ = ["ConverterConfig", "ConverterType", "UniversalConverter"]


class ConverterType(StrEnum):
    """What a converter is used for."""

    KEY = "key"
    VALUE = "value"
    HEADER = "header"


class ConverterConfig(Config):
    """The option that all converters share."""

    converter_type: ConverterType | None = option(
        default=None,
        importance=LOW,
        doc="What the converter is used for. The worker sets it; leave it out.",
    )


C = TypeVar("C", bound=ConverterConfig)


class UniversalConverter(Converter[C], HeaderConverter[C], Generic[C]):
    """A converter that writes headers like values, so that its row methods serve keys, values and headers."""

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """Return the bytes of a header's value; errors as in ``from_connect``."""
        return self.from_connect(topic, schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """Return the schema and the value of a header's bytes; errors as in ``to_connect``."""
        return self.to_connect(topic, data)
