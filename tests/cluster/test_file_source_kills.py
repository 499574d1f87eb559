"""Workers that read files and objects, or write files to a server, and are killed: nothing is lost.

``make object-source-kills KILLS=30`` kills each as often, at random moments; ``make test`` one of them once.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pytest

from equipment.brokers.topics import create_topic, ordered_producer, read_topic
from equipment.servers.file_servers import running_asyncssh
from equipment.servers.s3 import running_moto
from equipment.stores.object_targets import object_target
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(1800)]

KILLS: Final = int(os.environ.get("SLUICE_FILE_KILLS", "1"))
FILES: Final = 20 + 2 * KILLS
ROWS: Final = 200
SOURCES: Final = {
    "s3": "io.confluent.connect.s3.source.S3SourceConnector",
    "versitygw": "S3Source",
    "gcs": "GcsSource",
    "azure": "AzureBlobSource",
}
MORE_STORES: Final = ("versitygw", "gcs", "azure")
MakeWorker = Callable[..., StandaloneWorker]


def lines(number: int) -> str:
    return "".join(f"{number * ROWS + row}\n" for row in range(ROWS))


def run_with_kills(worker: StandaloneWorker, has_begun: Callable[[], bool]) -> None:
    """Kill the worker at random moments after it has begun, and let it come to its end."""
    chance = random.Random(os.environ.get("SLUICE_FILE_SEED", "files"))
    for _ in range(KILLS):
        worker.start()
        wait_until("work is done", has_begun, seconds=120)
        time.sleep(chance.uniform(0, 0.6))
        worker.kill()
    assert worker.run(seconds=600) == 0, worker.log()


def assert_all_are_there(bootstrap: str, topic: str) -> None:
    found = Counter(int(message.value() or b"") for message in read_topic(bootstrap, topic))
    assert sorted(found) == list(range(FILES * ROWS))
    print(f"{topic}: {FILES * ROWS} records, {found.total() - FILES * ROWS} of them again after {KILLS} kills")


@pytest.mark.parametrize("kind", ["s3", *(pytest.param(kind, marks=pytest.mark.thorough) for kind in MORE_STORES)])
def test_objects_are_removed_only_when_their_records_are_there(
    standalone: MakeWorker, topic: str, bootstrap: str, tmp_path: Path, kind: str
) -> None:
    with object_target(kind, tmp_path) as target:
        store = target.store
        for number in range(FILES):
            store.create(f"in/{number:04}.txt", lines(number).encode())
        worker = standalone()
        worker.connector(
            "objects",
            connector_class=SOURCES[kind],
            prefix="in/",
            topic=topic,
            max_poll_records="50",
            finished_action="delete",
            poll_interval_ms="100",
            run_until="drained",
            **{key.replace(".", "_"): value for key, value in target.props.items() if "size" not in key},
        )
        offsets = worker.folder / "offsets"
        run_with_kills(worker, lambda: offsets.exists() and offsets.stat().st_size > 0)
        assert list(store.below("in")) == []
    assert_all_are_there(bootstrap, topic)


@pytest.mark.thorough
def test_messages_about_objects_are_deleted_only_when_their_records_are_there(
    standalone: MakeWorker, topic: str, bootstrap: str
) -> None:
    """Most objects are told after the worker has listed the bucket, several times each and out of order."""
    with running_moto() as server:
        bucket, client, queues = server.make_bucket(), server.client(), server.client("sqs")
        url = queues.create_queue(QueueName=bucket)["QueueUrl"]
        worker = standalone()
        worker.connector(
            "objects",
            connector_class="S3Source",
            s3_bucket_name=bucket,
            prefix="in/",
            topic=topic,
            max_poll_records="50",
            sqs_url=url,
            sqs_visibility_timeout_seconds="2",
            run_until="drained",
            **{key.replace(".", "_"): value for key, value in server.props.items()},
        )
        told = iter(range(FILES))

        def tell(count: int) -> None:
            keys = [f"in/{number:04}.txt" for number in islice(told, count)]
            for key in keys:
                client.put_object(Bucket=bucket, Key=key, Body=lines(int(key[3:7])).encode())
            for key in [*reversed(keys), *keys]:
                about = {"bucket": {"name": bucket}, "object": {"key": key}}
                body = json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": about}]})
                queues.send_message(QueueUrl=url, MessageBody=body)

        def left() -> int:
            names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
            found = queues.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
            return sum(int(found[name]) for name in names)

        offsets = worker.folder / "offsets"
        chance = random.Random(os.environ.get("SLUICE_FILE_SEED", "queue"))
        tell(4)

        def stored_at() -> int:
            return offsets.stat().st_mtime_ns if offsets.exists() else 0

        for _ in range(KILLS):
            tell(1)
            before = stored_at()
            worker.start()
            wait_until("offsets are stored", lambda before=before: stored_at() > before, seconds=120)
            tell(1)
            time.sleep(chance.uniform(0, 0.6))
            worker.kill()
        tell(FILES)
        assert worker.run(seconds=600) == 0, worker.log()
        assert_all_are_there(bootstrap, topic)
        # Those that the killed ones had come again, and tell of nothing new.
        deadline = time.monotonic() + 300
        while left() and time.monotonic() < deadline:
            assert worker.run(seconds=600) == 0, worker.log()
        assert left() == 0
    assert_all_are_there(bootstrap, topic)


@pytest.mark.thorough
def test_files_on_a_server_are_moved_only_when_their_records_are_there(
    standalone: MakeWorker, topic: str, bootstrap: str, tmp_path: Path
) -> None:
    """Files with a bad row go elsewhere, after the rows before it."""
    folder = tmp_path / "files"
    for name in ("in", "done", "bad"):
        (folder / name).mkdir(parents=True)
    for number in range(FILES):
        rows = "".join(f'{{"n": {line}}}\n' for line in lines(number).split())
        (folder / "in" / f"{number:04}.json").write_text(rows + ("no json\n" if number % 5 == 0 else ""))
    with running_asyncssh(folder) as server:
        login = server.server.props
        worker = standalone(value_converter="JsonConverter", **{"value.converter.schemas.enable": "false"})
        worker.connector(
            "files",
            connector_class="io.confluent.connect.sftp.SftpJsonSourceConnector",
            kafka_topic=topic,
            sftp_host="127.0.0.1",
            sftp_port=str(server.port),
            sftp_username=login["file.system.username"],
            sftp_password=login["file.system.password"],
            sftp_host_key=login["sftp.host.key"],
            input_path="/in",
            finished_path="/done",
            error_path="/bad",
            input_file_pattern=r".*\.json",
            behavior_on_error="LOG",
            schema_generation_enabled="true",
            batch_size="50",
            empty_poll_wait_ms="50",
            run_until="drained",
        )
        offsets = worker.folder / "offsets"
        run_with_kills(worker, lambda: offsets.exists() and offsets.stat().st_size > 0)
    assert list((folder / "in").iterdir()) == []
    assert [len(list((folder / name).iterdir())) for name in ("bad", "done")] == [
        -(-FILES // 5),
        FILES - -(-FILES // 5),
    ]
    found = Counter(int(json.loads(message.value() or b"")["n"]) for message in read_topic(bootstrap, topic))
    assert sorted(found) == list(range(FILES * ROWS))
    print(f"{topic}: {found.total() - FILES * ROWS} records again after {KILLS} kills")


@pytest.mark.thorough
def test_each_record_is_in_one_file_on_a_server(
    standalone: MakeWorker, topic: str, bootstrap: str, tmp_path: Path
) -> None:
    """Files end by the clock, so that other records share a file after each kill."""
    create_topic(bootstrap, topic, 2)
    producer: Any = ordered_producer(bootstrap)
    for number in range(FILES * ROWS):
        producer.produce(topic, str(number).encode(), partition=number % 2)
        producer.poll(0)
    producer.flush()
    folder = tmp_path / "files"
    folder.mkdir()
    with running_asyncssh(folder) as server:
        worker = standalone()
        worker.connector(
            "files",
            connector_class="DirectorySink",
            topics=topic,
            path=f"{server.server.url}out",
            format="text",
            flush_size="300",
            rotate_interval_ms="15",
            run_until="drained",
            **{key.replace(".", "_"): value for key, value in server.server.props.items()},
        )
        run_with_kills(worker, lambda: any((folder / "out").rglob("*.txt")))
    texts = [
        line for path in folder.rglob("*.txt") if not path.name.startswith(".") for line in path.read_text().split()
    ]
    assert Counter(map(int, texts)) == Counter(range(FILES * ROWS))
