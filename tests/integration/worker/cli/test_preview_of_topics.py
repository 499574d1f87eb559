"""``sluice run --preview`` where a broker is needed: sinks, and sources whose offsets are on a topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from equipment.brokers.topics import admin_client, committed, create_topic, ordered_producer, produce, read_topic
from equipment.workers.small_spark import sink_props
from equipment.workers.standalone import StandaloneWorker
from worker.cli.main import main

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("log_as_before")]


def properties(place: Path, **props: object) -> Path:
    place.write_text("".join(f"{key.replace('__', '.')}={value}\n" for key, value in props.items()))
    return place


def preview(worker: Path, connector: Path, *arguments: object, records: int = 10) -> Result:
    given = ["run", "--preview", records, "--worker", worker, connector, "--timeout", 60, "-o", "json", *arguments]
    return CliRunner().invoke(main, list(map(str, given)))


def standalone_worker(place: Path, bootstrap: str) -> Path:
    return properties(
        place / "worker.properties",
        bootstrap__servers=bootstrap,
        key__converter="StringConverter",
        value__converter="JsonConverter",
        value__converter__schemas__enable="false",
        offset__storage__file__filename=place / "offsets",
    )


def sink(place: Path, topics: str, **props: object) -> Path:
    config = {"name": topics, "connector__class": "FileStreamSink", "file": place / "out.txt", "topics": topics}
    return properties(place / "sink.properties", **(config | props))


def topics_of(bootstrap: str) -> set[str]:
    client = admin_client(bootstrap)
    return set(client.list_topics(timeout=30).topics)


def groups_of(bootstrap: str) -> set[str]:
    # A client that is collected while it is asked never answers.
    client = admin_client(bootstrap)
    return {group.group_id for group in client.list_consumer_groups(request_timeout=30).result().valid}


def last_values(document: dict[str, Any]) -> list[Any]:
    return [record["steps"][-1]["record"]["value"] for record in document["records"]]


def test_a_sink_is_shown_what_it_would_be_given(bootstrap: str, topic: str, tmp_path: Path) -> None:
    create_topic(bootstrap, topic, partitions=2)
    produce(bootstrap, topic, [b'{"id": 1}', b"no json", b'{"id": 3}'], partition=1)
    route = {"transforms": "r", "transforms__r__type": "RegexRouter", "transforms__r__regex": ".*"}
    connector = sink(tmp_path, topic, **route, transforms__r__replacement="elsewhere")
    worker = standalone_worker(tmp_path, bootstrap)
    done = preview(worker, connector)
    document = json.loads(done.stdout)
    assert done.exit_code == 1, "the second record would fail the task"
    assert document["end"] == "that is all there is"
    one, two, three = document["records"]
    assert one["origin"] == {"topic": topic, "partition": 1, "offset": 0}
    assert [step["step"] for step in one["steps"]] == ["consumed", "converted", "r", "put"]
    assert one["steps"][0]["record"]["value"] == '{"id": 1}'
    assert one["steps"][1]["record"]["value"] == {"id": 1}
    assert one["steps"][3]["record"]["topic"] == "elsewhere"
    assert [step["step"] for step in two["steps"]] == ["consumed", "converted"]
    assert two["steps"][1]["outcome"] == "the task fails (errors.tolerance=none)"
    assert three["steps"][-1]["record"]["value"] == {"id": 3}
    assert not (tmp_path / "out.txt").exists(), "the task is not started"
    assert f"connect-{topic}" not in groups_of(bootstrap)
    assert committed(bootstrap, f"connect-{topic}", topic, 2) == [-1001, -1001]


def test_a_sink_is_shown_what_its_group_has_not_consumed(
    standalone: Any, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"1", b"2"])
    running: StandaloneWorker = standalone()
    running.connector(
        topic, connector_class="FileStreamSink", file=str(tmp_path / "out.txt"), topics=topic, run_until="drained"
    )
    assert running.run() == 0, running.log()
    worker, connector = standalone_worker(tmp_path, bootstrap), sink(tmp_path, topic)
    nothing = json.loads(preview(worker, connector).stdout)
    assert nothing["records"] == []
    assert nothing["end"] == (
        "its group has consumed all there is; a preview from the beginning shows what is in the topics"
    )
    produce(bootstrap, topic, [b"3"])
    assert last_values(json.loads(preview(worker, connector).stdout)) == [3]
    assert last_values(json.loads(preview(worker, connector, "--from", "beginning").stdout)) == [1, 2, 3]
    assert last_values(json.loads(preview(worker, connector, "--from", "beginning", records=1).stdout)) == [1]
    assert committed(bootstrap, f"connect-{topic}", topic) == [2]


def test_topics_that_are_missing_are_not_made(bootstrap: str, topic: str, tmp_path: Path) -> None:
    worker = standalone_worker(tmp_path, bootstrap)
    done = preview(worker, sink(tmp_path, topic))
    assert json.loads(done.stdout)["end"] == "none of its topics exists"
    (tmp_path / "in.txt").write_text("1\n")
    source = properties(
        tmp_path / "source.properties",
        name=topic,
        connector__class="FileStreamSource",
        topic=topic,
        file=tmp_path / "in.txt",
    )
    assert last_values(json.loads(preview(worker, source, records=1).stdout)) == ['"1"']
    assert topic not in topics_of(bootstrap)


def test_the_offsets_of_a_cluster_are_read_from_its_topic(bootstrap: str, topic: str, tmp_path: Path) -> None:
    file, offsets = tmp_path / "in.txt", f"{topic}-offsets"
    file.write_text("1\n2\n3\n")
    worker = properties(
        tmp_path / "worker.properties",
        bootstrap__servers=bootstrap,
        key__converter="StringConverter",
        value__converter="JsonConverter",
        value__converter__schemas__enable="false",
        group__id=f"{topic}-group",
        offset__storage__topic=offsets,
        config__storage__topic=f"{topic}-configs",
        status__storage__topic=f"{topic}-status",
    )
    source = properties(
        tmp_path / "source.properties", name=topic, connector__class="FileStreamSource", topic=topic, file=file
    )
    assert last_values(json.loads(preview(worker, source, records=3).stdout)) == ['"1"', '"2"', '"3"']
    assert not [name for name in topics_of(bootstrap) if name.startswith(topic)]
    create_topic(bootstrap, offsets, **{"cleanup.policy": "compact"})
    produce_keyed(bootstrap, offsets, json.dumps([topic, {"filename": str(file)}]), '{"position": 2}')
    assert last_values(json.loads(preview(worker, source, records=2).stdout)) == ['"2"', '"3"']
    assert len(read_topic(bootstrap, offsets)) == 1
    assert [name for name in topics_of(bootstrap) if name.startswith(topic)] == [offsets]


def produce_keyed(bootstrap: str, topic: str, key: str, value: str) -> None:
    producer = ordered_producer(bootstrap)
    producer.produce(topic, value.encode(), key.replace(" ", "").encode())
    assert producer.flush(30) == 0


@pytest.mark.thorough
@pytest.mark.spark
def test_of_a_spark_sink_the_table_is_shown_as_the_next_load_would_write_it(
    bootstrap: str, topic: str, tmp_path: Path
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [json.dumps({"id": n, "origin": "ewr"}).encode() for n in range(5)])
    worker = standalone_worker(tmp_path, bootstrap)
    config = {
        **sink_props({"store.url": str(tmp_path / "lake")}),
        "name": topic,
        "connector.class": "SparkSink",
        "topics": topic,
    }
    config |= {"transforms": "r", "transforms.r.type": "ReplaceField$Value", "transforms.r.renames": "id:number"}
    config |= {"sql": "SELECT number, upper(origin) AS origin FROM records WHERE number > 0"}
    connector = properties(tmp_path / "sink.properties", **config)
    worker.write_text(worker.read_text() + "connector.spark.config.override.policy=All\n")

    result = preview(worker, connector, "--timeout", 300, records=3)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert len(document["records"]) == 3
    (table,) = document["tables"]
    assert table == {
        "table": topic,
        "place": f"{tmp_path}/lake/topics/{topic}",
        "folders": [],
        "columns": [{"name": "number", "type": "int64?"}, {"name": "origin", "type": "string?"}],
        "rows": [{"number": 1, "origin": "EWR"}, {"number": 2, "origin": "EWR"}],
    }
    assert not (tmp_path / "lake").exists()
    assert f"connect-{topic}" not in groups_of(bootstrap)
