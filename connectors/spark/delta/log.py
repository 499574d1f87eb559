"""The log of one Delta table, through the classes of Delta in Spark's Java.

Delta's Python package gives no access to transaction identifiers, so this module calls the Scala classes of the pinned
jar. Nothing else does.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, NamedTuple, ParamSpec, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.sql.types import StructType

from connect.errors import RetriableError
from connect.internals.chain.stack_trace import error_text
from connect.internals.crash import crash_point
from connectors.spark.errors import root_cause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DeltaLog", "StaleLogError", "is_conflict", "quoted_path", "table_names"]

logger = logging.getLogger(__name__)
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_ATTEMPTS: Final = 5
_CONFLICTS: Final = (
    "ConcurrentModificationException",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "ProtocolChangedException",
)


def _in_its_session(
    method: Callable[Concatenate[DeltaLog, _Arguments], _Result],
) -> Callable[Concatenate[DeltaLog, _Arguments], _Result]:
    """Make the log's session the active one of this thread meanwhile: Delta's classes take its settings, as Spark's own
    writers do, where connectors share an application.
    """

    @wraps(method)
    def in_its_session(self: DeltaLog, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        sessions = self._jvm.org.apache.spark.sql.SparkSession
        before = sessions.getActiveSession()
        sessions.setActiveSession(self._spark._jsparkSession)
        try:
            return method(self, *args, **kwargs)
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    return in_its_session


class StaleLogError(Exception):
    """The log's transaction identifiers differ from those that the change was based on."""


class _Checksum(NamedTuple):
    """The transaction identifiers in the checksum of a version, if it has them and is that of the version's commit.

    Without it, Spark reads the list of all files of the table, which takes a job for each new version. That a checksum
    which has identifiers has all of them is said in Delta's protocol, "Version Checksum File". ``is_strange`` says that
    it is the checksum of another commit: Delta would never replace it, and derive the following ones from it.
    """

    identifiers: Any
    is_strange: bool


class DeltaLog:
    """The log of the table at ``path``, as Hadoop writes paths; the table may not exist yet."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        self._spark = spark
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._log: Any = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)

    @_in_its_session
    def versions(self, prefix: str) -> dict[str, int] | None:
        """Return the versions of the application ids that begin with ``prefix``, or ``None`` if the table does not
        exist.

        Removes the checksum of the newest version if it is that of another commit.
        """
        snapshot = self._snapshot()
        if snapshot.version() < 0:
            return None
        checksum = self._checksum(snapshot)
        if checksum.is_strange:
            logger.warning(
                "Version %d of the Delta table %s has the checksum of another commit; removing it. Another writer has "
                "replaced the commit, or the log was copied or restored in parts: see whether all rows are there.",
                snapshot.version(),
                self.path,
            )
            snapshot = self._without_checksum(snapshot.version())
            checksum = self._checksum(snapshot)
        return self._versions_in(snapshot, checksum, prefix)

    @_in_its_session
    def schema(self) -> StructType:
        """Return the columns of the table."""
        return StructType.fromJson(json.loads(self._snapshot().schema().json()))

    @_in_its_session
    def properties(self) -> dict[str, str]:
        """Return the properties of the table."""
        metadata = self._snapshot().metadata()
        mapper = self._jvm.org.apache.spark.sql.delta.util.JsonUtils.mapper()
        found: dict[str, str] = json.loads(mapper.writeValueAsString(metadata.configuration()))
        return found

    @_in_its_session
    def partition_columns(self) -> tuple[str, ...]:
        """Return the columns by which the table is partitioned."""
        columns = self._snapshot().metadata().partitionColumns()
        return tuple(columns.apply(place) for place in range(columns.size()))

    @_in_its_session
    def newest(self) -> int:
        """Return the newest version."""
        return int(self._snapshot().version())

    def added(self, application: str, number: int, after: int) -> tuple[int, int]:
        """Return the bytes and the number of files added by the commit, after version ``after``, that set an
        application's number.
        """
        store, configuration = self._log.store(), self._log.newDeltaHadoopConf()
        commits = self._log.getChangeLogFiles(after + 1, self._none(), False)
        while commits.hasNext():
            lines = str(store.read(commits.next()._2(), configuration).mkString("\n")).splitlines()
            actions = [json.loads(line) for line in lines]
            changes = (action.get("txn") or {} for action in actions)
            if any(txn.get("appId") == application and txn.get("version") == number for txn in changes):
                sizes = [action["add"]["size"] for action in actions if "add" in action]
                return sum(sizes), len(sizes)
        return 0, 0

    def create(self, columns: StructType, partitioned_by: Sequence[str], properties: Mapping[str, str]) -> None:
        """Create the table without rows, unless another writer has just done so."""
        declared = self._jvm.org.apache.spark.sql.types.DataType.fromJson(columns.json()).toDDL()
        divided = f" PARTITIONED BY ({', '.join(map(_quoted, partitioned_by))})" if partitioned_by else ""
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {quoted_path(self.path)} ({declared}) USING delta{divided} "
            f"TBLPROPERTIES ({_assignments(properties)})"
        )

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Change properties of the table."""
        self._spark.sql(f"ALTER TABLE {quoted_path(self.path)} SET TBLPROPERTIES ({_assignments(properties)})")

    @_in_its_session
    def set_versions(self, prefix: str, expected: Mapping[str, int], changes: Mapping[str, int], now: int) -> None:
        """Commit versions of application ids, if those that begin with ``prefix`` still have the expected versions.

        ``prefix`` is itself an application id that every change sets, so one of two simultaneous changes fails. Raises
        :class:`StaleLogError`, without changing anything, if the versions differ. A commit that fails but is in the
        log, as when a store's answer is lost, counts.
        """
        for _ in range(_ATTEMPTS):
            transaction = self._begin(prefix, expected)
            try:
                transaction.commit(self._actions(changes, now), self._operation(prefix, now))
            except Exception as error:
                if self._has(transaction):
                    logger.info("A commit to %s is in its log despite this error: %s", self.path, root_cause(error))
                    return
                if not is_conflict(error):
                    raise
                cause = root_cause(error)
            else:
                return
        raise RetriableError(f"Other writers kept changing the Delta table {self.path} ({cause}).")

    @_in_its_session
    def append(
        self, rows: DataFrame, prefix: str, expected: Mapping[str, int], changes: Mapping[str, int], now: int
    ) -> None:
        """Write rows and commit them together with versions of application ids, adding the columns that are missing.

        The versions are checked as by :meth:`set_versions`, before the rows are written and again by the commit, which
        is tried once. This is what Delta's sink for Structured Streaming does, whose check is the number of the batch.
        """
        transaction = self._begin(prefix, expected)
        jvm, session = self._jvm, self._spark._jsparkSession
        python, delta = jvm.org.apache.spark.api.python.PythonUtils, jvm.org.apache.spark.sql.delta
        options = delta.DeltaOptions(python.toScalaMap({"mergeSchema": "true"}), session.sessionState().conf())
        mode, nothing = jvm.org.apache.spark.sql.SaveMode.Append, self._none()
        write = delta.commands.WriteIntoDelta(
            self._log, mode, options, python.toSeq([]), python.toScalaMap({}), rows._jdf, nothing, nothing, False
        )
        files = write.write(transaction, session, nothing, False)
        self._tell_added(transaction, files.size())
        crash_point("before-table-commit")
        transaction.commit(files.appendedAll(self._actions(changes, now)), self._operation(prefix, now))

    def _begin(self, prefix: str, expected: Mapping[str, int]) -> Any:
        """Start a transaction that fails if another one changes versions of application ids that begin with a prefix.

        Raises :class:`StaleLogError` if they are not as expected.
        """
        transaction = self._log.startTransaction(self._none(), self._none())
        snapshot = transaction.snapshot()
        if self._versions_in(snapshot, self._checksum(snapshot), prefix) != dict(expected):
            raise StaleLogError
        # What `txnVersion` does, without the version, for which Spark would read the list of all files.
        transaction.readTxn().addOne(prefix)
        return transaction

    def _tell_added(self, transaction: Any, files: int) -> None:
        """Have the table's history say how many files a transaction has added, as it says it of streams."""
        jvm, session = self._jvm, self._spark._jsparkSession
        added = jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(session.sparkContext(), "files added")
        added.set(files)
        metrics = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({"numAddedFiles": added})
        transaction.registerSQLMetrics(session, metrics)

    def _has(self, transaction: Any) -> bool:
        """Return whether one of the versions after the one that a transaction began with is the transaction's own."""
        versions = range(transaction.readVersion() + 1, self._snapshot().version() + 1)
        return any(self._transaction_id(version) == transaction.txnId() for version in versions)

    def _snapshot(self) -> Any:
        return self._log.update(False, self._none(), self._none())

    def _versions_in(self, snapshot: Any, checksum: _Checksum, prefix: str) -> dict[str, int]:
        known = snapshot.setTransactions() if checksum.identifiers is None else checksum.identifiers
        # As one JSON text: with thousands of partitions, a Java call for each would take seconds.
        mapper = self._jvm.org.apache.spark.sql.delta.util.JsonUtils.mapper()
        found = json.loads(mapper.writeValueAsString(known))
        named = {item["appId"]: int(item["version"]) for item in found}
        return {name: at for name, at in named.items() if name == prefix or name.startswith(f"{prefix}/")}

    def _checksum(self, snapshot: Any) -> _Checksum:
        """Return what the checksum of a snapshot's version says, if it is that of its commit."""
        option = snapshot.checksumOpt()
        if not option.isDefined() or not option.get().txnId().isDefined():
            return _Checksum(None, is_strange=False)
        found, committed = option.get().txnId().get(), self._transaction_id(snapshot.version())
        if found != committed:
            return _Checksum(None, is_strange=committed is not None)
        identifiers = option.get().setTransactions()
        return _Checksum(identifiers.get() if identifiers.isDefined() else None, is_strange=False)

    def _transaction_id(self, version: int) -> str | None:
        """Return the id that the commit of a version has in its file; ``None`` if there is none, or no such file."""
        file = self._jvm.org.apache.spark.sql.delta.util.FileNames.unsafeDeltaFile(self._log.logPath(), version)
        try:
            lines = self._log.store().readAsIterator(file, self._log.newDeltaHadoopConf())
            try:
                first = json.loads(lines.next()) if lines.hasNext() else {}
            finally:
                lines.close()
        except Py4JJavaError:
            return None
        found: str | None = first.get("commitInfo", {}).get("txnId")
        return found

    def _without_checksum(self, version: int) -> Any:
        """Remove the checksum of a version, and return the snapshot that is read without it."""
        delta, session = self._jvm.org.apache.spark.sql.delta, self._spark._jsparkSession
        file = delta.util.FileNames.checksumFile(self._log.logPath(), version)
        file.getFileSystem(self._log.newDeltaHadoopConf()).delete(file, False)
        delta.DeltaLog.invalidateCache(session, self._log.dataPath())
        self._log = delta.DeltaLog.forTable(session, self.path)
        return self._snapshot()

    def _actions(self, changes: Mapping[str, int], now: int) -> Any:
        actions = self._jvm.org.apache.spark.sql.delta.actions
        at = self._jvm.scala.Option.apply(now)
        made = [actions.SetTransaction(name, version, at) for name, version in changes.items()]
        return self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(made)

    def _operation(self, query: str, epoch: int) -> Any:
        """Return what the table's history calls the commit: ``STREAMING UPDATE``.

        After a ``ManualUpdate`` Delta computes the checksum of the version from the list of all files.
        """
        delta, streaming = self._jvm.org.apache.spark.sql.delta, self._jvm.org.apache.spark.sql.streaming
        update = getattr(delta, "DeltaOperations$StreamingUpdate")
        return update(streaming.OutputMode.Append(), query, epoch, self._none())

    def _none(self) -> Any:
        return self._jvm.scala.Option.empty()


def table_names(spark: SparkSession, folder: str) -> list[str]:
    """Return the names of the Delta tables directly below a folder, which may not exist."""
    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    path = jvm.org.apache.hadoop.fs.Path(folder)
    files = path.getFileSystem(session.sessionState().newHadoopConf())
    if not files.exists(path):
        return []
    below = [status.getPath() for status in files.listStatus(path) if status.isDirectory()]
    return sorted(
        str(child.getName()) for child in below if files.exists(jvm.org.apache.hadoop.fs.Path(child, "_delta_log"))
    )


def is_conflict(error: BaseException) -> bool:
    """Return whether a commit failed because of a simultaneous one, so that it may be retried."""
    return any(name in error_text(error) for name in _CONFLICTS)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _assignments(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{_literal(name)} = {_literal(value)}" for name, value in sorted(properties.items()))


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted_path(path: str) -> str:
    """Return the SQL name of the table at a path."""
    return f"delta.{_quoted(path)}"
