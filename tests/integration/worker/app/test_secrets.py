"""Secrets stay where they are (invariant I8): plugins raise errors with all that they know, wherever they can."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

import equipment
from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.proofs import thorough
from equipment.waiting import wait_until
from equipment.workers.standalone import PATIENT, StandaloneWorker

pytestmark = pytest.mark.integration

PLUGINS = Path(equipment.__file__).parent / "leaking_plugins"
_CODE = "zq"
# What each is made of, so that a part shows, too.
SECRETS = {
    "own": f"{_CODE}own p&w\"'\\ü/+",
    "converter": f"{_CODE}converter p&w",
    "transformation": f"{_CODE}transformation p&w",
    "predicate": f"{_CODE}predicate p&w",
    "client": f"{_CODE}client-p&w",
    "file": f"{_CODE}file p&w",
    "lines": f"{_CODE}first line\n  {_CODE}second line\n{_CODE}third line\n",
}
STAGES = ["check", "connector", "poll", "convert", "log", *thorough("validate", "task", "apply", "test")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where secrets are in files."""
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "file").write_text(SECRETS["file"])
    (folder / "lines").write_text(SECRETS["lines"])
    return folder


@pytest.fixture(scope="module")
def worker(folder: Path, tmp_path_factory: pytest.TempPathFactory, bootstrap: str) -> Iterator[StandaloneWorker]:
    place = tmp_path_factory.mktemp("worker") / "standalone"
    made = StandaloneWorker(
        place,
        bootstrap,
        audit_file=str(place / "audit.json"),
        plugin_path=str(PLUGINS),
        config_providers="dir",
        config_providers_dir_class="DirectoryConfigProvider",
        config_providers_dir_param_allowed_paths=str(folder),
        **PATIENT,
    )
    try:
        yield made.start()
    finally:
        made.close()


def config_of(folder: Path, kind: str, stage: str, **more: str) -> dict[str, str]:
    """A connector with a secret in every place that can hold one."""
    return {
        "connector.class": f"Leaking{kind}",
        "leaks.in": stage,
        "own.password": SECRETS["own"],
        "any.key": f"before ${{dir:{folder}:file}} after",
        "another.key": f"${{dir:{folder}:lines}}",
        "value.converter": "Leaking",
        "value.converter.leaks.in": stage,
        "value.converter.own.password": SECRETS["converter"],
        "value.converter.any.key": f"${{dir:{folder}:file}}",
        "transforms": "a,b",
        "transforms.a.type": "LeakingTransformation",
        "transforms.a.leaks.in": stage,
        "transforms.a.own.password": SECRETS["transformation"],
        "transforms.b.type": "LeakingTransformation",
        "transforms.b.predicate": "p",
        "predicates": "p",
        "predicates.p.type": "LeakingPredicate",
        "predicates.p.leaks.in": stage,
        "predicates.p.own.password": SECRETS["predicate"],
        "producer.override.ssl.key.password": SECRETS["client"],
        "consumer.override.ssl.key.password": SECRETS["client"],
        **more,
    }


def hold_no_secret(*texts: str) -> None:
    """Nothing of any secret shows, in no form."""
    for text in texts:
        for form in (text, urllib.parse.unquote_plus(text)):
            assert _CODE not in form, form[max(0, form.index(_CODE) - 300) : form.index(_CODE) + 100]


@pytest.mark.parametrize("stage", STAGES)
def test_a_source_that_tells_all_tells_no_secret(
    worker: StandaloneWorker, topic: str, folder: Path, stage: str
) -> None:
    config = config_of(folder, "Source", stage, name=f"teller-{stage}", topic=topic)
    url = worker.url()
    validated = requests.put(f"{url}connector-plugins/LeakingSource/config/validate", json=config, timeout=60)
    created = requests.post(f"{url}connectors", json={"name": f"teller-{stage}", "config": config}, timeout=60)
    answers = [created.text] if created.status_code >= 400 else []
    if stage in ("check", "validate"):
        assert created.status_code >= 400
        assert "leaked" in created.text
    else:
        assert created.status_code == 201, created.text
        answers.append(json.dumps(wait_until("it has told", lambda: told(worker, stage, f"teller-{stage}"))))
        altered = requests.patch(
            f"{url}connectors/teller-{stage}/offsets", json={"offsets": [{"partition": {}, "offset": {}}]}, timeout=60
        )
        answers.append(altered.text)
        answers += everywhere(worker, f"teller-{stage}")
    hold_no_secret(worker.log(), *answers, validated.text)


@pytest.mark.parametrize("stage", ["convert", "report", "put", *thorough("apply", "test")])
def test_the_dead_letters_of_a_sink_that_tells_all_tell_no_secret(
    worker: StandaloneWorker, topic: str, folder: Path, bootstrap: str, stage: str
) -> None:
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [b"a value"])
    queue = f"{topic}-dlq"
    config = config_of(
        folder,
        "Sink",
        stage,
        topics=topic,
        **{
            "errors.tolerance": "all",
            "errors.log.enable": "true",
            "errors.log.include.messages": "true",
            "errors.deadletterqueue.topic.name": queue,
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        },
    )
    url = worker.url()
    created = requests.post(f"{url}connectors", json={"name": f"sink-{topic}", "config": config}, timeout=60)
    assert created.status_code == 201, created.text
    if stage == "put":
        status = wait_until("it has told", lambda: told(worker, stage, f"sink-{topic}"))
        hold_no_secret(worker.log(), json.dumps(status), *everywhere(worker, f"sink-{topic}"))
        return
    (record,) = wait_until("it is in the queue", lambda: read_topic(bootstrap, queue))
    headers = {name: value.decode() for name, value in record.headers()}
    for name in ("message", "stacktrace"):
        assert "leaked" in headers[f"__connect.errors.exception.{name}"]
        assert "[hidden]" in headers[f"__connect.errors.exception.{name}"]
    listed = requests.get(f"{url}connectors/sink-{topic}/dlq", timeout=60)
    assert listed.ok, listed.text
    assert "leaked" in listed.text
    replayed = requests.post(f"{url}connectors/sink-{topic}/dlq/replay", json={"to": "task"}, timeout=60)
    shown = everywhere(worker, f"sink-{topic}", "dlq", "dlq/0:0")
    hold_no_secret(worker.log(), listed.text, replayed.text, *headers.values(), *shown)


def everywhere(worker: StandaloneWorker, name: str, *more: str) -> list[str]:
    """All that the worker tells of a connector besides its configuration as it was written: pages, numbers, audit."""
    url = worker.url()
    pages = ["", "/offsets", "/logs", "/config", "/versions", "/edit", "/preview", *(f"/{page}" for page in more)]
    addresses = [
        *(f"ui/connectors/{name}{page}" for page in pages),
        *("ui", "ui/cluster", "metrics", "health", "history"),
        *(f"connectors/{name}/{kind}" for kind in ("status", "logs", "history", "offsets")),
    ]
    answers = [requests.get(url + address, timeout=60) for address in addresses]
    assert {answer.url: answer.status_code for answer in answers if not answer.ok} == {}
    events = (worker.folder / "audit.json").read_text()
    assert [event["subject"] for event in map(json.loads, events.splitlines()) if event["data"]["changes"]][-1:] == [
        f"connectors/{name}"
    ]
    return [events, *(answer.text for answer in answers)]


def told(worker: StandaloneWorker, stage: str, name: str) -> dict[str, Any] | None:
    """The status, once what was to be told is told."""
    status = worker.status(name)
    if stage == "log":
        log = worker.log()
        return status if "Thread " in log and log.count("leaked {") >= 3 and f"[{name}|task-0]" in log else None
    return status if "leaked" in json.dumps(status) else None
