from pathlib import Path

import pytest

from connect.errors import ConnectError
from worker.connector_files import read_connector


def write(tmp_path: Path, text: str | bytes) -> Path:
    file = tmp_path / "connector"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_properties(tmp_path: Path) -> None:
    file = write(tmp_path, "name= lines \nconnector.class=FileStreamSource\n# no\nfile=/a\\\n  b\n")
    assert read_connector(file) == (
        "lines",
        {"name": "lines", "connector.class": "FileStreamSource", "file": "/ab"},
    )


def test_flat_json_and_create_requests(tmp_path: Path) -> None:
    assert read_connector(write(tmp_path, '{"name": "a", "tasks.max": 2}')) == ("a", {"name": "a", "tasks.max": "2"})
    request = '{"name": "a", "config": {"tasks.max": "2", "flag": true}, "initial_state": "PAUSED"}'
    assert read_connector(write(tmp_path, request)) == ("a", {"name": "a", "tasks.max": "2", "flag": "true"})


@pytest.mark.parametrize("text", ["connector.class=x", "{}", "name=", "[1]"])
def test_a_file_without_a_name_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConnectError, match="gives no name"):
        read_connector(write(tmp_path, text))


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match="missing cannot be read"):
        read_connector(tmp_path / "missing")
    with pytest.raises(ConnectError, match="UTF-8"):
        read_connector(write(tmp_path, b"name=\xff"))
