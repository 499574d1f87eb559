"""The options of Debezium's MongoDB connector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from connect.config import (
    HIGH,
    LOW,
    MEDIUM,
    ConfigRuleError,
    Long,
    Password,
    at_least,
    option,
)
from connect.config.unsupported_keys import UnsupportedKey, given_keys, without_effect
from connect.errors import ConfigError, DataError
from connect.hosts import HostsConfig
from connect.internals.extras import missing_extra
from connect.internals.java.regex import regex_of_name
from connect.kits.cdc.filters import NameFilter, java_regex_list
from connect.kits.cdc.notifications import NotificationOptions
from connect.kits.cdc.options import CdcConfig
from connect.kits.cdc.signals.channels import SignalOptions
from connect.kits.mongodb.checks import collection_names, stream_problems
from connect.kits.mongodb.client import mongo_client, uri_problems
from connect.kits.mongodb.extended_json import parse_document
from connectors.cdc.mongodb.fields import FieldRule, parse_exclusion, parse_rename

if TYPE_CHECKING:
    from pymongo import MongoClient

__all__ = ["CaptureMode", "MongoDbConfig", "SnapshotMode"]

_INTERNAL: Final = frozenset({"admin", "config", "local"})
_FILTER: Final = "snapshot.collection.filter.overrides"
_REFUSED: Final[Mapping[str, UnsupportedKey]] = {
    "skip.messages.without.change": UnsupportedKey("Remove the key.", ("", "false")),
    "mongodb.ssl.invalid.hostname.allowed": UnsupportedKey(
        "Write tlsAllowInvalidHostnames=true in mongodb.connection.string instead.", ("", "false")
    ),
    "sourceinfo.struct.maker": UnsupportedKey(
        "Java classes cannot run here: remove the key.",
        ("", "io.debezium.connector.mongodb.mongodbsourceinfostructmaker"),
    ),
}
_WITHOUT_EFFECT: Final[Mapping[str, UnsupportedKey]] = {
    "snapshot.max.threads": UnsupportedKey(
        "collections are read one after the other, so that a snapshot can be resumed", ("", "1")
    ),
    "mongodb.poll.interval.ms": UnsupportedKey("the driver watches the members of the replica set"),
    "mongodb.heartbeat.frequency.ms": UnsupportedKey("the driver watches the members of the replica set"),
    "incremental.snapshot.watermarking.strategy": UnsupportedKey(
        "incremental snapshots write nothing", ("", "insert_insert", "insert_delete")
    ),
    "cursor.oversize.handling.mode": UnsupportedKey(
        "none is skipped: servers from 6.0.9 on send events larger than 16 MB in fragments, and earlier ones fail",
        ("", "split"),
    ),
    "cursor.oversize.skip.threshold": UnsupportedKey("no event is skipped", ("", "0")),
    "connection.validation.timeout.ms": UnsupportedKey("mongodb.server.selection.timeout.ms applies"),
}


class CaptureMode(StrEnum):
    """What the events of updates hold."""

    CHANGE_STREAMS = "change_streams"
    UPDATE_FULL = "change_streams_update_full"
    WITH_PRE_IMAGE = "change_streams_with_pre_image"
    UPDATE_FULL_WITH_PRE_IMAGE = "change_streams_update_full_with_pre_image"


class SnapshotMode(StrEnum):
    """When the existing documents are read."""

    INITIAL = "initial"
    ALWAYS = "always"
    INITIAL_ONLY = "initial_only"
    NO_DATA = "no_data"
    NEVER = "never"
    WHEN_NEEDED = "when_needed"


class MongoDbConfig(CdcConfig, SignalOptions, NotificationOptions, HostsConfig):
    """What to capture, and how to publish it."""

    passed_keys = (*CdcConfig.passed_keys, f"{_FILTER}.", *_REFUSED, *_WITHOUT_EFFECT)

    mongodb_connection_string: Password = option(
        importance=HIGH,
        doc="The connection string, such as mongodb://host1,host2/?replicaSet=rs0, with any options of the driver. "
        "Hidden, as it may hold a password.",
    )
    mongodb_user: str = option(default="", importance=HIGH, doc="User to sign in as, if the string names none.")
    mongodb_password: Password | None = option(default=None, importance=HIGH, doc="Password of mongodb.user.")
    mongodb_authsource: str = option(default="admin", importance=MEDIUM, doc="The database that knows mongodb.user.")
    mongodb_ssl_enabled: bool = option(default=False, importance=MEDIUM, doc="Whether to connect with TLS.")
    mongodb_connect_timeout_ms: int = option(
        default=10_000, importance=LOW, validator=at_least(1), doc="Milliseconds to wait for a connection."
    )
    mongodb_server_selection_timeout_ms: int = option(
        default=30_000, importance=LOW, validator=at_least(1), doc="Milliseconds to wait for a primary."
    )
    mongodb_socket_timeout_ms: int = option(
        default=0, importance=LOW, validator=at_least(0), doc="Milliseconds to wait for an answer; 0 for any time."
    )
    capture_mode: CaptureMode = option(
        default=CaptureMode.UPDATE_FULL,
        importance=MEDIUM,
        ignore_case=True,
        doc="What the events of updates hold: the changes (change_streams), and the whole document "
        "(..._update_full), and that before the change (..._with_pre_image, for which the collection must keep it).",
    )
    capture_mode_full_update_type: Literal["lookup", "post_image"] = option(
        default="lookup",
        importance=MEDIUM,
        ignore_case=True,
        doc="Whether the whole document of an update is looked up when the event is read, or is that after the change, "
        "for which the collection must keep it.",
    )
    capture_scope: Literal["deployment", "database", "collection"] = option(
        default="deployment",
        importance=MEDIUM,
        ignore_case=True,
        doc="What the change stream is of. The user needs the right to read it as a whole.",
    )
    capture_target: str = option(
        default="", importance=MEDIUM, doc="The database, or DATABASE.COLLECTION, that capture.scope speaks of."
    )
    cursor_max_await_time_ms: int | None = option(
        default=None,
        importance=LOW,
        doc="Milliseconds for which the server waits for changes; at most a second, which is the default.",
    )
    database_include_list: tuple[str, ...] = option(
        default=(), importance=HIGH, validator=java_regex_list, doc="Regular expressions for databases to capture."
    )
    database_exclude_list: tuple[str, ...] = option(
        default=(), importance=HIGH, validator=java_regex_list, doc="Regular expressions for databases to leave out."
    )
    collection_include_list: tuple[str, ...] = option(
        default=(),
        importance=HIGH,
        validator=java_regex_list,
        doc="Regular expressions for collections to capture, such as shop.orders; by default all.",
    )
    collection_exclude_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=java_regex_list,
        doc="Regular expressions for collections to leave out.",
    )
    field_exclude_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Fields to leave out of documents: DATABASE.COLLECTION.FIELD.FIELD, in which * in the first two names "
        "stands for any characters. Keys of records keep the _id.",
    )
    field_renames: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Fields to rename: DATABASE.COLLECTION.FIELD.FIELD:NAME, with * as in field.exclude.list.",
    )
    snapshot_mode: SnapshotMode = option(
        default=SnapshotMode.INITIAL,
        importance=LOW,
        ignore_case=True,
        doc="When the existing documents are read: at the first start (initial), at each (always), at the first and no "
        "changes after them (initial_only), never (no_data), or whenever the position is lost (when_needed).",
    )
    snapshot_include_collection_list: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=java_regex_list,
        doc="Regular expressions for the captured collections that a snapshot reads; by default all.",
    )
    snapshot_collection_filter_overrides: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        doc="Collections of which the snapshot reads a part: snapshot.collection.filter.overrides.shop.orders has the "
        "condition as JSON.",
    )
    snapshot_fetch_size: int | None = option(
        default=None, importance=MEDIUM, doc="Documents that a snapshot requests at once."
    )
    snapshot_delay_ms: Long = option(
        default=0, importance=LOW, validator=at_least(0), doc="Milliseconds to wait before a snapshot."
    )
    streaming_delay_ms: Long = option(
        default=0,
        importance=LOW,
        validator=at_least(0),
        doc="Milliseconds to wait between the snapshot and the stream.",
    )

    always_checks_system = True
    choices: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("collection.include.list", "collection.exclude.list"), "collections"),
        **dict.fromkeys(("database.include.list", "database.exclude.list"), "databases"),
    }

    def choices_of(self, key: str) -> Iterable[str]:
        """Yield the collections in the chosen databases, or the databases that have collections."""
        found = list(collection_names(self.client()))
        if key.startswith("database."):
            return [regex_of_name(database) for database, _ in found]
        databases = NameFilter.of(self.database_include_list, self.database_exclude_list)
        return [regex_of_name(f"{database}.{name}") for database, name in found if databases(database)]

    def check_system(self) -> Iterable[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        for problem in stream_problems(self.client):
            yield ConfigRuleError(problem, "mongodb.connection.string")

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for what contradicts itself, and for keys that cannot be honoured."""
        yield from CdcConfig.check(self)
        yield from SignalOptions.check(self)
        yield from NotificationOptions.check(self)
        yield from self._signal_errors()
        yield from self._field_errors()
        for key, value, advice in given_keys(_REFUSED, self.originals):
            yield ConfigRuleError(f"{key}={value} is not supported. {advice}", key)
        for kind in ("database", "collection"):
            if getattr(self, f"{kind}_include_list") and getattr(self, f"{kind}_exclude_list"):
                keys = (f"{kind}.include.list", f"{kind}.exclude.list")
                yield ConfigRuleError(f"Set {keys[0]} or {keys[1]}, not both.", *keys)
        if missing := missing_extra("mongodb", "pymongo"):
            yield ConfigRuleError(missing, "mongodb.connection.string")
            return
        for problem in uri_problems(self.mongodb_connection_string.value, self.host_rules):
            yield ConfigError("mongodb.connection.string", "[hidden]", problem)
        yield from self._filter_errors()
        scope = self.capture_scope.lower()
        if (scope == "deployment") != (not self.capture_target):
            yield ConfigRuleError(
                "capture.target names what capture.scope=database or capture.scope=collection speaks of: set both, or "
                "neither.",
                "capture.target",
            )
        elif scope == "collection" and "." not in self.capture_target:
            yield ConfigRuleError("capture.target must be DATABASE.COLLECTION.", "capture.target")

    def warnings(self) -> Iterable[str]:
        """Yield a warning for each key that has no effect."""
        yield from super().warnings()
        yield from without_effect(_WITHOUT_EFFECT, self.originals)

    def _field_errors(self) -> Iterator[ConfigError]:
        for key, parse, items in self._fields:
            for item in items:
                try:
                    parse(item)
                except DataError as error:
                    yield ConfigRuleError(f"{key}: {error}.", key)

    @property
    def _fields(self) -> tuple[tuple[str, Callable[[str], FieldRule], tuple[str, ...]], ...]:
        return (
            ("field.exclude.list", parse_exclusion, self.field_exclude_list),
            ("field.renames", parse_rename, self.field_renames),
        )

    @property
    def field_rules(self) -> tuple[FieldRule, ...]:
        """What becomes of fields."""
        return tuple(parse(item) for _, parse, items in self._fields for item in items)

    def _signal_errors(self) -> Iterator[ConfigError]:
        name = self.signal_data_collection
        if not name:
            return
        database, _, collection = name.partition(".")
        if not database or not collection:
            yield ConfigError("signal.data.collection", name, "Write DATABASE.COLLECTION.")
        elif self.capture_target and self.capture_target not in (database, name):
            yield ConfigRuleError(
                f"The change stream is of {self.capture_target} alone and does not show signal.data.collection={name}: "
                "choose a wider capture.scope, or send signals by another channel.",
                "signal.data.collection",
            )

    def _filter_errors(self) -> Iterator[ConfigError]:
        for name in self.snapshot_collection_filter_overrides:
            key = f"{_FILTER}.{name}"
            try:
                parse_document(self.originals.get(key) or "")
            except DataError as error:
                yield ConfigRuleError(f"{key} must be a condition as JSON, as {_FILTER} names it: {error}", key)

    def client(self, **options: Any) -> MongoClient[dict[str, Any]]:
        """Return a new client. It connects when it is first used."""
        options["connectTimeoutMS"] = self.mongodb_connect_timeout_ms
        options["serverSelectionTimeoutMS"] = self.mongodb_server_selection_timeout_ms
        if self.mongodb_socket_timeout_ms:
            options["socketTimeoutMS"] = self.mongodb_socket_timeout_ms
        if self.mongodb_user:
            password = self.mongodb_password.value if self.mongodb_password is not None else ""
            options |= {"username": self.mongodb_user, "password": password, "authSource": self.mongodb_authsource}
        if self.mongodb_ssl_enabled:
            options["tls"] = True
        return mongo_client(self.mongodb_connection_string.value, self.host_rules, {}, **options)

    def captures(self, database: str, collection: str) -> bool:
        """Return whether a collection is captured."""
        if database in _INTERNAL or collection.startswith("system."):
            return False
        databases = NameFilter.of(self.database_include_list, self.database_exclude_list)
        collections = NameFilter.of(self.collection_include_list, self.collection_exclude_list)
        return databases(database) and collections(f"{database}.{collection}")

    def snapshot_condition(self, namespace: str) -> dict[str, Any]:
        """Return the condition of the documents that a snapshot reads of a collection."""
        if namespace not in self.snapshot_collection_filter_overrides:
            return {}
        return parse_document(self.originals.get(f"{_FILTER}.{namespace}") or "{}")

    @property
    def full_document(self) -> str | None:
        """What events of updates have of the document."""
        if self.capture_mode not in (CaptureMode.UPDATE_FULL, CaptureMode.UPDATE_FULL_WITH_PRE_IMAGE):
            return None
        return "whenAvailable" if self.capture_mode_full_update_type.lower() == "post_image" else "updateLookup"

    @property
    def before_change(self) -> str | None:
        """Whether events have the document before the change."""
        has_pre_image = self.capture_mode in (CaptureMode.WITH_PRE_IMAGE, CaptureMode.UPDATE_FULL_WITH_PRE_IMAGE)
        return "whenAvailable" if has_pre_image else None
