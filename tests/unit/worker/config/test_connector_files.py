"""The files of connectors that standalone mode is given."""

import json
from pathlib import Path
from typing import Any

import pytest

from connect.errors import ConnectError
from worker.config.connector_files import GivenConnector, read_connector
from worker.stores.config.store import TargetState


def write(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / "connector"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def read(tmp_path: Path, document: dict[str, Any]) -> GivenConnector:
    return read_connector(write(tmp_path, json.dumps(document)))


def test_properties(tmp_path: Path) -> None:
    file = write(tmp_path, "name= lines \nconnector.class=FileStreamSource\n# no\nfile=/a\\\n  b\n")
    config = {"name": "lines", "connector.class": "FileStreamSource", "file": "/ab"}
    assert read_connector(file) == GivenConnector("lines", config)


def test_a_json_object_of_keys(tmp_path: Path) -> None:
    text = '\n {"name": "a", "tasks.max": 2, "rate": 1.50, "flag": true, "gone": null, "initial_state": "PAUSED"}'
    assert read_connector(write(tmp_path, text)) == GivenConnector(
        "a",
        # As in Java it is a key like any other here.
        {"name": "a", "tasks.max": "2", "rate": "1.50", "flag": "true", "gone": None, "initial_state": "PAUSED"},
    )


@pytest.mark.parametrize(
    ("initial_state", "target"),
    [
        ("RUNNING", TargetState.STARTED),
        ("paused", TargetState.PAUSED),
        ("Stopped", TargetState.STOPPED),
        (None, None),
    ],
)
def test_a_request_with_the_state_to_begin_in(
    tmp_path: Path, initial_state: str | None, target: TargetState | None
) -> None:
    document = {"name": "a", "config": {"tasks.max": 2, "flag": False}, "initial_state": initial_state}
    expected = GivenConnector("a", {"name": "a", "tasks.max": "2", "flag": "false"}, target)
    assert read(tmp_path, document) == expected
    assert read(tmp_path, document | {"comment": ["what", "Java", "ignores"]}) == expected


def test_the_name_of_a_request_is_beside_its_config_or_in_it(tmp_path: Path) -> None:
    assert read(tmp_path, {"name": "a", "config": {"name": "a"}}) == GivenConnector("a", {"name": "a"})
    assert read(tmp_path, {"config": {"name": "a"}}) == GivenConnector("a", {"name": "a"})
    assert read(tmp_path, {"name": "a", "config": {}}).target is None


@pytest.mark.parametrize(
    "text", ["connector.class=x", "{}", "name=", '{"config": {"a": "b"}}', '{"name": null, "config": {}}']
)
def test_a_file_without_a_name_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConnectError, match="connector has no name"):
        read_connector(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "a", "config": {"s3cret": [1]}}', "write config as an object"),
        ('{"name": "a", "nested": {}}', "write config as an object"),
        ('{"name": "a", "config": {"name": "b"}}', "differs from the name next to it"),
        (
            '{"name": "a", "config": {}, "initial_state": "FLYING"}',
            "'FLYING'; it must be one of RUNNING, PAUSED, STOPPED",
        ),
        ('{"name": "a", "config": {}, "initial_state": {}}', "must be one of RUNNING, PAUSED, STOPPED"),
        ('{"name": "a", "file": "s3cret",}', "starts with a brace but is not valid JSON: .*line 1 column 32"),
        ('{"name": "a", "rate": NaN}', "NaN is not a JSON number"),
        ("{" * 100_000, "starts with a brace but is not valid JSON"),
        ("name=a\nfile=\\u12", "connector: "),
        ('[{"name": "s3cret"}]', "starts with a bracket: a file describes one connector, as an object in braces"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_without_its_values(tmp_path: Path, text: str, reason: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConnectError, match=reason) as refused:
        read_connector(file)
    assert str(refused.value).count(str(file)) == 1
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("text", ["name=a\nfile=b", '{"name": "a", "file": "b"}'])
def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text.encode("utf-8-sig"))
    assert read_connector(file) == GivenConnector("a", {"name": "a", "file": "b"})


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="missing cannot be read"):
        read_connector(tmp_path / "missing")
    with pytest.raises(ConnectError, match="UTF-8"):
        read_connector(write(tmp_path, b"name=\xff"))
