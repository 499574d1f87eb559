"""What is measured of Java's connectors: by the runtime, by their Kafka clients, and by their own MBeans."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from equipment.brokers.topics import create_topic
from equipment.scrapes import Scrape
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.java_plugins import compiled_plugin, jvm_of, jvms

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(590)]

PATIENCE = 180.0
STRING = "org.apache.kafka.connect.storage.StringConverter"


def test_java_tasks_are_measured_under_the_names_of_others(bootstrap: str, tmp_path: Path, topic: str) -> None:
    plugins = compiled_plugin(tmp_path / "plugins", tmp_path / "work", tally="acme")
    worker = DistributedWorker(
        tmp_path / "worker",
        bootstrap,
        plugin_path=str(plugins),
        offset_flush_interval_ms="200",
        java_plugins_jvm_options="-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    ).start()
    dotted, source, sink = f"{topic}.dotted", f"{topic}-source", f"{topic}-sink"
    create_topic(bootstrap, dotted)

    def put(name: str, **props: str) -> None:
        config = {"key.converter": STRING, **{key.replace("_", "."): value for key, value in props.items()}}
        answer = requests.put(f"{worker.url()}connectors/{name}/config", json=config, timeout=PATIENCE)
        assert answer.ok, answer.text

    def scrape() -> Scrape:
        return Scrape(worker.get("metrics").text)

    try:
        put(source, connector_class="acme.CountingSource", topic=dotted, count="30", secret="XxHiddenxX")
        put(sink, connector_class="acme.CollectingSink", topics=dotted, file=str(tmp_path / "out"))
        producer = {"clientid": f"connector-producer-{source}-0"}
        consumer = {"clientid": f"connector-consumer-{sink}-0"}

        at = {"connector": sink, "task": "0"}
        fetched = "kafka_consumer_fetch_manager_records"

        def seen(name: str, *values: float, **labels: str) -> None:
            wait_until(f"{name} is {values}", lambda: scrape().named(name, **labels) == list(values), PATIENCE)

        seen("kafka_producer_record_send_total", 30.0, **producer)
        seen(f"{fetched}_consumed_total", 30.0, **consumer)
        seen("kafka_connect_sink_task_sink_record_read_total", 30.0, **at)
        seen(f"{fetched}_lag", 0.0, **consumer, topic=dotted, partition="0")
        seen("sluice_sink_record_lag", 0.0, **at)
        found = scrape()
        assert found.labels(f"{fetched}_lag", **consumer) == [{**consumer, "topic": dotted, "partition": "0"}]
        assert found.named("kafka_consumer_connection_count", **consumer)[0] > 0
        own = {"connector": source, "task": "0"}
        wait_until("its own are", lambda: scrape().named("sluice_plugin_counted_so_far", **own) == [30.0], PATIENCE)
        assert scrape().labels("sluice_plugin_counted_so_far") == [{**own, "type": "meter"}]
        text = worker.get("metrics").text + worker.get(f"connectors/{source}/measurements").text
        assert "XxHiddenxX" not in text, "neither a text that an MBean has nor a configuration"
        lag = worker.get(f"connectors/{sink}/lag").json()
        assert (lag["lag"], lag["tasks"][0]["lag"], lag["partitions"][0]["topic"]) == (0, 0, dotted)
        # The memory of the JVM counts with that of its process.
        jvm = jvm_of(worker, source)
        resident = int(Path(f"/proc/{jvm}/statm").read_text().split()[1]) * 4096
        assert scrape().named("sluice_process_resident_memory_bytes", task="shared")[0] > resident * 0.9
        processes = worker.get("cluster").json()["processes"]
        assert max(each["resident_bytes"] for each in processes) > resident * 0.9
        # Once nothing runs in it, a JVM ends, and so does the one that has validated.
        for name in (source, sink):
            assert requests.put(f"{worker.url()}connectors/{name}/stop", timeout=PATIENCE).ok
        wait_until("no JVM is left", lambda: not jvms(worker.pid), PATIENCE)
        assert not scrape().labels("sluice_process_resident_memory_bytes")
    finally:
        assert worker.terminate() == 0


def test_a_process_whose_jvm_exceeds_the_limit_is_killed_and_says_so(
    bootstrap: str, tmp_path: Path, topic: str
) -> None:
    plugins = compiled_plugin(tmp_path / "plugins", tmp_path / "work", tally="acme")
    limits = {"task_isolation": "process", "process_memory_max_bytes": "80000000"}
    worker = DistributedWorker(tmp_path / "worker", bootstrap, plugin_path=str(plugins), **limits).start()
    try:
        config = {"connector.class": "acme.CountingSource", "topic": topic}
        answer = requests.put(f"{worker.url()}connectors/{topic}/config", json=config, timeout=PATIENCE)
        assert answer.ok, answer.text

        def trace() -> str:
            status = worker.status(topic)
            return str(status.get("connector", {}).get("trace", ""))

        wait_until("it is killed", lambda: "more than process.memory.max.bytes=80000000" in trace(), PATIENCE)
    finally:
        assert worker.terminate() == 0
