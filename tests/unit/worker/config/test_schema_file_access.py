"""Which schema files a datagen connector may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConfigError
from worker.config.file_access import SCHEMA_PATHS_KEY, refused_schema_file
from worker.messages import messages
from worker.runtime.assembly import Assembly
from worker.runtime.inquiries.validation import validate
from worker.runtime.log import Redaction

WORKER = {"bootstrap.servers": "unused:1", "key.converter": "StringConverter", "value.converter": "StringConverter"}
SOURCE = {"name": "c", "connector.class": "io.confluent.kafka.connect.datagen.DatagenConnector", "kafka.topic": "t"}
CLASS = "connectors.datagen.source.DatagenConnector"


def refused(worker: dict[str, str], file: Path | str) -> bool:
    return bool(list(refused_schema_file(WORKER | worker, CLASS, {"schema.filename": str(file)})))


def test_by_default_any_file_may_be_named_but_those_of_the_worker_and_the_system(tmp_path: Path) -> None:
    own = tmp_path / "keystore.jks"
    own.write_text("secret")
    (tmp_path / "link").symlink_to(own)
    worker = {"ssl.keystore.location": str(own)}
    assert not refused(worker, tmp_path / "schema.avsc")
    for file in (own, tmp_path / "link", "/proc/self/environ", "/sys/kernel"):
        assert refused(worker, file)


def test_only_what_the_worker_allows_may_be_named(tmp_path: Path) -> None:
    folder, outside = tmp_path / "schemas", tmp_path / "other.avsc"
    folder.mkdir()
    outside.write_text("{}")
    (folder / "link").symlink_to(outside)
    worker = {SCHEMA_PATHS_KEY: f"{folder}, /nowhere"}
    assert not refused(worker, folder / "a.avsc")
    for file in (outside, folder / "link", folder / ".." / "other.avsc", "\0"):
        assert refused(worker, file)


def test_other_connectors_are_not_meant() -> None:
    props = {"schema.filename": "/proc/self/environ"}
    assert not list(refused_schema_file(WORKER, "connectors.file.FileStreamSourceConnector", props))


def test_a_validation_shows_the_refusal_and_a_task_is_not_made() -> None:
    props = SOURCE | {"schema.filename": "/proc/self/environ"}
    infos = validate(messages.ValidateConfig({**props}, WORKER), Redaction()).infos
    (shown,) = [item["value"]["errors"] for item in infos["configs"] if item["value"]["name"] == "schema.filename"]
    assert shown == [
        "Invalid value /proc/self/environ for configuration schema.filename: Name a file that belongs neither to the "
        f"worker nor to the system, or have the worker's {SCHEMA_PATHS_KEY} changed"
    ]
    with pytest.raises(ConfigError, match=r"for configuration schema\.filename"):
        Assembly.resolve(WORKER, SOURCE, Redaction()).task_config(props)
