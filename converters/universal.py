"""Converters that serve keys, values and headers alike, and the option of all converters."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, TypeVar

from connect.config import LOW, Config, option
from connect.converter import Converter, HeaderConverter
from connect.data import Schema, SchemaAndValue

__all__ = ["ConverterConfig", "ConverterType", "UniversalConverter"]


class ConverterType(StrEnum):
    """The uses of a converter."""

    KEY = "key"
    VALUE = "value"
    HEADER = "header"


class ConverterConfig(Config):
    """The option of every converter."""

    converter_type: ConverterType | None = option(
        default=None,
        importance=LOW,
        doc="What the converter is used for. The worker sets it; leave it out.",
    )


C = TypeVar("C", bound=ConverterConfig)


class UniversalConverter(Converter[C], HeaderConverter[C], Generic[C]):
    """A converter that writes headers as it writes values: with the row methods alone it serves all three."""

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:  # noqa: ARG002
        """The bytes of one header's value; a :class:`~connect.errors.DataError` as in ``from_connect``."""
        return self.from_connect(topic, schema, value)

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:  # noqa: ARG002
        """The schema and value of one header's bytes; a :class:`~connect.errors.DataError` as in ``to_connect``."""
        return self.to_connect(topic, data)
