"""The configuration of the PostgreSQL connector, under Debezium's keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    Short,
    at_least,
    between,
    invalid_value,
    option,
    validator,
)
from connect.config.unsupported_keys import UnsupportedKey, given_keys, without_effect
from connect.errors import ConfigError
from connect.hosts import HostsConfig
from connect.kits.cdc.filters import NameFilter, java_regex_list, name_patterns
from connect.kits.cdc.notifications import NotificationOptions
from connect.kits.cdc.options import RelationalConfig
from connect.kits.cdc.signals.channels import SignalOptions

__all__ = ["AutoCreateMode", "OffsetMismatch", "PostgresConfig", "PostgresTaskConfig", "SnapshotMode"]

_SLOT: Final = re.compile(r"[a-z0-9_]{1,63}")


class SnapshotMode(StrEnum):
    """The values of ``snapshot.mode``."""

    ALWAYS = "always"
    INITIAL = "initial"
    NO_DATA = "no_data"
    NEVER = "never"
    INITIAL_ONLY = "initial_only"
    WHEN_NEEDED = "when_needed"
    CONFIGURATION_BASED = "configuration_based"


class AutoCreateMode(StrEnum):
    """The values of ``publication.autocreate.mode``."""

    DISABLED = "disabled"
    ALL_TABLES = "all_tables"
    FILTERED = "filtered"
    NO_TABLES = "no_tables"


class OffsetMismatch(StrEnum):
    """The values of ``offset.mismatch.strategy``."""

    NO_VALIDATION = "no_validation"
    TRUST_OFFSET = "trust_offset"
    TRUST_SLOT = "trust_slot"
    TRUST_GREATER_LSN = "trust_greater_lsn"


@validator("lower-case letters, digits and underscores, at most 63")
def _slot_name(key: str, value: str) -> None:
    if not _SLOT.fullmatch(value):
        raise invalid_value(key, value, "A slot's name has lower-case letters, digits and underscores, at most 63")


@validator("tables and their replica identities, such as public.orders:FULL,public.lines:INDEX lines_key")
def _identities(key: str, value: str) -> None:
    try:
        replica_identities(value)
    except (ValueError, re.error) as error:
        raise invalid_value(key, value, str(error)) from error


_IDENTITY: Final = re.compile(r"(?i)default|full|nothing|index\s+\S+")


def replica_identities(text: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Parse ``replica.identity.autoset.values``: expressions for tables, and the replica identity of each."""
    rules = []
    for part in filter(None, map(str.strip, text.split(","))):
        table, colon, identity = part.rpartition(":")
        if not colon or not _IDENTITY.fullmatch(identity.strip()):
            raise ValueError(f"{part!r} is not TABLE:DEFAULT, TABLE:FULL, TABLE:NOTHING or TABLE:INDEX NAME")
        rules.append((name_patterns([table.strip()])[0], identity.strip()))
    return tuple(rules)


_REFUSED: Final[Mapping[str, UnsupportedKey]] = {
    "database.sslfactory": UnsupportedKey(
        "Java classes cannot run here: remove the key, and set database.sslmode=require to encrypt without checking "
        "the server's certificate."
    ),
    "sourceinfo.struct.maker": UnsupportedKey(
        "Java classes cannot run here: remove the key.",
        ("", "io.debezium.connector.postgresql.postgressourceinfostructmaker"),
    ),
    "plugin.name": UnsupportedKey(
        "Set plugin.name=pgoutput, which every server since PostgreSQL 10 has. A slot of another plugin cannot be "
        "read: name a new one by slot.name, or drop it when all its changes are consumed.",
        ("", "pgoutput"),
    ),
}
_FLUSH: Final = "the slot is told by the stream itself, which is not waited for"
_WITHOUT_EFFECT: Final[Mapping[str, UnsupportedKey]] = {
    "snapshot.fetch.size": UnsupportedKey("the rows of a table are copied as the server sends them"),
    "schema.refresh.mode": UnsupportedKey("the schema is that which the stream has sent with the rows"),
    "lsn.flush.timeout.ms": UnsupportedKey(_FLUSH),
    "lsn.flush.timeout.action": UnsupportedKey(_FLUSH),
    "slot.seek.to.known.offset.on.start": UnsupportedKey(
        "the stream always starts at the stored offset", ("", "false")
    ),
    "create.slot.command.timeout": UnsupportedKey("a slot is created as soon as older transactions have ended"),
    "snapshot.isolation.mode": UnsupportedKey(
        "the snapshot is one transaction, repeatable read, of exactly the state at which the stream starts",
        ("", "serializable", "repeatable_read"),
    ),
}


class PostgresConfig(RelationalConfig, SignalOptions, NotificationOptions, HostsConfig):
    """The options of the PostgreSQL connector."""

    passed_keys = (*RelationalConfig.passed_keys, *_REFUSED, *_WITHOUT_EFFECT)

    database_port: int = option(default=5432, importance=HIGH, validator=between(1, 65535), doc="Port of the database.")
    database_dbname: str = option(importance=HIGH, doc="Name of the database whose changes are captured.")
    database_sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = option(
        default="prefer", importance=MEDIUM, ignore_case=True, doc="Whether connections are encrypted, as in libpq."
    )
    database_sslcert: str = option(default="", importance=MEDIUM, doc="File of the client's certificate.")
    database_sslkey: str = option(default="", importance=MEDIUM, doc="File of the client's key.")
    database_sslpassword: Password | None = option(default=None, importance=MEDIUM, doc="Password of that key.")
    database_sslrootcert: str = option(
        default="", importance=MEDIUM, doc="File of the certificates of authorities that are trusted."
    )
    database_tcp_keep_alive: bool = option(
        default=True, name="database.tcpKeepAlive", importance=MEDIUM, doc="Whether idle connections are probed."
    )
    database_initial_statements: str = option(
        default="",
        importance=LOW,
        doc="Statements to run in each new session, separated by semicolons; two semicolons stand for one in a "
        "statement.",
    )
    database_query_timeout_ms: int = option(
        default=600_000,
        importance=LOW,
        validator=at_least(0),
        doc="Milliseconds that a query of the catalog may take; any time if 0. The snapshot's reading has no limit.",
    )
    schema_include_list: tuple[str, ...] = option(
        default=(), importance=HIGH, validator=java_regex_list, doc="Regular expressions for schemas to capture."
    )
    schema_exclude_list: tuple[str, ...] = option(
        default=(), importance=MEDIUM, validator=java_regex_list, doc="Regular expressions for schemas not to capture."
    )
    slot_name: str = option(
        default="debezium",
        importance=MEDIUM,
        validator=_slot_name,
        doc="Name of the replication slot; created if it does not exist.",
    )
    slot_drop_on_stop: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether the slot is dropped when the task stops, for tests: what changes until it starts again is lost.",
    )
    slot_failover: bool = option(
        default=False,
        importance=LOW,
        doc="Whether the slot is synchronised to standbys, so that a promoted one goes on with it. Needs PostgreSQL "
        "17.",
    )
    slot_stream_params: str = option(
        default="", importance=LOW, doc="Further options of pgoutput, such as origin=none, separated by semicolons."
    )
    slot_max_retries: int = option(
        default=6,
        importance=LOW,
        validator=at_least(0),
        doc="How often to try again when the slot is in use by another connection.",
    )
    slot_retry_delay_ms: Long = option(
        default=10_000, importance=LOW, validator=at_least(0), doc="Milliseconds between these attempts."
    )
    offset_mismatch_strategy: OffsetMismatch = option(
        default=OffsetMismatch.TRUST_OFFSET,
        importance=LOW,
        ignore_case=True,
        doc="What happens when the slot has moved on past the stored offset, so that changes are missing: trust_offset "
        "fails the task; trust_slot, trust_greater_lsn and no_validation go on from the slot and log what is missing.",
    )
    publication_name: str = option(
        default="dbz_publication", importance=MEDIUM, doc="Name of the publication whose tables are captured."
    )
    publication_autocreate_mode: AutoCreateMode = option(
        default=AutoCreateMode.ALL_TABLES,
        importance=MEDIUM,
        ignore_case=True,
        doc="How a missing publication is created: all_tables needs a superuser, filtered the owner of the captured "
        "tables and keeps the publication's tables up to date, no_tables creates an empty one, disabled creates none.",
    )
    publish_via_partition_root: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether changes of partitions are those of the partitioned table, in its topic.",
    )
    replica_identity_autoset_values: str = option(
        default="",
        importance=MEDIUM,
        validator=_identities,
        doc="Replica identities to set at the start: TABLE:FULL, TABLE:DEFAULT, TABLE:NOTHING or TABLE:INDEX NAME, "
        "separated by commas, with regular expressions for the tables.",
    )
    message_prefix_include_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=java_regex_list,
        doc="Regular expressions for the prefixes of logical messages to publish; by default all.",
    )
    message_prefix_exclude_list: tuple[str, ...] = option(
        default=(), importance=MEDIUM, validator=java_regex_list, doc="Regular expressions for prefixes to leave out."
    )
    hstore_handling_mode: Literal["json", "map"] = option(
        default="json", importance=LOW, ignore_case=True, doc="Whether hstore is sent as JSON or as a map."
    )
    interval_handling_mode: Literal["numeric", "string"] = option(
        default="numeric",
        importance=LOW,
        ignore_case=True,
        doc="Whether intervals are sent as microseconds, with months of 365.25 / 12 days, or as text: "
        "P1Y2M3DT4H5M6.7S.",
    )
    money_fraction_digits: Short = option(
        default=2,
        importance=LOW,
        validator=at_least(0),
        doc="Digits after the point of money, when decimal.handling.mode is precise.",
    )
    include_unknown_datatypes: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether columns of types that have no place in a schema are sent as the bytes of their text.",
    )
    status_update_interval_ms: int = option(
        default=10_000,
        importance=MEDIUM,
        validator=at_least(1),
        doc="Milliseconds between two messages to the server that tell how far changes are stored in Kafka.",
    )
    xmin_fetch_interval_ms: Long = option(
        default=0,
        importance=MEDIUM,
        validator=at_least(0),
        doc="Milliseconds between two looks at the slot's catalog_xmin for the field xmin; never if 0.",
    )
    lsn_flush_mode: Literal["connector", "manual", "connector_and_driver"] = option(
        default="connector",
        importance=LOW,
        ignore_case=True,
        doc="Whether the slot is told how far changes are stored; with manual you move it on yourself.",
    )
    flush_lsn_source: bool = option(
        default=True, importance=LOW, doc="Older form of lsn.flush.mode: false stands for manual."
    )
    heartbeat_action_query: str = option(
        default="", importance=LOW, doc="Statement to run in the database with each heartbeat. Not needed here."
    )
    snapshot_mode: SnapshotMode = option(
        default=SnapshotMode.INITIAL,
        importance=MEDIUM,
        ignore_case=True,
        doc="When the rows of the tables are read: initial at the first start, always at each, initial_only without "
        "streaming after it, no_data (or never) never, when_needed also when the slot was lost, configuration_based as "
        "the keys below it say.",
    )
    snapshot_mode_configuration_based_snapshot_data: bool = option(
        default=False, importance=MEDIUM, doc="With configuration_based: whether the rows are read at the first start."
    )
    snapshot_mode_configuration_based_snapshot_schema: bool = option(
        default=False, importance=MEDIUM, doc="With configuration_based: without effect, schemas are always known."
    )
    snapshot_mode_configuration_based_start_stream: bool = option(
        default=False, importance=MEDIUM, doc="With configuration_based: whether changes are streamed."
    )
    snapshot_mode_configuration_based_snapshot_on_schema_error: bool = option(
        default=False, importance=MEDIUM, doc="With configuration_based: without effect, schemas are always known."
    )
    snapshot_mode_configuration_based_snapshot_on_data_error: bool = option(
        default=False, importance=MEDIUM, doc="With configuration_based: whether rows are read when the slot was lost."
    )
    snapshot_locking_mode: Literal["shared", "none"] = option(
        default="none",
        importance=LOW,
        ignore_case=True,
        doc="Whether the snapshot locks all its tables against changes of their columns when it begins.",
    )
    snapshot_lock_timeout_ms: Long = option(
        default=10_000, importance=MEDIUM, validator=at_least(0), doc="Milliseconds to wait for these locks."
    )

    @property
    def signal_table(self) -> str:
        """The name of the signal table, empty if there is none."""
        return self.signal_data_collection.strip() if "source" in self.signal_enabled_channels else ""

    def schema_filter(self) -> NameFilter:
        """Return which schemas are captured."""
        return NameFilter.of(self.schema_include_list, self.schema_exclude_list)

    def prefix_filter(self) -> NameFilter:
        """Return which logical messages are published, by prefix."""
        return NameFilter.of(self.message_prefix_include_list, self.message_prefix_exclude_list)

    def snapshot_filter(self) -> NameFilter:
        """Return which of the captured tables the snapshot reads."""
        return NameFilter.of(self.snapshot_include_collection_list, ())

    @property
    def confirms(self) -> bool:
        """Whether the slot is told how far changes are stored."""
        return self.flush_lsn_source and self.lsn_flush_mode != "manual"

    def stream_options(self) -> dict[str, str]:
        """Return the options of pgoutput from ``slot.stream.params``."""
        pairs = (part.partition("=") for part in self.slot_stream_params.split(";") if part.strip())
        return {name.strip(): value.strip() for name, _, value in pairs}

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for what contradicts itself, and for keys that cannot be honoured."""
        yield from super().check()
        yield from SignalOptions.check(self)
        yield from NotificationOptions.check(self)
        for key, value, told in given_keys(_REFUSED, self.originals):
            yield ConfigRuleError(f"{key}={value} is not supported. {told}", key)
        for kind in ("schema", "message.prefix"):
            if self.originals.get(f"{kind}.include.list") and self.originals.get(f"{kind}.exclude.list"):
                yield ConfigRuleError(
                    f"Set {kind}.include.list or {kind}.exclude.list, not both.",
                    f"{kind}.include.list",
                    f"{kind}.exclude.list",
                )

    def warnings(self) -> Iterable[str]:
        """Yield a warning for each key that has no effect or is dangerous."""
        yield from super().warnings()
        yield from without_effect(_WITHOUT_EFFECT, self.originals)
        if self.slot_drop_on_stop:
            yield "slot.drop.on.stop=true loses what changes between two runs of the task: use it for tests only."


class PostgresTaskConfig(PostgresConfig):
    """The options of a task: those of the connector, and what a split is to do."""

    capture_split: str = option(default="", importance=LOW, internal=True, doc="The work of a split as JSON.")
