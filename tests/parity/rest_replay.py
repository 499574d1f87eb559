"""Calls that were recorded of Kafka Connect 4.3.1, made again to a worker, and what is expected of its answers."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
import requests
from rest_differences import EXTRA_GROUPS, EXTRA_KEYS, Difference

from connect.internals.plugins import PluginRegistry
from equipment.brokers.topics import create_topic, produce
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

__all__ = ["JAVA", "Answer", "Call", "Replay", "calls", "distributed_worker", "prepare"]

_SKIPPED = ("version", "metrics", "last_metrics", "waiting", "skipped", "changed_at", "started_at")

RECORDED: Final = Path(__file__).parent / "data" / "rest"
JAVA: Final = "org.apache.kafka."
NOT_REPEATABLE: Final = ("parallel_8_creates", "cleanup", "rb_status_immediately")
"""Calls made at the same time, what removes the connectors these made, and what was asked in the moment after."""

FILE_CONNECTOR: Final = "FileStream"
"""What the names of Kafka's file connectors have in common."""

RUNTIME_LOGGER: Final = f"{JAVA}connect.runtime"
"""A logger below which those of Java's own runtime are, as far as they have logged."""

JAVA_VERSION: Final = "4.3.1"
OUR_VERSION: Final = metadata.version("sluice-connect")
"""What stands for Java's version wherever it is asked for or told: it is the version of all built-in plugins, too."""

PATIENCE: Final = 10.0


@dataclass(frozen=True)
class Answer:
    """What is compared of an answer."""

    status: int
    reason: str
    content_type: str | None
    body: Any


@dataclass(frozen=True)
class Call:
    """A recorded call with what is expected of us."""

    number: int
    name: str
    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None
    recorded: Answer
    difference: Difference | None

    @classmethod
    def of(cls, number: int, document: dict[str, Any], differences: Mapping[str, Difference]) -> Call:
        body = document["body"]
        text = body if isinstance(body, str) or body is None else json.dumps(body)
        query = f"?{document['query']}" if document["query"] else ""
        kind = document["request_content_type"]
        recorded = Answer(document["status"], document["reason"], document["content_type"], document["response"])
        headers = {"Content-Type": kind} if kind else {}
        if document["name"] == "root_accept_xml":
            headers["Accept"] = "application/xml"
        data = text.encode() if text is not None else None
        name, path = document["name"], document["path"] + query
        difference = differences.get(name) or differences.get(f"{number}-{name}")
        return cls(number, name, document["method"], path, headers, data, recorded, difference)


def calls(*files: str, differences: Mapping[str, Difference]) -> list[Call]:
    """The calls of these recordings, one after the other."""
    lines = [line for file in files for line in (RECORDED / file).read_text().splitlines()]
    documents = [json.loads(line.replace(JAVA_VERSION, OUR_VERSION)) for line in lines]
    repeatable = [document for document in documents if not document["name"].startswith(NOT_REPEATABLE)]
    return [Call.of(number, document, differences) for number, document in enumerate(repeatable)]


class Worker(Protocol):
    """A worker that calls are made to."""

    def url(self) -> str:
        """Where its REST API is."""


def prepare(bootstrap: str, data: Path) -> None:
    """Make the files and topics that the recorded calls work with."""
    data.mkdir()
    (data / "src.txt").write_text("".join(f"line {number}\n" for number in range(8)))
    (data / "src2.txt").write_text("".join(f"line {number}\n" for number in range(5)))
    create_topic(bootstrap, "truth-notjson")
    produce(bootstrap, "truth-notjson", [b"this is not JSON"])
    create_topic(bootstrap, "truth-a")


@contextmanager
def distributed_worker(folder: Path, data: Path, **props: str) -> Iterator[DistributedWorker]:
    """Run a worker for the recorded calls, on a broker of its own: others use the names of their topics as well."""
    with EmbeddedBroker(BrokerConfig(folder=folder / "broker", port=0)).lease() as broker:
        prepare(broker.bootstrap_servers, data)
        worker = DistributedWorker(
            folder / "worker",
            broker.bootstrap_servers,
            key_converter=f"{JAVA}connect.json.JsonConverter",
            value_converter=f"{JAVA}connect.json.JsonConverter",
            offset_flush_interval_ms="500",
            **props,
        ).start()
        try:
            wait_until("the worker answers", lambda: worker.get("health").status_code == HTTPStatus.OK, 60)
            yield worker
        finally:
            worker.close()


class Replay:
    """A worker that the calls are made to, and how what differs by place and time is told alike.

    With an ``engine`` each configuration of a file connector names it, which nothing but that configuration shows.
    """

    def __init__(self, worker: Worker, data: Path, engine: str | None = None, patience: float = PATIENCE) -> None:
        self._url = worker.url()
        self._data = data
        self._engine = engine
        self._patience = patience
        self._registry = PluginRegistry.discover()
        self._java = {
            entry.class_name: alias
            for entry in self._registry.entries()
            for alias in entry.aliases
            if alias.startswith(JAVA)
        }
        self._known = {(alias, entry.kind.value) for entry in self._registry.entries() for alias in entry.aliases}

    def check(self, calls: Sequence[Call], subtests: pytest.Subtests) -> None:
        """Make the calls one after the other, and compare each answer with what is expected.

        Each is a subtest of one test: they depend on each other, and no second process of a test run repeats them.
        """
        for call in calls:
            with subtests.test(f"{call.number}-{call.name}"):
                answer = self.make(call)
                assert self.told(call, answer) == self.expected(call)

    def make(self, call: Call) -> Answer:
        """Our answer to a call; where what is asked for takes a moment to come about, once it has."""
        self._settle(call)
        deadline = time.monotonic() + self._patience
        answer = self._once(call)
        while call.method == "GET" and not self.agree(call, answer) and time.monotonic() < deadline:
            time.sleep(0.05)
            answer = self._once(call)
        return answer

    def _settle(self, call: Call) -> None:
        """Wait for what the recorded worker had done before it answered the call before."""
        connector = call.path.split("/restart")[0].split("/tasks")[0] if "/restart" in call.path else None
        if connector is not None and "nobody" not in connector:
            wait_until(f"{connector} has restarted", lambda: "RESTARTING" not in self._text(f"{connector}/status"))
        if call.name == "pause_failed":
            # A task that is paused before it has started does not fail, in Java either.
            status = call.path.replace("/pause", "/status")
            wait_until("the task has failed again", lambda: '"FAILED"' in self._text(status))
        if call.name in ("topics_reset", "stop"):
            # A sink tells of its topic with the first records it puts: what is reset is what it told before.
            wait_until("the sink has committed", lambda: "kafka_offset" in self._text("/connectors/src-a/offsets"))

    def _text(self, path: str) -> str:
        return requests.get(self._url.rstrip("/") + path, timeout=60).text

    def agree(self, call: Call, answer: Answer) -> bool:
        """Whether an answer is what is expected."""
        return self.told(call, answer) == self.expected(call)

    def told(self, call: Call, answer: Answer) -> Answer:
        """Our answer; a message that only has to hold a text is that text, if it does."""
        text = call.difference.message if call.difference is not None else None
        if text is not None and isinstance(answer.body, dict) and text in answer.body.get("message", ""):
            return replace(answer, body={"error_code": answer.status, "message": text})
        return answer

    def expected(self, call: Call) -> Answer:
        """What was recorded, with the differences that are known of this call and of all."""
        status, reason, kind = call.recorded.status, call.recorded.reason, call.recorded.content_type
        body = self._alike(call.recorded.body)
        difference = call.difference
        if status >= 400:
            # TYPED: Java leaves the type of some errors out.
            kind = "application/json"
        if difference is not None:
            status = difference.status or status
            reason = reason if status == call.recorded.status else HTTPStatus(status).phrase
            kind = kind if difference.content_type is None else difference.content_type or None
            if difference.message is not None:
                body = {"error_code": status, "message": difference.message}
            if difference.adjust is not None:
                body = difference.adjust(copy.deepcopy(body))
        return Answer(status, reason, kind, body)

    def _once(self, call: Call) -> Answer:
        body = self._with_engine(call.body and call.body.replace(b"/data/", f"{self._data}/".encode()))
        request = requests.Request(call.method, self._url.rstrip("/") + call.path, headers=call.headers, data=body)
        prepared = request.prepare()
        if call.body is not None and not call.headers.get("Content-Type"):
            prepared.headers.pop("Content-Type", None)
        with requests.Session() as session:
            answer = session.send(prepared, timeout=30)
        text = answer.text.replace(str(self._data), "/data")
        if self._engine is not None:
            # What is asked for and told has our version, as the recorded calls have above.
            text = text.replace(JAVA_VERSION, OUR_VERSION)
        try:
            document = json.loads(text)
        except ValueError:
            document = text
        return Answer(answer.status_code, answer.reason, answer.headers.get("Content-Type"), self._alike(document))

    def _with_engine(self, body: bytes | None) -> bytes | None:
        if self._engine is None or body is None:
            return body
        try:
            document = json.loads(body)
            config = document.get("config", document)
            if FILE_CONNECTOR not in config["connector.class"]:
                return body
        except (ValueError, AttributeError, KeyError, TypeError):
            return body
        config["engine"] = self._engine
        return json.dumps(document).replace(OUR_VERSION, JAVA_VERSION).encode()

    def _alike(self, body: Any) -> Any:
        match body:
            case {"connector.class": _, "engine": self._engine}:
                return self._alike({key: value for key, value in body.items() if key != "engine"})
            case {"definition": definition, "value": value}:
                return {"definition": self._definition(definition), "value": self._value(value)}
            case {"name": str(), "default_value": _, "importance": _}:
                return self._definition(body)
            case {"groups": groups, "configs": configs}:
                shown = self._by_key(configs, lambda config: config["value"]["name"])
                return {
                    "name": body["name"],
                    "error_count": body["error_count"],
                    "groups": self._groups(groups),
                    "configs": shown,
                }
            case {"state": str(), "worker_id": _}:
                return {key: self._state(key, value) for key, value in body.items() if key not in _SKIPPED}
            case {"kafka_cluster_id": _}:
                return dict.fromkeys(body, "any")
            case {"offsets": list(offsets)}:
                return {"offsets": sorted((self._alike(offset) for offset in offsets), key=json.dumps)}
            case {"kafka_offset": int(offset)}:
                return {"kafka_offset": offset if offset < 4 else "many"}
            case {"position": int()}:
                return {"position": "some"}
            case {"root": {"level": _}}:
                return {"root": self._alike(body["root"])}
            case {"last_modified": int()}:
                return body | {"last_modified": "some time"}
            case {"class": str(), "type": str()}:
                return self._java.get(body["class"], body["class"]), body["type"], body.get("version")
            case dict():
                return {key: self._alike(value) for key, value in body.items()}
            case list():
                return self._alike_list(body)
            case str() if body.endswith("OPTIONS") or body.startswith(("GET, ", "HEAD, ")):
                return sorted(body.split(", "))
        return body

    def _alike_list(self, body: list[Any]) -> Any:
        if body and isinstance(body[0], dict) and "default_value" in body[0]:
            return self._by_key([self._definition(key) for key in body], lambda key: key["name"])
        if body and isinstance(body[0], dict) and "class" in body[0]:
            plugins = [self._alike(plugin) for plugin in body]
            return sorted({(kind, name, version) for name, kind, version in plugins if self._is_known(name, kind)})
        if "a.b" in body:
            # Which other loggers there are, and so change, is the libraries' matter.
            return ["a.b"]
        if self._engine is not None and RUNTIME_LOGGER in body:
            return [RUNTIME_LOGGER]
        return [self._alike(item) for item in body]

    def _is_known(self, name: str, kind: str) -> bool:
        return (name, "connector" if kind in ("source", "sink") else kind) in self._known and name.startswith(JAVA)

    def _by_key(self, items: list[Any], name_of: Any) -> dict[str, Any]:
        named = {name_of(item): self._alike(item) for item in items}
        return {name: item for name, item in named.items() if name not in EXTRA_KEYS}

    def _groups(self, groups: list[str]) -> list[str]:
        return [group for group in groups if group not in EXTRA_GROUPS]

    def _definition(self, definition: dict[str, Any]) -> dict[str, Any]:
        left_out = ("documentation", "order_in_group")
        kept = {key: value for key, value in definition.items() if key not in left_out}
        return kept | {"default_value": self._java.get(str(kept["default_value"]), kept["default_value"])}

    def _value(self, value: dict[str, Any]) -> dict[str, Any]:
        left_out = () if value["name"].endswith("plugin.version") else ("recommended_values",)
        kept = {key: item for key, item in value.items() if key not in left_out}
        return kept | {"value": self._java.get(str(kept["value"]), kept["value"])}

    def _state(self, key: str, value: Any) -> Any:
        return {"worker_id": "worker", "trace": "a trace"}.get(key, value)
