"""Connectors that Kubernetes' resources of Strimzi describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConnectError
from worker.cli.apply.folder import read_folder

RESOURCE = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaConnector
metadata:
  name: lines
  labels: {strimzi.io/cluster: connect}
spec:
  class: org.apache.kafka.connect.file.FileStreamSourceConnector
  tasksMax: 2
  version: "[1.0,2.0)"
  autoRestart: {enabled: true, maxRestarts: 7}
  state: stopped
  config:
    file: /opt/in.txt
    topic: lines
    batch.size: 500
    errors.log.enable: true
"""


def resource(tmp_path: Path, *replacements: tuple[str, str]) -> Path:
    text = RESOURCE
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "lines.yaml").write_text(text)
    return tmp_path


def test_its_members_are_the_keys_of_the_connector(tmp_path: Path) -> None:
    (lines,) = read_folder(resource(tmp_path))
    assert (lines.name, lines.state) == ("lines", "STOPPED")
    assert lines.config == {
        "name": "lines",
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "tasks.max": "2",
        "connector.plugin.version": "[1.0,2.0)",
        "restart.policy": "on-failure",
        "restart.limit": "7",
        "file": "/opt/in.txt",
        "topic": "lines",
        "batch.size": "500",
        "errors.log.enable": "true",
    }


def test_pause_is_the_older_word_for_a_state(tmp_path: Path) -> None:
    (lines,) = read_folder(resource(tmp_path, ("state: stopped", "pause: true")))
    assert lines.state == "PAUSED"


def test_without_a_state_it_keeps_its_own_and_its_own_keys_of_restarts_go_first(tmp_path: Path) -> None:
    place = resource(tmp_path, ("  state: stopped\n", ""), ("topic: lines", "topic: lines\n    restart.limit: 3"))
    (lines,) = read_folder(place)
    assert lines.state is None
    assert lines.config["restart.limit"] == "3"


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ("kind: KafkaConnector", "kind: KafkaTopic", "has a KafkaTopic, which is no connector"),
        ("  tasksMax: 2", "  tasksMin: 2", "spec.tasksMin is unknown here"),
        (
            "topic: lines",
            "topic: lines\n    tasks.max: 3",
            "key tasks.max, which a KafkaConnector has as spec.tasksMax",
        ),
        ("topic: lines", "name: other", "key name, which a KafkaConnector has as metadata.name"),
        ("state: stopped", "state: off", "state is off; it must be one of"),
        ("  name: lines\n", "", "has no name"),
        ("autoRestart: {enabled: true, maxRestarts: 7}", "autoRestart: yes", "autoRestart holds a str"),
    ],
)
def test_what_cannot_be_honoured_is_refused(tmp_path: Path, old: str, new: str, refusal: str) -> None:
    with pytest.raises(ConnectError, match=refusal):
        read_folder(resource(tmp_path, (old, new)))
