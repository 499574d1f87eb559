"""The options of a query over the rows of a load, and of the tables it may join them with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from connect.config import LOW, MEDIUM, Config, Long, at_least, non_empty, option
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError, ConnectError
from connect.providers.file import AllowedPaths
from connectors.spark.sink.sql.windows import WindowPolicy

__all__ = ["FORMATS", "RECORDS", "JdbcTable", "SqlOptions", "StoredTable"]

RECORDS: Final = "records"
"""The name by which a query refers to the rows of a load."""

FORMATS: Final = ("parquet", "orc", "json", "csv", "text")

_GROUP: Final = "SQL"
_PREFIX: Final = "sql.tables."
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_STORED: Final = {"path", "format"}
_JDBC: Final = {"jdbc.url", "jdbc.table", "jdbc.user", "jdbc.password"}
_MOST_CHARACTERS: Final = 100_000


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table of files that a query may join; each load reads it again."""

    name: str
    path: str
    format: str = "parquet"


@dataclass(frozen=True, slots=True)
class JdbcTable:
    """A database table that a query may join; each load reads it again through JDBC."""

    name: str
    url: str
    table: str
    user: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"JdbcTable({self.name!r}, {self.table!r})"


class SqlOptions(Config):
    """The options of the query. The tables it joins are configured by ``sql.tables.NAME.*``."""

    sql: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_GROUP,
        doc=(
            "A query in Spark SQL whose result is written instead of the rows: SELECT ... FROM records. The "
            "table records holds the rows of a load, after converters and transformations; "
            "sql.tables.NAME.path (or .jdbc.url and .jdbc.table) adds the table NAME. It must be a single "
            "SELECT that changes nothing and reads nothing else."
        ),
    )
    sql_file: str | None = option(
        default=None,
        importance=LOW,
        validator=non_empty,
        group=_GROUP,
        doc="A file with the query, instead of sql. The worker's key sql.allowed.paths must allow it.",
    )
    sql_window_ms: Long | None = option(
        default=None,
        importance=MEDIUM,
        validator=at_least(1000),
        group=_GROUP,
        doc=(
            "The length of event-time windows, which start at multiples of it since 1970 in UTC. The query "
            "then runs once for each complete window; the records of a window are held until it is complete."
        ),
    )
    sql_window_time: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=non_empty,
        group=_GROUP,
        doc=(
            "The column with the event time: a timestamp, a date, milliseconds since 1970, or ISO 8601 text; "
            "a.b is the field b of the struct a."
        ),
    )
    sql_window_delay_ms: Long = option(
        default=60_000,
        importance=MEDIUM,
        validator=at_least(0),
        group=_GROUP,
        doc=(
            "How long a window waits for late records: it is complete once every partition has a record that "
            "is this much newer than its end."
        ),
    )
    sql_window_late: Literal["emit", "drop", "dead-letter"] = option(
        default="emit",
        importance=MEDIUM,
        group=_GROUP,
        doc=(
            "What to do with records that arrive after their window was written. emit: run the query for them "
            "with the next windows, which adds further rows. drop: leave them out and log how many. "
            "dead-letter: treat them as errors.tolerance=all treats bad records, with the dead letter queue "
            "and its limits."
        ),
    )
    sql_window_idle_ms: Long = option(
        default=600_000,
        importance=LOW,
        validator=at_least(0),
        group=_GROUP,
        doc="How long a partition may be without records before windows stop waiting for it.",
    )
    sql_allowed_paths: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        internal=True,
        doc="Set this in the worker's file: the paths that sql.file and sql.tables.NAME.path may name.",
    )
    sql_allowed_jdbc_urls: tuple[str, ...] = option(
        default=(),
        importance=LOW,
        internal=True,
        doc="Set this in the worker's file: the URLs that sql.tables.NAME.jdbc.url may name.",
    )

    def sql_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several of these options."""
        if self.sql is not None and self.sql_file is not None:
            yield ConfigRuleError("There is one query: set sql or sql.file, not both.", "sql", "sql.file")
        if self.sql is None and self.sql_file is None:
            named = next((key for key in self.originals if key.startswith(_PREFIX)), None)
            if named is not None:
                yield ConfigRuleError(f"{named} makes a table for a query, and there is none: set sql.", named)
            return
        try:
            self.query_text  # noqa: B018 - reading it is the check
        except ConfigError as error:
            yield error
        yield from self._table_errors()

    def window_mistakes(self, *, has_store: bool) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about windows."""
        if self.sql_window_ms is None:
            if self.sql_window_time is not None:
                yield ConfigRuleError("There are no windows: set sql.window.ms, or remove the key.", "sql.window.time")
            return
        if not self.has_query:
            yield ConfigRuleError("Windows are those of a query: set sql, or remove the key.", "sql.window.ms")
        if self.sql_window_time is None:
            yield ConfigError("sql.window.time", None, "Name the column that has the time of events.")
        if not has_store:
            yield ConfigError("store.url", None, "Name a place for the records that open windows hold.")
        if self.sql_window_late == "dead-letter" and not self._has_dead_letters():
            reason = (
                "Late records go to the dead letter queue: set errors.tolerance=all and "
                "errors.deadletterqueue.topic.name."
            )
            yield ConfigError("sql.window.late", self.sql_window_late, reason)

    def _has_dead_letters(self) -> bool:
        given = self.originals
        tolerates = (given.get("errors.tolerance") or "none").lower() == "all"
        return tolerates and bool(given.get("errors.deadletterqueue.topic.name"))

    @property
    def windows(self) -> WindowPolicy | None:
        """When windows are complete, if the query has windows."""
        if self.sql_window_ms is None or self.sql_window_time is None:
            return None
        return WindowPolicy(
            self.sql_window_time,
            self.sql_window_ms,
            self.sql_window_delay_ms,
            self.sql_window_late,
            self.sql_window_idle_ms,
        )

    @property
    def has_query(self) -> bool:
        """Whether rows go through a query."""
        return self.sql is not None or self.sql_file is not None

    @property
    def query_text(self) -> str:
        """The query; raises :class:`~connect.errors.ConfigError` if its file is not allowed or cannot be read."""
        key, text = ("sql", self.sql) if self.sql is not None else ("sql.file", self._read_file())
        assert text is not None
        if len(text) > _MOST_CHARACTERS:
            raise ConfigError(
                key, f"{text[:40]}...", f"The query is longer than {_MOST_CHARACTERS:,} characters: shorten it."
            )
        return text

    @property
    def query_tables(self) -> tuple[StoredTable | JdbcTable, ...]:
        """The tables that the query may use besides the records; raises ``ConfigError`` for one that is not allowed."""
        return tuple(self._tables())

    def _table_errors(self) -> Iterator[ConfigError]:
        try:
            self.query_tables  # noqa: B018 - as above
        except ConfigError as error:
            yield error

    def _tables(self) -> Iterator[StoredTable | JdbcTable]:
        named: dict[str, dict[str, str]] = {}
        for rest, value in self.originals_with_prefix(_PREFIX).items():
            name, _, what = rest.partition(".")
            if not _NAME.fullmatch(name) or name.lower() == RECORDS:
                reason = f"A table's name has letters, digits and _, and is not {RECORDS}: choose another."
                raise ConfigError(f"{_PREFIX}{rest}", value, reason)
            if what not in _STORED | _JDBC:
                known = ", ".join(sorted(_STORED | _JDBC))
                raise ConfigError(f"{_PREFIX}{rest}", value, f"A table has {known}: use one of these.")
            named.setdefault(name, {})[what] = value or ""
        for name, given in sorted(named.items()):
            yield self._table(name, given)

    def _table(self, name: str, given: Mapping[str, str]) -> StoredTable | JdbcTable:
        key = f"{_PREFIX}{name}"
        if given.keys() <= _STORED and given.get("path"):
            kind = given.get("format", "parquet")
            if kind not in FORMATS:
                raise ConfigError(f"{key}.format", kind, f"The formats are {', '.join(FORMATS)}: use one of these.")
            return StoredTable(name, self._allowed_path(f"{key}.path", given["path"]), kind)
        if given.keys() <= _JDBC and given.get("jdbc.url") and given.get("jdbc.table"):
            self._check_url(f"{key}.jdbc.url", given["jdbc.url"])
            user, password = given.get("jdbc.user"), given.get("jdbc.password")
            return JdbcTable(name, given["jdbc.url"], given["jdbc.table"], user, password)
        reason = f"Give the table {name} either {key}.path, or {key}.jdbc.url and {key}.jdbc.table."
        raise ConfigRuleError(reason, f"{key}.{min(given)}")

    def _read_file(self) -> str:
        assert self.sql_file is not None
        path = self._allowed_path("sql.file", self.sql_file)
        try:
            return Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            what = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            reason = f"The query cannot be read ({what}): correct the path or the file."
            raise ConfigError("sql.file", self.sql_file, reason) from error

    def _allowed_path(self, key: str, path: str) -> str:
        """Return the path to read; URLs are allowed by prefix, local paths after their links are resolved."""
        reason = (
            "The worker does not allow it: add it, or a folder above it, to sql.allowed.paths in the worker's file."
        )
        if "://" in path and not path.startswith("file://"):
            if not any(_is_below(path, place) for place in self.sql_allowed_paths) or ".." in path.split("/"):
                raise ConfigError(key, path, reason)
            return path
        local = [place for place in self.sql_allowed_paths if "://" not in place]
        if not local:
            raise ConfigError(key, path, reason)
        if _has_pattern(path):
            raise ConfigError(key, path, "It contains pattern characters (*?[]{},\\): name one folder or file.")
        try:
            return str(AllowedPaths(local).resolve(path.removeprefix("file://")))
        except ConnectError:
            raise ConfigError(key, path, reason) from None

    def _check_url(self, key: str, url: str) -> None:
        if url not in self.sql_allowed_jdbc_urls:
            reason = "The worker does not allow it: add it to sql.allowed.jdbc.urls in the worker's file."
            raise ConfigError(key, "[hidden]", reason)


def _is_below(path: str, place: str) -> bool:
    return not _has_pattern(path) and (path == place or path.startswith(place.rstrip("/") + "/"))


def _has_pattern(path: str) -> bool:
    """Return whether Hadoop would take the path for a pattern, or for a list of paths."""
    return any(character in path for character in "*?[]{},\\")
