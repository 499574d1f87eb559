"""Reads and alters the offsets that the tasks of a source write themselves, while none of them runs.

They are in the connector's own ``offsets.storage.topic`` or, with exactly-once support, in the worker's, and there
they are written in a transaction, with the transactional id of the first task (KIP-618, KIP-875).

======================================  ================================================================================
kill -9 here                            then
======================================  ================================================================================
with exactly-once support, before or    nothing is changed; the next process of the task ends the transaction
in the transaction
while the commit is under way           all offsets are changed, or none
without transactions, while offsets     some may be changed and others not, each right by itself; the request had no
are being written                       answer and is to be made again
======================================  ================================================================================
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from connect.errors import ConnectError
from connect.internals.chain.tolerance import StopRequested
from connect.internals.delivery.delivery import PRODUCER_FAILURES, kafka_error
from connect.internals.kafka.clients import librdkafka
from worker.kafka.clients import roles
from worker.kafka.topics.admin import describe
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.runtime.source.guarantee import create_offsets_topic
from worker.runtime.source.producer import TransactionalProducer
from worker.security.redaction import Redaction
from worker.stores.offset.kafka import TopicOffsetStore
from worker.stores.offset.store import OffsetKey, offset_key, offset_value, parse_offset, parse_offset_key

__all__ = ["answer_of_source_offsets"]

# The worker waits 90 s for an answer.
_PATIENCE_SECONDS: Final = 60.0
_FIRST: Final = 0


def answer_of_source_offsets(
    inquiry: messages.ReadDedicatedOffsets | messages.WriteSourceOffsets, redaction: Redaction
) -> messages.DedicatedOffsets | messages.SourceOffsetsWritten:
    """Read the offsets in the topic, or write some."""
    assembly = Assembly.resolve(inquiry.worker, inquiry.config, redaction)
    return _read(assembly) if isinstance(inquiry, messages.ReadDedicatedOffsets) else _write(assembly, inquiry.offsets)


def _read(assembly: Assembly) -> messages.DedicatedOffsets:
    """Return the offsets in the connector's dedicated topic, if it has one and that exists."""
    topic = assembly.dedicated_offsets_topic
    if topic is None or not _is_there(assembly, topic):
        return messages.DedicatedOffsets([])
    with _opened(assembly, topic) as store:
        found = [(*parse_offset_key(key), parse_offset(value)) for key, value in store.items().items()]
    name = assembly.config.name
    return messages.DedicatedOffsets(
        [(partition, offset) for connector, partition, offset in found if connector == name]
    )


def _write(assembly: Assembly, offsets: messages.OffsetPairs) -> messages.SourceOffsetsWritten:
    """Write offsets to where the tasks write them; in a transaction, all of them or none."""
    name, own = assembly.config.name, assembly.dedicated_offsets_topic
    values = {offset_key(name, partition): offset_value(offset) for partition, offset in offsets}
    if own is not None:
        create_offsets_topic(assembly, own, None)
    if assembly.supports_exactly_once:
        _write_in_transaction(assembly, values)
    elif own is not None:
        with _opened(assembly, own) as store:
            store.put(values)
    return messages.SourceOffsetsWritten()


def _write_in_transaction(assembly: Assembly, values: Mapping[OffsetKey, bytes | None]) -> None:
    topic, deadline = assembly.transaction_offsets_topic, time.monotonic() + _PATIENCE_SECONDS
    clients = Clients(assembly, _FIRST)
    producer, timeout = clients.transactional_producer()
    task = f"{assembly.config.name}-{_FIRST}"
    transactions = TransactionalProducer(
        producer,
        task,
        transactional_id=clients.transactional_id,
        timeout=timeout,
        patience=0.0,
        is_stopping=lambda: time.monotonic() >= deadline,
    )
    try:
        # This ends a transaction that a former task has left open, so that the topic can be read to its end.
        transactions.start()
        with _opened(assembly, topic) as store:
            pairs = store.forms(values)
        transactions.begin()
        for key, value in pairs:
            producer.produce(topic, value=value, key=key)
        transactions.commit()
    except StopRequested:
        raise ConnectError(
            f"The offsets could not be written to topic {topic} within {_PATIENCE_SECONDS:.0f} s: its brokers do not "
            "end the transaction. Nothing is changed, or all of it; read the offsets, and ask again."
        ) from None
    except PRODUCER_FAILURES as error:
        raise transactions.failure(kafka_error(error)) from error


@contextmanager
def _opened(assembly: Assembly, topic: str) -> Iterator[TopicOffsetStore]:
    worker, props = assembly.worker_props, assembly.props
    store = TopicOffsetStore(
        topic,
        roles.source_offsets_consumer_properties(worker, props, None, exactly_once=assembly.supports_exactly_once),
        roles.source_producer_properties(worker, props, _FIRST),
    )
    try:
        store.start()
        yield store
    finally:
        store.close()


def _is_there(assembly: Assembly, topic: str) -> bool:
    return describe(librdkafka.admin(roles.admin_properties(assembly.worker_props, assembly.props)), topic) is not None
