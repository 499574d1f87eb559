"""What the worker is told of a task's Kafka clients."""

from __future__ import annotations

from pathlib import Path

from equipment.waiting import wait_until
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.clients import Clients
from worker.security.redaction import Redaction


def test_a_secret_in_the_name_of_a_client_is_hidden(tmp_path: Path) -> None:
    """The name is a label of metrics."""
    (tmp_path / "name").write_text("zq-secret")
    worker = {
        "bootstrap.servers": "localhost:1",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        "config.providers": "dir",
        "config.providers.dir.class": "DirectoryConfigProvider",
    }
    sink = {
        "name": "c",
        "connector.class": "FileStreamSink",
        "topics": "t",
        "consumer.override.client.id": f"c-${{dir:{tmp_path}:name}}",
        "consumer.override.statistics.interval.ms": "50",
    }
    told: list[messages.ClientMetrics] = []
    consumer = Clients(Assembly.resolve(worker, sink, Redaction()), 0, told.append).sink_consumer()
    wait_until("the client has told", lambda: told or consumer.poll(0.05))
    consumer.close()
    assert {report.client_id for report in told} == {"c-[hidden]"}
