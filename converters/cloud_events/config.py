"""The options of the CloudEvents converter, with those of the converters it uses below ``json.`` and ``avro.``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, Final

from connect.config import HIGH, LOW, Config, ConfigKey, InvalidConfigError, invalid_value, option, validator
from connect.errors import ConfigError
from connect.hosts import ALLOWED_HOSTS_KEY, DENIED_HOSTS_KEY, HostsConfig
from connect.kits.cdc.topics import NameAdjustmentMode
from converters.avro import AvroConverterConfig
from converters.json import JsonConverterConfig
from converters.universal import ConverterConfig

__all__ = ["CloudEventsConverterConfig", "MetadataSource", "Origin", "SerializerType"]

_JSON: Final = "json."
_AVRO: Final = "avro."


class SerializerType(StrEnum):
    """The formats of events and of their data."""

    JSON = "json"
    AVRO = "avro"


class Origin(StrEnum):
    """Where an attribute comes from."""

    VALUE = "value"
    HEADER = "header"
    GENERATE = "generate"


@dataclass(frozen=True, slots=True)
class MetadataSource:
    """Where source, operation and transaction come from, and the attributes that may come from elsewhere."""

    whole: Origin
    id: Origin
    type: Origin
    traceparent: Origin
    data_schema_name: Origin


_FIELDS: Final = {"id": "id", "type": "type", "traceparent": "traceparent", "dataSchemaName": "data_schema_name"}
_DEFAULT: Final = ("value", "id:generate", "type:generate", "traceparent:header", "dataSchemaName:generate")


def _metadata_source(key: str, items: tuple[str, ...]) -> MetadataSource:
    """Return what the items of ``metadata.source`` say; raise a ``ConfigError`` if they are wrong."""
    first, *others = [item.strip() for item in items] or [""]
    if first.lower() not in (Origin.VALUE, Origin.HEADER):
        raise invalid_value(key, ",".join(items), f"begin with value or header, not with {first!r}")
    whole = Origin(first.lower())
    found = dict.fromkeys(_FIELDS.values(), whole)
    for item in others:
        name, _, origin = (part.strip() for part in item.partition(":"))
        if name not in _FIELDS:
            raise invalid_value(key, ",".join(items), f"{name!r} is none of {', '.join(_FIELDS)}")
        if origin.lower() not in list(Origin):
            raise invalid_value(key, ",".join(items), f"{name} comes from value, header or generate, not {origin!r}")
        found[_FIELDS[name]] = Origin(origin.lower())
    for name in ("id", "type"):
        if found[name] is Origin.VALUE:
            raise invalid_value(key, ",".join(items), f"values have no {name}: say {name}:generate or {name}:header")
    return MetadataSource(whole, **found)


@validator("value or header, then id:ORIGIN, type:ORIGIN, traceparent:ORIGIN, dataSchemaName:ORIGIN")
def _is_metadata_source(key: str, value: tuple[str, ...]) -> None:
    _metadata_source(key, value)


class CloudEventsConverterConfig(ConverterConfig, HostsConfig):
    """The options of the CloudEvents converter."""

    serializer_type: SerializerType = option(
        default=SerializerType.JSON,
        importance=HIGH,
        ignore_case=True,
        doc="The format of events: json or avro. With avro, data is avro too.",
    )
    data_serializer_type: SerializerType = option(
        default=SerializerType.JSON,
        importance=HIGH,
        ignore_case=True,
        doc="The format of the attribute data: json or avro. Within JSON, Avro is base64 text.",
    )
    opentelemetry_tracing_attributes_enable: bool = option(
        default=False,
        importance=HIGH,
        doc="Whether events have the attribute traceparent, if their records have the header traceparent.",
    )
    extension_attributes_enable: bool = option(
        default=True,
        importance=HIGH,
        doc="Whether events have an attribute, beginning with iodebezium, for each field of source and transaction.",
    )
    schema_name_adjustment_mode: NameAdjustmentMode = option(
        default=NameAdjustmentMode.AVRO,
        importance=LOW,
        ignore_case=True,
        doc="How the name of the event's schema is made one that Avro allows.",
    )
    schema_cloudevents_name: str | None = option(
        default=None,
        importance=LOW,
        doc="The name of the event's schema. By default it is made of the names of the server and the database.",
    )
    schema_data_name_source_header_enable: bool = option(
        default=False,
        importance=LOW,
        doc="Whether the name of the schema of data may come from the header dataSchemaName.",
    )
    metadata_source: tuple[str, ...] = option(
        default=_DEFAULT,
        importance=HIGH,
        validator=_is_metadata_source,
        doc="Where metadata comes from: value, or header for records whose source, op and transaction were moved to "
        "headers; then the origins of single attributes, such as id:header.",
    )

    @classmethod
    def definitions(cls) -> tuple[ConfigKey, ...]:
        """Return the definitions of all keys, those of the two converters below their prefixes."""
        return (
            *super().definitions(),
            *_keys_below(_JSON, JsonConverterConfig),
            *_keys_below(_AVRO, AvroConverterConfig),
        )

    def check(self) -> Iterable[ConfigError]:
        """Yield the mistakes in how the options go together."""
        yield from super().check()
        event, data = self.serializer_type, self.data_serializer_type
        if event is SerializerType.AVRO and data is SerializerType.JSON:
            yield ConfigError("data.serializer.type", str(data), "within events in Avro data is Avro: say avro")
        source = self.metadata
        if self.opentelemetry_tracing_attributes_enable and source.traceparent is not Origin.HEADER:
            yield ConfigError(
                "metadata.source", ",".join(self.metadata_source), "traceparent can only come from a header"
            )
        if SerializerType.AVRO in (event, data):
            yield from self._check_avro()

    def _check_avro(self) -> Iterator[ConfigError]:
        try:
            config = self.avro
        except InvalidConfigError as error:
            yield from (_below(_AVRO, each) for each in error.errors)
            return
        except ConfigError as error:
            yield _below(_AVRO, error)
            return
        if config.writes_id_in_header(is_key=False):
            key = "avro.value.schema.id.serializer"
            yield ConfigError(key, config.value_schema_id_serializer, "the schemas of events are named by their ids")

    @property
    def metadata(self) -> MetadataSource:
        """Where metadata comes from."""
        return _metadata_source("metadata.source", self.metadata_source)

    @property
    def json(self) -> JsonConverterConfig:
        """The options of the JSON converter of the data."""
        return JsonConverterConfig.parse(self.originals_with_prefix(_JSON))

    @property
    def plain_json(self) -> JsonConverterConfig:
        """The same options for what has no schemas: events."""
        return JsonConverterConfig.parse({**self.originals_with_prefix(_JSON), "schemas.enable": "false"})

    @property
    def avro(self) -> AvroConverterConfig:
        """The options of the Avro converter, under the worker's rules for hosts."""
        given: dict[str, Any] = self.originals_with_prefix(_AVRO)
        for key in (ALLOWED_HOSTS_KEY, DENIED_HOSTS_KEY):
            given[key] = self.originals.get(key) or ""
        secrets = {key.removeprefix(_AVRO) for key in self._secret_keys}
        return AvroConverterConfig.parse(given, secret_keys=secrets)


def _below(prefix: str, error: ConfigError) -> ConfigError:
    return ConfigError(prefix + error.key, error.value, error.reason)


@cache
def _keys_below(prefix: str, config: type[Config]) -> tuple[ConfigKey, ...]:
    """Return the keys of another converter, none of which is required before the converter is used."""
    return tuple(
        replace(
            key,
            name=prefix + key.name,
            display_name=prefix + key.display_name,
            required=False,
            nullable=True,
            dependents=(),
        )
        for key in config.definitions()
        if not key.internal and key.name != "converter.type" and not (prefix == _JSON and key.name == "schema.content")
    )
