"""A sink connector run by Spark: the driver's part, in the task of the worker.

The worker plans ranges of offsets; loading them is one Spark job. Its executors run sink tasks of the connector
(``sink_executor.py``), at most ``tasks.max``, each with whole ranges, so that a topic partition keeps its order. Once
all of them have flushed and the bad records are reported, the ranges are loaded.

==========================================  ========================================================================
kill -9 here                                then
==========================================  ========================================================================
a Python worker of an executor, or an       what its tasks had put or flushed is put again: by Spark, which reruns their
executor                                    part of the job on a cluster, or by a repeated load (with ``local[n]``, and
                                            when Spark has run out of retries)
after a task has flushed, before Spark      the same: records are duplicated, except in a target that recognises them (a
knows of it                                 primary key), or keeps the offsets with them, as JDBC's exactly-once does
Spark's Java                                Spark is restarted, and the load is repeated
the driver: the task of the worker          the load is repeated, from the offsets of the group
after bad records were reported, before     the load is repeated, and the records are bad again: the dead letter queue
the offsets of the group are committed      has them once. What only the target has rejected is reported again, unless
                                            the target keeps offsets that are past it
after the offsets are committed             loading continues after them
==========================================  ========================================================================

Speculation (``spark.speculation``) is off unless the connector asks for it: two attempts at a task would put each of
its records twice. A target that keeps offsets refuses the slower of them.

If some tasks fail in a load, what the others have flushed is not put again (:meth:`SparkSinkEngine.committed`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from connect.bulk import BulkSinkTask, BulkSinkTaskContext, FailuresOf, OffsetRange
from connect.data import TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.tolerance import ErrorPolicy
from connect.offset_set import OffsetSet
from connectors.spark.decoding.plugins import chain_properties
from connectors.spark.engine.config import SparkSinkEngineConfig
from connectors.spark.engine.sink_accounts import Account, Accounts, Outcome
from connectors.spark.engine.sink_orders import SinkOrders
from connectors.spark.errors import is_lasting, load_error
from connectors.spark.publishing.publisher import InExecutorError
from connectors.spark.retries import LoadRetries
from connectors.spark.stores.access import Access

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.spark.engine.sink_loads import SinkLoads

__all__ = ["SparkSinkEngine"]

logger = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 1.0
_SOON_SECONDS: Final = 0.1
_TELLINGS: Final = 5
_BATCH: Final = 10_000
_REPORTING: Final[Sequence[tuple[str, str | None]]] = (
    ("errors.tolerance", "all"),
    ("errors.log.enable", "true"),
    ("errors.deadletterqueue.topic.name", None),
)
"""The keys, with their values, that give the errant record reporter somewhere to report to."""


class SparkSinkEngine(BulkSinkTask[SparkSinkEngineConfig]):
    """Runs the tasks of a sink connector in the executors of Spark, with ``engine=spark``."""

    def __init__(self, config: SparkSinkEngineConfig, context: BulkSinkTaskContext) -> None:
        super().__init__(config, context)
        self.context = context
        self._spark: SparkSession | None = None
        self._loads: SinkLoads | None = None
        self._done: dict[TopicPartition, int] = {}
        self._settled: set[TopicPartition] = set()
        self._topics: set[str] = set()
        """The topics that tasks publish to and that are known to exist."""
        self._retries = LoadRetries(context, self.start)

    def start(self) -> None:
        """Start Spark."""
        # Importing pyspark takes half a second and must not happen before the task's process is forked.
        from connectors.spark.engine.sink_loads import SinkLoads  # noqa: PLC0415
        from connectors.spark.session import start_session  # noqa: PLC0415

        access = Access(hadoop_conf_dir=self.config.hadoop_conf_dir)
        self._spark = start_session(self.context.connector_properties, self.context.connector_name, access)
        self._loads = SinkLoads(self._spark, self.context, self._orders())

    def committed(self) -> Mapping[TopicPartition, int]:
        """Return the next offsets after what the tasks flushed in this driver's loads, or where they want to
        continue."""
        return self._done

    def begin_anew(self, topic: str) -> bool:
        """Forget what was done of a topic that exists no more. Where its tasks want to continue no longer counts."""
        gone = {tp for tp in self._done if tp.topic == topic}
        for tp in gone:
            del self._done[tp]
        self._settled |= gone
        return True

    def load(self, ranges: Sequence[OffsetRange]) -> None:
        """Let the tasks put and flush the records of the ranges.

        Raises :class:`~connect.errors.RetriableError` if repeating the load may help.
        """
        try:
            self._load(ranges)
        except ConnectError:
            raise
        except Exception as error:
            assert self._spark is not None
            raise self._retries.error(self._spark, load_error(error), is_lasting=is_lasting(error)) from error
        self._retries.forget()

    def stop(self) -> None:
        """Stop Spark; ranges that are not committed are loaded again."""
        if self._spark is not None:
            self._spark.stop()

    def _load(self, ranges: Sequence[OffsetRange]) -> None:
        assert self._loads is not None
        self._loads.begin()
        given_up: dict[TopicPartition, OffsetSet] = {}
        while left := [item for item in map(self._not_done, sorted(ranges)) if len(item)]:
            attempt = self._loads.attempt(left, frozenset(self._settled), given_up, frozenset(self._topics))
            self._publish(attempt.accounts)
            worst = attempt.accounts.worst
            if worst.outcome is Outcome.REFUSED and worst.first is not None:
                self._settle(attempt.accounts.flushed)
                self._loads.refuse(worst.first, attempt.failures)
            bad, flushed = attempt.accounts.settled_rejections, attempt.accounts.flushed
            # Records that are done are never read again, so a bad record has to be reported first (invariant I4).
            self._settle({tp: min([offset, *bad.get(tp, OffsetSet()).least(1)]) for tp, offset in flushed.items()})
            if bad:
                self._leave_out(bad, attempt.failures)
                given_up |= {tp: given_up.get(tp, OffsetSet()) | offsets for tp, offsets in bad.items()}
            self._settle(flushed)
            if worst.outcome is Outcome.DONE:
                self._settle({item.topic_partition: item.end for item in left})
            elif worst.outcome is not Outcome.UNTOLD:
                raise self._failure(worst, attempt.accounts)

    def _publish(self, accounts: Accounts) -> None:
        """Send what tasks published to topics that may have to be created; from then on, tasks send to these
        themselves.
        """
        topics = {record.topic for record in accounts.published}
        for record in accounts.published:
            self.context.publish(*record)
        if topics:
            self.context.flush_published()
        self._topics |= topics

    def _leave_out(self, bad: Mapping[TopicPartition, OffsetSet], failures: FailuresOf) -> None:
        """Report bad records, with retries: repeating the load instead would put good records twice."""
        for _ in range(_TELLINGS):
            try:
                self.context.leave_out(bad, failures)
            except RetriableError as error:
                logger.warning("Reporting bad records failed; trying again: %s", error)
                if not self.context.wait(error.retry_after or _RETRY_SECONDS):
                    raise
            else:
                return
        self.context.leave_out(bad, failures)

    def _settle(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._done |= offsets
        self._settled |= offsets.keys()

    def _not_done(self, item: OffsetRange) -> OffsetRange:
        """Return the part of a range that is not done yet."""
        return replace(item, first=max(item.first, min(item.end, self._done.get(item.topic_partition, 0))))

    def _failure(self, worst: Account, accounts: Accounts) -> ConnectError:
        """Return the error for a load whose tasks failed."""
        cause = InExecutorError(worst.trace)
        if worst.outcome is Outcome.FAILED:
            failure = ConnectError(worst.error)
        elif worst.outcome is Outcome.BACK:
            logger.info("The target is behind the group's offsets, or ahead of the task: %s.", worst.error)
            # Once per partition: an unchanged target returns to the same offset, and what it has left out stays left
            # out.
            self._settle(accounts.back(self._settled))
            failure = RetriableError(worst.error, retry_after=_SOON_SECONDS)
        else:
            failure = RetriableError(worst.error, retry_after=worst.retry_after)
        failure.__cause__ = cause
        return failure

    def _orders(self) -> SinkOrders:
        """Return what executors need to know regardless of the ranges."""
        props = self.context.connector_properties
        task = {key: value for key, value in self.config.originals.items() if value is not None}
        return SinkOrders(
            props["connector.class"],
            chain_properties(props),
            task,
            self.context.consumer_settings,
            int(self.context.consumer_properties.get("max.poll.records", _BATCH)),
            policy=_policy(props),
            reports=any(_is_set(props, *pair) for pair in _REPORTING),
            producer=self.context.producer_settings,
        )


def _policy(props: Mapping[str, str]) -> ErrorPolicy:
    """Return the ``errors.*`` keys that concern individual tasks."""
    return ErrorPolicy(
        _is_set(props, "errors.tolerance", "all"),
        int(props.get("errors.retry.timeout", 0)),
        int(props.get("errors.retry.delay.max.ms", 60_000)),
    )


def _is_set(props: Mapping[str, str], key: str, value: str | None) -> bool:
    """Return whether a key has this value, or any value if none is given."""
    given = props.get(key, "").strip()
    return bool(given) if value is None else given.lower() == value
