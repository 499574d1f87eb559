"""A worker of its own broker with six planted failures: five connectors, each with one, and a broker to be killed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import requests

from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.brokers.topics import admin_client, create_topic, produce
from equipment.fakes.http_api import Answer, serving_api
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

__all__ = ["BROKER", "CAUSES", "PASSWORD", "PlantedFailures"]

PASSWORD: Final = "wrong-one"
CAUSES: Final = {
    "full-disk": "No space left on device",
    "bad-record": "not valid JSON",
    "wrong-password": "does not accept these credentials",
    "deleted-topic": "deleted-topic does not exist",
    "hung-plugin": "misbehaving.py:",
}
"""What an operator has to read of each connector, which is named after its failure."""
BROKER: Final = "No broker of bootstrap.servers answers since"
"""What an operator has to read once the broker is gone."""

_PLUGINS: Final = Path(__file__).parents[1] / "misbehaving_plugins"
_TOPICS: Final = ("full-disk", "bad-record", "wrong-password", "deleted-topic")


@dataclass(frozen=True)
class PlantedFailures:
    """The worker, and its broker."""

    worker: StandaloneWorker
    broker: ProxiedBroker

    @classmethod
    @contextmanager
    def planted(cls, folder: Path, jars: Sequence[Path]) -> Iterator[PlantedFailures]:
        """The five connectors, not yet in the state in which their failure shows."""
        with ProxiedBroker.running(folder / "broker", jars, 1) as broker, serving_api() as api:
            api.route("/", Answer(401))
            for topic in _TOPICS:
                create_topic(broker.bootstrap, topic)
                produce(broker.bootstrap, topic, [b"{oops"])
            properties = {"plugin_path": str(_PLUGINS), "task_hang_warning_ms": "1000"}
            worker = StandaloneWorker(folder / "worker", broker.bootstrap, **properties)
            try:
                planted = cls(worker.start(), broker)
                for name, config in _configs(folder, api.url).items():
                    planted._create(name, config)
                planted._delete_topic("deleted-topic")
                yield planted
            finally:
                worker.close()

    def _create(self, name: str, config: dict[str, str]) -> None:
        answer = requests.put(f"{self.worker.url()}connectors/{name}/config", json=config, timeout=90)
        assert answer.ok, answer.text

    def _delete_topic(self, topic: str) -> None:
        """Delete a topic from which a sink has consumed."""

        def consumed() -> bool:
            tasks: list[dict[str, Any]] = self.worker.status(topic)["tasks"]
            return any(task.get("metrics", {}).get("sink-record-send-total") for task in tasks)

        wait_until(f"{topic} is consumed", consumed, 90)
        admin = admin_client(self.broker.bootstrap)
        admin.delete_topics([topic])[topic].result(30)


def _configs(folder: Path, api: str) -> dict[str, dict[str, str]]:
    sink = {"connector.class": "FileStreamSink", "consumer.override.allow.auto.create.topics": "false"}
    strict = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    http = {"http.auth.type": "BASIC", "http.auth.user": "ann", "http.auth.password": PASSWORD, "max.retries": "0"}
    return {
        "full-disk": {**sink, "file": "/dev/full", "topics": "full-disk"},
        "bad-record": {**sink, **strict, "file": str(folder / "bad"), "topics": "bad-record"},
        "wrong-password": {"connector.class": "HttpSink", "topics": "wrong-password", "http.url": f"{api}/", **http},
        "deleted-topic": {**sink, "file": str(folder / "deleted"), "topics": "deleted-topic"},
        "hung-plugin": {"connector.class": "misbehaving.MisbehavingSourceConnector", "does": "hangs"},
    }
