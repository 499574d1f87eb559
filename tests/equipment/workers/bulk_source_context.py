"""The context of a bulk source task, for a process or test that is not a worker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from connect.bulk import Progress
from connect.bulk_source import KafkaSettings, ReachedOffsets
from connect.data import Offset
from connect.errors import ConnectError
from connect.internals.chain.tolerance import ErrorPolicy, Failure
from connect.internals.crash import crash_point
from equipment.workers.claimed_offsets import ClaimedOffsets
from worker.stores.offset.store import check_offset

__all__ = ["BulkSourceContext"]


class BulkSourceContext:
    """The context of the task of the connector ``name``. Its offsets are kept in a file, if one is given.

    With ``transactions`` they are kept there. ``is_lost`` decides, for some offsets, whether the driver dies before it
    stores them or, with transactions, when it learns that a slot has committed them.
    """

    def __init__(
        self,
        name: str,
        bootstrap: str,
        props: Mapping[str, str],
        offsets: Path | None = None,
        transactions: ClaimedOffsets | None = None,
        is_lost: Callable[[ReachedOffsets], bool] = lambda _: False,
    ) -> None:
        self.connector_name = name
        self.connector_properties = props
        settings = {"bootstrap.servers": bootstrap}
        self.producer_settings = KafkaSettings(settings, {**settings, "partitioner": "murmur2_random"})
        self.error_policy = ErrorPolicy(tolerates_errors=props.get("errors.tolerance") == "all")
        self.transactions = transactions
        self.offset_storage_reader: BulkSourceContext | ClaimedOffsets = transactions or self
        self._is_lost = is_lost
        self.stop = False
        self.last_progress = Progress("nothing yet")
        self.read = 0
        self.written: dict[str, int] = {}
        self.failures: list[Failure] = []
        self.commits = 0
        self._admin = AdminClient(settings)
        self._file = offsets
        self._offsets: dict[str, Offset] = {}
        if offsets is not None and offsets.exists():
            self._offsets = json.loads(offsets.read_text())

    def offset(self, partition: Offset) -> Offset | None:
        """The offset of a source partition."""
        return self._offsets.get(_key(partition))

    def offsets(self, partitions: Sequence[Offset]) -> Sequence[Offset | None]:
        return [self.offset(partition) for partition in partitions]

    def create_topics(self, topics: Iterable[str]) -> Mapping[str, int | None]:
        """Create topics of one partition, each with the default batch limit of brokers."""
        for topic, made in self._admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).items():
            try:
                made.result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            self.written.setdefault(topic, 0)
        return dict.fromkeys(topics, 1_000_000)

    def published(self, read: int, written: Mapping[str, int]) -> None:
        self.read += read
        for topic, count in written.items():
            self.written[topic] = self.written.get(topic, 0) + count

    def give_up(self, failures: Iterable[Failure]) -> None:
        for failure in failures:
            self.failures.append(failure)
            if not self.error_policy.tolerates_errors:
                raise ConnectError(f"Tolerance exceeded in error handler: {failure.error}")

    def commit(self, offsets: ReachedOffsets) -> None:
        """Store offsets as the worker does: values that JSON cannot represent are refused."""
        if not offsets:
            return
        crash_point("before-offset-commit")
        self.commits += 1
        if self.transactions is not None:
            self.transactions.commit(offsets)
            return
        self._check_lost(offsets)
        for partition, offset in offsets:
            check_offset(partition)
            if offset is None:
                self._offsets.pop(_key(partition), None)
            else:
                check_offset(offset)
                self._offsets[_key(partition)] = json.loads(json.dumps(offset))
        if self._file is not None:
            beside = self._file.with_suffix(".new")
            beside.write_text(json.dumps(self._offsets))
            beside.replace(self._file)

    def committed(self, offsets: ReachedOffsets) -> None:
        """Raise an error, as if the driver had died, if ``is_lost`` says so."""
        self._check_lost(offsets)

    def progress(self, progress: Progress) -> None:
        """Keep the task's latest progress."""
        self.last_progress = progress

    def wait(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True

    def stopping(self) -> bool:
        return self.stop

    def _check_lost(self, offsets: ReachedOffsets) -> None:
        if self._is_lost(offsets):
            raise ConnectError("This driver has gone away.")


def _key(partition: Offset) -> str:
    return json.dumps(partition, sort_keys=True)
