"""What a task's runs are made of, as the configuration asks for it: types, schemas, names and events."""

from __future__ import annotations

import importlib.metadata

from connect.data import NO_HEADERS, Offset
from connect.kits.cdc.envelope import ChangeEvents, context_headers
from connect.kits.cdc.table_schemas import TableSchemas
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.dialect import PostgresDialect
from connectors.cdc.postgresql.stream import SOURCE_SCHEMA, StreamNames

__all__ = ["events_of", "made_dialect", "made_schemas", "names_of"]


def made_dialect(config: PostgresConfig) -> PostgresDialect:
    """Return how values become those of records."""
    return PostgresDialect(
        decimals=config.decimal_handling_mode,
        times=config.time_precision_mode,
        binary=config.binary_handling_mode,
        hstore=config.hstore_handling_mode,
        intervals=config.interval_handling_mode,
        money_digits=config.money_fraction_digits,
        has_unknown=config.include_unknown_datatypes,
    )


def made_schemas(config: PostgresConfig, dialect: PostgresDialect) -> TableSchemas:
    """Return how tables become schemas."""
    return TableSchemas(
        dialect,
        config.naming(),
        SOURCE_SCHEMA,
        columns=config.column_rules(),
        keys=config.key_rules(),
        placeholder=config.unavailable_value_placeholder,
        on_failure=config.event_converting_failure_handling_mode,
    )


def names_of(config: PostgresConfig) -> StreamNames:
    """Return what records are named by."""
    version = importlib.metadata.version("sluice-connect")
    return StreamNames(version, config.topic_prefix, config.database_dbname, config.naming().named("message"))


def events_of(config: PostgresConfig, partition: Offset) -> ChangeEvents:
    """Return how changes become the records of a source partition."""
    headers = context_headers(config.topic_prefix, "postgresql") if config.extended_headers_enabled else NO_HEADERS
    return ChangeEvents(
        partition,
        headers,
        skipped=config.skipped(),
        makes_tombstones=config.tombstones_on_delete,
        skips_unchanged=config.skip_messages_without_change,
    )
