"""Publishes from executors: sends records through the connector's chain to Kafka, as the worker's own producer would.

A :class:`Publication` travels from the driver to the executors. There a :class:`Publisher` is created from it, receives
batches, and returns a :class:`Published` account, which travels back and is settled by :func:`settle`.

In a transaction, the executor commits the offsets together with the records. Skipped records must be reported before
that (invariant I4), which only the driver can do: it gets their failures, reports them, and the work is repeated.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from connect.bulk_source import (
    BulkSourceTaskContext,
    BulkTransactions,
    Claim,
    KafkaSettings,
    ReachedOffsets,
    TransactionOrders,
)
from connect.data import Constant, Offset, SourceBatch, SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.internals.chain.source import SourceChain, by_source_partition
from connect.internals.chain.stack_trace import stack_trace
from connect.internals.chain.steps import Steps
from connect.internals.chain.tolerance import ErrorPolicy, Failure, RaisedElsewhere, Stage, Tolerance
from connect.internals.delivery.acknowledged_producer import AcknowledgedProducer
from connect.internals.delivery.delivery import Delivery
from connect.internals.delivery.submissions import Refusal, SentRecords, Submission
from connect.internals.delivery.transaction import Transaction
from connectors.spark.decoding.plugins import chain_properties, executor_plugins

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "InExecutorError",
    "Publication",
    "Published",
    "Publisher",
    "Slots",
    "TopicsMissing",
    "UnreportedError",
    "acknowledged_by",
    "failure_digest",
    "settle",
]

logger = logging.getLogger(__name__)
_ACKNOWLEDGE_SECONDS: Final = 0.5
_MOST_FAILURES: Final = 1000


@dataclass(frozen=True, slots=True)
class Publication:
    """How executors publish for a connector. Contains secrets, which its repr does not show (invariant I8)."""

    connector: str
    properties: Mapping[str, str] = field(repr=False)
    """The part of the connector's configuration that the chain is built from."""
    settings: KafkaSettings
    policy: ErrorPolicy
    topics: Mapping[str, int | None] = field(default_factory=dict)
    """The existing topics, with the largest batch that each accepts, as returned by ``create_topics``."""
    transaction: TransactionOrders | None = None
    """The transaction to publish in, if any."""

    @classmethod
    def of(cls, context: BulkSourceTaskContext) -> Publication:
        """Return the publication of a task's connector."""
        return cls(
            context.connector_name,
            chain_properties(context.connector_properties),
            context.producer_settings,
            context.error_policy,
        )

    def with_topics(self, topics: Mapping[str, int | None]) -> Publication:
        """Return the same publication with these topics added."""
        return replace(self, topics={**self.topics, **topics})

    def within(self, transaction: TransactionOrders | None) -> Publication:
        """Return the same publication within a transaction, if there is one."""
        return replace(self, transaction=transaction)


class TopicsMissing(Exception):  # noqa: N818 - nothing is wrong: the driver creates them, and the work goes on
    """Records go to topics that the driver has not created yet; nothing of their batch was sent."""

    def __init__(self, topics: Iterable[str]) -> None:
        super().__init__(f"to be created: {', '.join(topics)}")
        self.topics = tuple(topics)


class UnreportedError(Exception):
    """Skipped records must be reported before the transaction can be committed."""


@dataclass(frozen=True, slots=True)
class Published:
    """What an executor has published, once Kafka has acknowledged all of it.

    ``offsets`` are those reached in each source partition; ``failures`` are the records skipped before them, or the one
    that ended the work. ``error`` is why the work ended early, ``missing`` the topics it needs to continue.
    """

    offsets: ReachedOffsets = ()
    read: int = 0
    written: Mapping[str, int] = field(default_factory=dict)
    bytes: int = 0
    failures: tuple[Failure, ...] = ()
    missing: tuple[str, ...] = ()
    error: str | None = None
    trace: str = ""
    retry_after: float | None = None
    """For a retriable ``error``: the seconds to wait before the next attempt."""


class Publisher:
    """Publishes in an executor. Used by one thread.

    It keeps offsets of source partitions only after everything before them is acknowledged (invariant I1), which
    :meth:`acknowledge` waits for. After a thousand skipped records it :attr:`is_full`: their reports should travel
    first.
    """

    def __init__(self, publication: Publication) -> None:
        self._failures: list[Failure] = []
        self._topics = publication.topics
        # The limits of errors.tolerance apply to all executors together, so the driver enforces them.
        policy = replace(publication.policy, tolerance_limit=-1, tolerance_rate=-1)
        self._tolerance = Tolerance(policy, [self], _wait)
        self._chain = _chain(dict(publication.properties), self._tolerance)
        self._sent = SentRecords()
        within = publication.transaction
        self._producer = _made_producer(publication.settings.librdkafka if within is None else within.producer)
        self._transaction = None if within is None else Transaction(within, self._producer)
        self._delivery = Delivery(
            self._producer, self._refused, _never, _Limits(publication.topics), self._sent, resends=within is None
        )
        self._is_torn = False
        self._offsets: dict[str, tuple[Offset, Offset]] = {}
        self._reached: dict[str, tuple[Offset, Offset]] = {}
        self._left_out: dict[str, tuple[Offset, Offset]] = {}
        self._settled = 0
        self._read = self._bytes = 0
        self._written: Counter[str] = Counter()
        self._unwritten: Counter[str] = Counter()

    # -- what a tolerance reports to --------------------------------------------------------------------------------

    def report(self, failure: Failure) -> None:
        """Keep a failure for the driver, in a form that can be sent."""
        raised = failure.raised or RaisedElsewhere(failure.error_class, failure.trace)
        self._failures.append(replace(failure, error=ConnectError(str(failure.error)), raised=raised))
        record = failure.record
        if failure.stage is Stage.TASK_POLL and isinstance(record, SourceRecord) and record.source_offset:
            self._left_out[_key(record.source_partition)] = record.source_partition, record.source_offset

    def flush(self) -> None:
        """Do nothing: the driver makes reports durable."""

    def give_up(self, failure: Failure) -> None:
        """Skip a record that could not even be read; raises unless ``errors.tolerance`` allows it."""
        self._tolerance.give_up(failure)

    # -- the transaction --------------------------------------------------------------------------------------------

    def begin(self, *, checks_only: bool = False) -> None:
        """Begin the transaction, if there is one: :meth:`connect.internals.delivery.transaction.Transaction.begin`."""
        if self._transaction is not None:
            self._transaction.begin(checks_only=checks_only)

    def commit(self, reported: Container[str], more: ReachedOffsets = (), *, at_end: bool = False) -> None:
        """Wait until Kafka has acknowledged everything; in a transaction, commit it together with the offsets reached.

        ``more`` are offsets to commit in addition to those of the records. Raises what :meth:`acknowledge` does, and
        :class:`UnreportedError` if a record was skipped whose digest is not in ``reported``.
        """
        self.acknowledge()
        if self._transaction is None or not self._transaction.is_open:
            return
        if self._is_torn:
            self.abort()
            return
        passed = self._failures if at_end else self._failures[: self._settled]
        if any(failure_digest(failure) not in reported for failure in passed):
            raise UnreportedError
        offsets = [*self._offsets_reached(at_end=at_end), *more]
        if offsets or self._read:
            self._transaction.commit(offsets)
        else:
            self._transaction.abort()

    def abort(self) -> None:
        """Discard what was sent in an uncommitted transaction; it will be sent again."""
        if self._transaction is not None and self._transaction.is_open:
            self._transaction.abort()
            self._reached, self._left_out, self._read, self._bytes = {}, {}, 0, 0
            self._written.clear()

    @property
    def checked(self) -> int:
        """The offset in the offsets topic up to which no newer claim was found."""
        return 0 if self._transaction is None else self._transaction.checked

    # -- records ----------------------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether so many records were skipped that the driver should report them first."""
        return len(self._failures) >= _MOST_FAILURES

    def publish(self, batch: SourceBatch) -> None:
        """Transform, convert and send a batch; blocks while the producer's buffer is full.

        Raises :class:`TopicsMissing` before sending any record of a source partition's run that goes to a topic the
        driver has not created, and :class:`~connect.errors.ConnectError` if a record fails that may not be skipped.
        """
        for run in by_source_partition(batch) if len(batch) else ():
            self._publish_run(run)

    def pass_offset(self, partition: Offset, offset: Offset) -> None:
        """Note an offset without a record, which follows the records published so far for its partition."""
        if partition:
            self._offsets[_key(partition)] = partition, offset

    def publish_arrow(self, topic: str, data: pa.RecordBatch | pa.Table) -> None:
        """Send the rows of an Arrow batch as struct values without a source partition; the caller keeps the offsets."""
        if data.num_rows:
            nowhere: Offset = {}
            offsets = Constant(nowhere, data.num_rows)
            self.publish(SourceBatch.from_arrow(topic, data, source_partition=nowhere, source_offsets=offsets))

    def _publish_run(self, run: SourceBatch) -> None:
        failed = len(self._failures)
        parts = [part for part in self._chain.process(run) if len(part)]
        if missing := [part.topic for part in parts if part.topic not in self._topics]:
            # The run will be published again, and its failures will recur.
            del self._failures[failed:]
            raise TopicsMissing(dict.fromkeys(missing))
        partition, offset = run.source_partitions[0], run.source_offsets[-1]
        submission = Submission(partition, offset, sum(map(len, parts)))
        self._sent.begin(submission)
        self._is_torn = True
        for part in parts:
            self._delivery.send(part, submission)
            self._unwritten[part.topic] += len(part)
            self._bytes += sum(len(value or b"") for value in part.values)
        self._read += len(run)
        self._settled = len(self._failures)
        self._is_torn = False
        if partition:
            self._offsets[_key(partition)] = partition, offset

    def acknowledge(self) -> None:
        """Wait until Kafka has acknowledged everything; raises if it rejected a record that may not be skipped."""
        try:
            while not self._delivery.flush(_ACKNOWLEDGE_SECONDS):
                pass
        except (KafkaException, SystemError) as error:
            if self._transaction is not None:
                raise self._transaction.failed(error) from error
            raise ConnectError(f"The producer failed: {error}. Restart the task.") from error
        self._reached |= self._offsets
        self._written += self._unwritten
        self._offsets = {}
        self._unwritten.clear()

    def published(
        self,
        missing: Iterable[str] = (),
        error: Exception | None = None,
        *,
        at_end: bool = False,
        goes_on: bool = False,
    ) -> Published:
        """Return the account of everything acknowledged so far.

        ``at_end`` means that everything has been read: then the offsets count as reached even in source partitions
        whose records were all skipped. If work ``goes_on`` from the offsets, or topics are ``missing``, later failures
        will occur again.
        """
        topics = tuple(missing)
        failures = self._failures[: self._settled] if topics or goes_on else self._failures
        return Published(
            tuple(self._offsets_reached(at_end=at_end)),
            self._read,
            dict(self._written),
            self._bytes,
            tuple(failures),
            topics,
            None if error is None else str(error) or type(error).__name__,
            "" if error is None else stack_trace(error),
            (error.retry_after or 1.0) if isinstance(error, RetriableError) else None,
        )

    def _offsets_reached(self, *, at_end: bool) -> Iterable[tuple[Offset, Offset]]:
        reached = {**self._left_out, **self._reached} if at_end else self._reached
        return reached.values()

    def _refused(self, refusal: Refusal) -> None:
        """Skip a record if it alone is at fault; a faulty producer or topic ends the work (I4)."""
        record, error = refusal.record, refusal.error
        failure = ConnectError(f"Kafka did not take a record for topic {record.topic}: {error.str()}.{refusal.remedy}")
        if self._transaction is not None and (refusal.sent or not refusal.is_of_record):
            # As in a worker's task, the first record that a broker rejects spoils the transaction.
            raise failure if refusal.is_of_record else self._transaction.failure(error)
        if not refusal.is_of_record:
            raise failure
        self._unwritten[record.topic] -= 1
        read = SourceRecord(record.topic, record.value, source_partition=refusal.submission.partition)
        self._tolerance.give_up(Failure(Stage.KAFKA_PRODUCE, "confluent_kafka.Producer", failure, read, record))


def settle(
    context: BulkSourceTaskContext,
    published: Published,
    commit: Callable[[ReachedOffsets], None] | None = None,
) -> None:
    """Process what an executor has published: first the counts, then reports, then the offsets (I1, I4).

    Raises the error that ended it, and those that ``errors.tolerance`` does not allow. Call it in the task's thread.
    ``commit`` handles the offsets if they are not to be stored at once.
    """
    context.published(published.read, published.written)
    try:
        context.give_up(published.failures)
    finally:
        (commit or context.commit)(published.offsets)
    if published.error is None:
        return
    if published.retry_after is not None:
        raise RetriableError(published.error, retry_after=published.retry_after)
    raise ConnectError(published.error) from InExecutorError(published.trace)


class InExecutorError(Exception):
    """An error raised in an executor, of which only the traceback is left."""


class _Limits:
    """The largest batch size of each topic, as reported to the driver."""

    def __init__(self, topics: Mapping[str, int | None]) -> None:
        self._topics = dict(topics)

    def of(self, topic: str) -> int | None:
        return self._topics.get(topic)

    def forget(self, topic: str) -> None:
        """Do nothing: a record that was rejected together with others is sent again alone."""
        self._topics.pop(topic, None)


def _chain(props: Mapping[str, str], tolerance: Tolerance) -> SourceChain:
    plugins = executor_plugins(props, with_keys=True, with_headers=True)
    steps: Steps[SourceBatch, SourceRecord] = Steps(plugins.steps, tolerance)
    return SourceChain(steps, plugins.converters, tolerance)


def failure_digest(failure: Failure) -> str:
    """Return a digest that identifies a skipped record when it turns up again."""
    record, raw = failure.record, failure.raw
    known: list[object] = [failure.stage.value, str(failure.error), None if record is None else record.topic]
    if isinstance(record, SourceRecord):
        value = record.value if isinstance(record.value, str | bytes) else None
        known += [_key(record.source_partition or {}), _key(record.source_offset or {}), value]
    if raw is not None:
        known += [raw.topic, raw.key, raw.value]
    return hashlib.sha256(repr(known).encode()).hexdigest()


def _made_producer(settings: Mapping[str, str | int | bool]) -> Producer:
    try:
        return Producer({**settings, "error_cb": _fail_without_login, "logger": logger})
    except (KafkaException, ValueError, TypeError):
        # The client's message may contain a secret (I8), and the worker has created a producer from the same settings.
        raise ConnectError(
            "A Spark process could not create the Kafka producer from the connector's producer.override.* and "
            "the worker's producer.* settings: make sure that files they name, such as "
            "ssl.truststore.location, exist there too."
        ) from None


def acknowledged_by(settings: Mapping[str, str | int | bool]) -> Callable[[str], AcknowledgedProducer]:
    """Return a function that creates a producer for a topic, which reports each record; one client serves all
    topics.
    """
    producer = _made_producer(settings)
    return lambda topic: AcknowledgedProducer(producer, f"The topic {topic}")


def _fail_without_login(error: KafkaError) -> None:
    """Raise from the client's poll if its login is refused, which it would otherwise retry for ever."""
    if error.code() in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED):
        raise ConnectError(f"The brokers refused the login of the connector's producer: {error.str()}")
    logger.debug("Kafka client: %s", error.str())


def _key(partition: Offset) -> str:
    return json.dumps(dict(partition), default=str)


def _wait(seconds: float) -> bool:
    """Sleep; Spark ends an executor that is to stop."""
    time.sleep(seconds)
    return True


def _never() -> bool:
    return False


class Slots:
    """Claims slots before offsets are read, and gives executors the orders for them. Used by one thread."""

    def __init__(self, transactions: BulkTransactions) -> None:
        self._transactions = transactions
        self._claim: Claim | None = None
        """The claim under which executors publish; ``None`` if earlier transactions have to be ended first."""
        self.count = 0
        """The number of claimed slots."""

    def claim(self, count: int) -> None:
        """Claim this many slots, ending any transactions begun with them earlier; does nothing if they are claimed
        already.
        """
        if self._claim is None:
            self._claim = self._transactions.claim(count)
            self.count = count

    @property
    def are_claimed(self) -> bool:
        """Whether executors may publish."""
        return self._claim is not None

    def release(self) -> None:
        """Have the slots claimed again before the next load: an executor may still be working with one."""
        self._claim = None

    def orders(self, slot: int) -> TransactionOrders:
        """Return the orders for publishing with a slot; slots are numbered from 1."""
        assert self._claim is not None, "slots are claimed before offsets are read"
        return self._transactions.orders(self._claim, slot)

    def checked(self, offset: int) -> None:
        """Let later executors start their search for newer claims where this one ended."""
        if self._claim is not None and offset > self._claim.offset:
            self._claim = replace(self._claim, offset=offset)
