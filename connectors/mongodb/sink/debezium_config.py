"""The options of Debezium's sink, and the options of the other sink that they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Password, at_least, non_empty, option
from connect.config.unsupported_keys import UnsupportedKey, given_keys, without_effect
from connect.errors import ConfigError
from connect.hosts import HostsConfig
from connect.kits.mongodb.checks import transaction_problems
from connectors.mongodb.classes import java_class
from connectors.mongodb.sink.config import Delivery, MongoSinkConfig

__all__ = ["MongoDbSinkConfig"]

_OWN_KEYS: Final = {
    "mongodb.connection.string": "connection.uri",
    "sink.database": "database",
    "batch.size": "max.batch.size",
    "delivery": "delivery",
    "offsets.collection": "offsets.collection",
}
"""The keys, and those of the other sink for the same."""

_SHARED_KEYS: Final = ("name", "errors.tolerance", "http.allowed.hosts", "http.denied.hosts")
_FILTER: Final = UnsupportedKey("fields are removed by the transformation ReplaceField; remove the key")
_REFUSED: Final[Mapping[str, UnsupportedKey]] = {
    "field.include.list": _FILTER,
    "field.exclude.list": _FILTER,
    "truncate.enabled": UnsupportedKey("truncations are not applied; remove the key", ("", "false")),
}
_ALWAYS: Final = "deletions are applied, and the _id is the event's key, as Debezium's sink does it"
_WITHOUT_EFFECT: Final[Mapping[str, UnsupportedKey]] = {
    "delete.enabled": UnsupportedKey(_ALWAYS, ("", "true")),
    "primary.key.mode": UnsupportedKey(_ALWAYS, ("", "record_key")),
    "primary.key.fields": UnsupportedKey(_ALWAYS),
}
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*)\}")


class MongoDbSinkConfig(HostsConfig):
    """Where to apply the changes."""

    passed_keys = (*_REFUSED, *_WITHOUT_EFFECT)
    mongodb_connection_string: Password = option(
        importance=HIGH,
        doc="The connection string, such as mongodb://user:password@host1,host2/?replicaSet=rs0, with any options of "
        "the driver. Hidden, as it may hold a password.",
    )
    sink_database: str = option(importance=HIGH, validator=non_empty, doc="The database to write to.")
    collection_name_format: str = option(
        default="${topic}",
        importance=MEDIUM,
        validator=non_empty,
        doc="The collection to write to: ${topic} stands for the topic with _ for each dot, ${source.db}, "
        "${source.table} and the like for fields of the event's source.",
    )
    collection_naming_strategy: str = option(
        default="io.debezium.sink.naming.DefaultCollectionNamingStrategy",
        importance=LOW,
        validator=java_class("io.debezium.sink.naming.DefaultCollectionNamingStrategy"),
        doc="How collections are named: by collection.name.format.",
    )
    column_naming_strategy: str = option(
        default="io.debezium.sink.naming.DefaultColumnNamingStrategy",
        importance=LOW,
        validator=java_class("io.debezium.sink.naming.DefaultColumnNamingStrategy"),
        doc="How fields are named: as in the event.",
    )
    batch_size: int = option(
        default=500, importance=MEDIUM, validator=at_least(1), doc="Maximum number of records per bulk write."
    )
    delivery: Delivery = option(
        default=Delivery.AT_LEAST_ONCE,
        importance=MEDIUM,
        doc="at-least-once: some changes are applied again after a crash. exactly-once: the offsets are stored in a "
        "collection of the database, in the same transaction as the documents, and consumption continues from there. "
        "It requires a replica set or a sharded cluster.",
    )
    offsets_collection: str = option(
        default="sluice_offsets",
        importance=LOW,
        validator=non_empty,
        doc="The collection for the offsets of delivery=exactly-once, which is created if missing. Connectors may "
        "share it.",
    )

    always_checks_system = True

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        needs_transactions = self.delivery is Delivery.EXACTLY_ONCE
        for problem in transaction_problems(self.sink_options.client, needs_transactions=needs_transactions):
            yield ConfigRuleError(problem, "mongodb.connection.string")

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each mistake."""
        yield from super().check()
        for key, value, advice in given_keys(_REFUSED, self.originals):
            yield ConfigRuleError(f"Invalid value {value} for configuration {key}: {advice}.", key)
        for name in _PLACEHOLDER.findall(self.collection_name_format):
            if name != "topic" and not (name.startswith("source.") and name != "source."):
                yield ConfigError(
                    "collection.name.format",
                    self.collection_name_format,
                    f"${{{name}}} is not known: use ${{topic}} or a field of the source, such as ${{source.table}}",
                )
        try:
            self.sink_options  # noqa: B018 - it is parsed when it is first asked for
        except ConfigError as error:
            yield ConfigRuleError(
                str(error).replace("connection.uri", "mongodb.connection.string"), "mongodb.connection.string"
            )

    def warnings(self) -> Iterable[str]:
        """Yield warnings about a valid configuration."""
        yield from super().warnings()
        yield from without_effect(_WITHOUT_EFFECT, self.originals)

    @cached_property
    def sink_options(self) -> MongoSinkConfig:
        """The options of the sink that writes."""
        own = {_OWN_KEYS[key]: value for key, value in self.originals.items() if key in _OWN_KEYS}
        shared = {key: value for key, value in self.originals.items() if key in _SHARED_KEYS}
        return MongoSinkConfig.parse({"max.batch.size": str(self.batch_size), **shared, **own})
