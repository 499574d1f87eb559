"""The partitions of a topic share files: each record is in one of them, whoever owns the partitions, and nothing is
overwritten."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

import pytest

from connect.data import SinkRecord, TopicPartition
from connect.errors import ConfigError
from connect.testing.sink_run import SinkTaskRun, TopicLog, sink_task_class
from connectors.objects import FolderSinkConnector
from connectors.objects.sink_config import FolderSinkConfig, S3SinkConfig
from connectors.objects.source.names import RestoredNames
from equipment.fakes.late_reports import LateReports

PARTITIONS: Final = 3
TOPIC: Final = [TopicPartition("t", number) for number in range(PARTITIONS)]


def record(number: int) -> SinkRecord:
    partition, offset = number % PARTITIONS, number // PARTITIONS
    value = {"id": number, "origin": "EWR" if number % 2 else "JFK"}
    return SinkRecord(
        "t", value, None, str(number), None, partition, 1_000 * number, offset=offset, original_topic="t",
        original_partition=partition, original_offset=offset,
    )  # fmt: skip


class Folder:
    """A folder that a connector writes to."""

    def __init__(self, folder: Path, **keys: str) -> None:
        self.path = folder
        given = {key.replace("_", "."): value for key, value in keys.items()}
        self.props = {
            "name": "files",
            "topics": "t",
            "store.url": str(folder),
            "format.class": "JsonFormat",
            "combine.partitions": "true",
            "retry.backoff.ms": "1",
            **given,
        }

    def task(self, log: TopicLog, partitions: Collection[TopicPartition] = TOPIC) -> SinkTaskRun:
        """A task that owns some partitions."""
        run = SinkTaskRun(sink_task_class(FolderSinkConnector), self.props, log)
        run.start(partitions)
        return run

    def contents(self) -> dict[str, list[int]]:
        """The ids of the records in each file."""
        files = sorted((self.path / "topics").rglob("*.json"))
        return {
            str(file.relative_to(self.path)): [json.loads(line)["id"] for line in file.read_text().splitlines()]
            for file in files
        }

    def ids(self) -> list[int]:
        return sorted(number for ids in self.contents().values() for number in ids)


def drain(run: SinkTaskRun, most: int = 7) -> None:
    while not run.at_end:
        run.put(most)
    run.commit()


@pytest.fixture
def log() -> TopicLog:
    return TopicLog([record(number) for number in range(60)])


def test_files_have_the_records_of_all_partitions(tmp_path: Path, log: TopicLog) -> None:
    folder = Folder(tmp_path, flush_size="30")
    run = folder.task(log)
    drain(run)
    run.stop()
    contents = folder.contents()
    assert [path.partition("-")[0] for path in contents] == ["topics/t/t+all+0000000000", "topics/t/t+all+0000000030"]
    assert [[{number % PARTITIONS for number in ids}, len(ids)] for ids in contents.values()] == [
        [{0, 1}, 30],
        [{1, 2}, 30],
    ]
    assert folder.ids() == list(range(60))
    assert log.committed == dict.fromkeys(TOPIC, 20)


def test_reports_are_durable_before_a_commit_has_the_records_after_them(tmp_path: Path) -> None:
    """What is below the offsets of a commit is passed over by the next task, bad records too."""
    bad = record(3).replace(value=None)
    folder = Folder(tmp_path, rotate_on_offset_commit="true", behavior_on_null_values="fail")
    run = folder.task(TopicLog([record(0), record(1), record(2), bad, record(4)]))
    run.context.errant_record_reporter = reporter = LateReports()
    run.put(10)
    run.commit()
    assert folder.contents() == {}
    assert set(run.log.committed.values()) <= {0}
    reporter.are_durable = True
    run.put(10)
    drain(run)
    run.stop()
    assert folder.ids() == [0, 1, 2, 4]
    assert {each.original_offset for each, _ in reporter.reported} == {1}


def test_folders_of_a_partitioner_are_shared_too(tmp_path: Path, log: TopicLog) -> None:
    folder = Folder(
        tmp_path, rotate_on_offset_commit="true", partitioner_class="FieldPartitioner", partition_field_name="origin"
    )
    run = folder.task(log)
    drain(run, 60)
    run.stop()
    assert [path.partition("/t+all+")[0] for path in folder.contents()] == [
        "topics/t/origin=EWR",
        "topics/t/origin=JFK",
    ]
    assert folder.ids() == list(range(60))


def test_a_task_that_was_frozen_cannot_write_behind_its_successor(tmp_path: Path, log: TopicLog) -> None:
    folder = Folder(tmp_path, rotate_on_offset_commit="true")
    frozen = folder.task(log)
    frozen.put(30)
    other = TopicLog([record(number) for number in range(60)])
    owner = folder.task(other)
    owner.put(45)
    owner.commit()
    before = folder.contents()
    assert len(folder.ids()) == 45
    frozen.commit()
    assert folder.contents() == before, "what it had is in files of another task"
    drain(owner)
    owner.stop()
    frozen.stop()
    assert folder.ids() == list(range(60))


def test_partitions_may_go_to_another_task_and_come_back(tmp_path: Path, log: TopicLog) -> None:
    folder = Folder(tmp_path, flush_size="25")
    run = folder.task(log)
    run.put(40)
    run.commit()
    run.close([TOPIC[1]])
    run.put(5)
    run.open([TOPIC[1]])
    drain(run)
    folder.props["rotate.on.offset.commit"] = "true"
    run.stop()
    rest = folder.task(log)
    drain(rest)
    rest.stop()
    assert folder.ids() == list(range(60))


def test_offsets_that_are_lost_double_nothing(tmp_path: Path, log: TopicLog) -> None:
    folder = Folder(tmp_path, rotate_on_offset_commit="true")
    run = folder.task(log)
    drain(run)
    run.stop()
    before = folder.contents()
    log.committed.clear()
    again = folder.task(log)
    drain(again)
    again.stop()
    assert folder.contents() == before
    assert log.committed == dict.fromkeys(TOPIC, 20)


def test_offsets_that_are_set_back_are_written_again_to_other_files(tmp_path: Path, log: TopicLog) -> None:
    folder = Folder(tmp_path, rotate_on_offset_commit="true")
    run = folder.task(log)
    drain(run)
    run.stop()
    before = folder.contents()
    config = FolderSinkConfig.parse(folder.props)
    assert FolderSinkConnector.alter_offsets(config, {TOPIC[0]: 15, TOPIC[1]: None})
    log.committed |= {TOPIC[0]: 15, TOPIC[1]: 0}
    again = folder.task(log)
    drain(again)
    again.stop()
    assert before.items() <= folder.contents().items()
    new = sorted(set(range(45, 60, 3)) | set(range(1, 60, 3)))
    assert folder.ids() == sorted([*range(60), *new])


def test_there_is_one_task(tmp_path: Path) -> None:
    props = {**Folder(tmp_path, flush_size="5").props, "tasks.max": "4"}
    assert len(FolderSinkConnector(FolderSinkConfig.parse(props), None).task_configs(4)) == 1  # type: ignore[arg-type]
    assert [warning for warning in FolderSinkConfig.parse(props).warnings() if "one task" in warning]


@pytest.mark.parametrize(
    ("config_class", "props", "message"),
    [
        (FolderSinkConfig, {"file.name.template": "{{topic}}-{{partition}}-{{start_offset}}"}, "TOPIC\\+all\\+NUMBER"),
        (S3SinkConfig, {"s3.bucket.name": "b", "s3.region": "eu-west-1", "s3.object.tagging": "true"}, "no tags"),
    ],
)
def test_what_files_of_several_partitions_cannot_have_is_refused(
    tmp_path: Path, config_class: Any, props: dict[str, str], message: str
) -> None:
    given = {**Folder(tmp_path, flush_size="5").props, **props}
    if config_class is S3SinkConfig:
        del given["store.url"]
    with pytest.raises(ConfigError, match=message):
        config_class.parse(given)


def test_whole_records_can_be_in_them(tmp_path: Path, log: TopicLog) -> None:
    """Aiven's envelopes then have the folders of Confluent's sinks."""
    folder = Folder(
        tmp_path, format_output_type="jsonl", format_output_fields="key,value,offset", rotate_on_offset_commit="true"
    )
    del folder.props["format.class"]
    run = folder.task(log)
    drain(run, 60)
    run.stop()
    (file,) = (tmp_path / "topics").rglob("t+all+*")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted((int(line["key"]), line["offset"]) for line in lines) == [(at, at // PARTITIONS) for at in range(60)]


def test_their_names_are_read_back_without_a_partition() -> None:
    names = RestoredNames("topics", "+", "/", "tombstone")
    values = names.parse("topics/t/origin=EWR/t+all+0000000020-0a1b2c3d.json")
    keys = names.parse("topics/t/origin=EWR/t+all+0000000020-0a1b2c3d.keys.json")
    assert values is not None
    assert keys is not None
    assert (values.topic, values.partition, values.part, keys.part) == ("t", None, "values", "keys")
    assert values.stem == keys.stem
