"""When files end for reasons that do not come again (the clock, size, memory), and that such an end is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from connect.data import NO_HEADERS, SinkBatch, SinkRecord, TimestampType, TopicPartition
from connect.errors import ConnectError
from connect.kits.files.rotation import RotationRules, next_scheduled
from connect.kits.objects.local import LocalFiles
from connect.testing.sink_run import SinkTaskRun, TopicLog
from connectors.objects.cuts import Cut, Cuts, StaleError
from connectors.objects.sinks import FolderSinkTask
from equipment.waiting import wait_until

FIRST: Final = TopicPartition("t", 0)
HOUR: Final = 3_600_000


def record(offset: int, value: Any, partition: int = 0) -> SinkRecord:
    return SinkRecord(
        "t", value, None, None, None, partition, 1_700_000_000_000, NO_HEADERS, offset, TimestampType.CREATE_TIME,
        "t", partition, offset,
    )  # fmt: skip


def records(count: int, start: int = 0) -> list[SinkRecord]:
    return [record(offset, {"id": offset}) for offset in range(start, start + count)]


class Running:
    """A task on a folder."""

    def __init__(self, folder: Path, log: TopicLog, **props: str) -> None:
        dotted = {key.replace("_", "."): value for key, value in props.items()}
        self.folder = folder
        self.run = SinkTaskRun(
            FolderSinkTask, {"name": "s", "store.url": str(folder), "format.class": "JsonFormat", **dotted}, log
        )
        self.run.start(log.partitions)

    def files(self) -> dict[str, list[int]]:
        found = sorted((self.folder / "topics").rglob("*.json"))
        return {file.name: [json.loads(line)["id"] for line in file.read_text().splitlines()] for file in found}

    def cuts(self) -> list[str]:
        return sorted(file.name for file in (self.folder / "_sluice").rglob("*.json"))

    def until_files(self, count: int) -> None:
        def there() -> bool:
            self.run.put_nothing()
            return len(self.files()) >= count

        wait_until("files", there, seconds=20)


@pytest.fixture
def log() -> TopicLog:
    return TopicLog(records(20))


@pytest.mark.parametrize("rule", ["rotate_idle_interval_ms", "rotate_schedule_interval_ms", "rotate_interval_ms"])
def test_the_clock_ends_files_without_another_record(tmp_path: Path, log: TopicLog, rule: str) -> None:
    running = Running(tmp_path, log, **{rule: "50"})
    running.run.put(7)
    running.until_files(1)
    assert running.files() == {"t+0+0000000000.json": list(range(7))}
    assert running.cuts() == ["00000000000000000000.json"]
    wait_until("the offset", lambda: running.run.commit() == {FIRST: 7}, seconds=20)
    running.run.stop()


def test_an_end_by_the_clock_is_kept_when_records_come_again(tmp_path: Path, log: TopicLog) -> None:
    """Nothing was committed: the next task, with other rules, ends its file at the same offset."""
    first = Running(tmp_path, log, rotate_idle_interval_ms="50")
    first.run.put(7)
    first.until_files(1)
    first.run.task.stop()
    second = Running(tmp_path, log, flush_size="5")
    while second.run.put(4):
        second.run.commit()
    second.run.stop()
    assert second.files() == {
        "t+0+0000000000.json": list(range(7)),
        "t+0+0000000007.json": list(range(7, 12)),
        "t+0+0000000012.json": list(range(12, 17)),
    }
    assert log.committed == {FIRST: 17}


def test_size_ends_files(tmp_path: Path, log: TopicLog) -> None:
    running = Running(tmp_path, log, file_max_bytes="40")
    while running.run.put(3):
        running.run.commit()
    running.run.stop()
    assert list(running.files().values()) == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11], [12, 13, 14, 15, 16, 17]]


def test_memory_ends_the_files_that_are_open_longest(tmp_path: Path) -> None:
    wide = [record(number, {"id": number, "text": "x" * 10_000}, number % 50) for number in range(400)]
    wide = [item.replace(original_offset=number // 50, offset=number // 50) for number, item in enumerate(wide)]
    running = Running(tmp_path, TopicLog(wide), flush_size="100000", buffer_max_bytes=str(1 << 20))
    held = []
    for start in range(0, len(wide), 20):
        for batch in SinkBatch.from_records(wide[start : start + 20]):
            running.run.task.put(batch)
        held.append(running.run.task._held)
    assert max(held) <= 1 << 20
    files = running.files()
    assert sum(map(len, files.values())) >= 200, "what went out"
    assert min(files) == "t+0+0000000000.json"
    running.run.task.stop()


def test_skipped_records_are_committed(tmp_path: Path) -> None:
    log = TopicLog([record(offset, None) for offset in range(9)])
    running = Running(tmp_path, log, flush_size="5", behavior_on_null_values="ignore")
    running.run.put(9)
    assert running.run.commit() == {FIRST: 9}
    running.run.stop()


def test_what_a_rewind_brings_again_has_its_old_files(tmp_path: Path, log: TopicLog) -> None:
    running = Running(tmp_path, log, flush_size="5")
    while running.run.put(6):
        running.run.commit()
    before = running.files()
    running.run.close([FIRST])
    log.committed[FIRST] = 5
    running.run.open([FIRST])
    while running.run.put(6):
        running.run.commit()
    running.run.stop()
    assert running.files() == before


# -- cuts ------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LocalFiles]:
    yield LocalFiles(tmp_path)


def cuts_of(store: LocalFiles, topic_id: str | None = "one") -> Cuts:
    cuts = Cuts(store, "cuts", FIRST, topic_id)
    cuts.load()
    return cuts


def test_of_two_tasks_the_first_decides(store: LocalFiles) -> None:
    mine, other = cuts_of(store), cuts_of(store)
    mine.create(Cut(0, 10))
    with pytest.raises(StaleError):
        other.create(Cut(0, 12))
    assert other.covering(3) == Cut(0, 10, [], "one")
    other.create(Cut(0, 10)), "the same is no conflict"


def test_a_task_that_was_frozen_notices_that_others_are_further(store: LocalFiles) -> None:
    frozen, owner = cuts_of(store), cuts_of(store)
    for start in range(0, 120, 10):
        owner.create(Cut(start, start + 10))
    owner.forget(110)
    assert len(store.names("cuts/t/0")) == 9, "the newest are kept"
    with pytest.raises(StaleError, match="newer cuts"):
        frozen.create(Cut(0, 7))
    assert frozen.covering(0) is None
    assert frozen.next_start(0) == 30


def test_cuts_of_a_former_topic_are_removed(store: LocalFiles) -> None:
    cuts_of(store, "one").create(Cut(0, 10))
    assert cuts_of(store, None).covering(0) is not None
    assert cuts_of(store, "two").covering(0) is None
    assert store.names("cuts/t/0") == []


def test_a_damaged_cut_is_told(store: LocalFiles) -> None:
    store.create("cuts/t/0/00000000000000000000.json", b"{")
    with pytest.raises(ConnectError, match="If it is damaged, remove it"):
        cuts_of(store)


@pytest.mark.parametrize(
    ("rules", "now", "expected"),
    [
        (RotationRules(schedule_ms=HOUR), 1_700_000_000_000, 1_700_002_800_000),
        (RotationRules(schedule_ms=24 * HOUR, timezone="Asia/Kolkata"), 1_700_000_000_000, 1_700_073_000_000),
        (RotationRules(), 0, None),
    ],
)
def test_scheduled_ends_are_counted_from_midnight(rules: RotationRules, now: int, expected: int | None) -> None:
    assert next_scheduled(rules, now) == expected
