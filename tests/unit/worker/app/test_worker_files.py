"""The file of a worker: what is said of one that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConnectError
from worker.app.worker import WorkerProperties, parsed
from worker.config.worker import StandaloneConfig

RIGHT = "bootstrap.servers=a:1\nkey.converter=StringConverter\nvalue.converter=StringConverter\n"


def refusal(file: Path, text: str) -> list[str]:
    file.write_text(text)
    with pytest.raises(ConnectError) as refused:
        parsed(StandaloneConfig, WorkerProperties.read(file))
    return str(refused.value).splitlines()


def test_a_misspelt_key_is_named_beside_the_one_that_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    assert refusal(file, f"{RIGHT}offset.storage.file.filname=o\n") == [
        f'{file}: Missing required configuration "offset.storage.file.filename" which has no default value.',
        "The key offset.storage.file.filname is unknown. Did you mean offset.storage.file.filename?",
    ]


def test_the_file_of_a_connector_is_recognised(tmp_path: Path) -> None:
    told = refusal(tmp_path / "source.properties", "name=n\nconnector.class=FileStreamSource\ntopic=t\n")
    assert told[0] == f"{tmp_path}/source.properties: The configuration is invalid and contains the following 4 errors:"
    assert told[-1].startswith("It has the key connector.class: the worker's file goes first")


def test_a_file_for_the_other_command_and_one_without_brokers_are_recognised(tmp_path: Path) -> None:
    told = refusal(tmp_path / "cluster.properties", f"{RIGHT}group.id=g\n")
    assert told[-1] == "It has the key group.id, as files for `sluice distributed` do."
    told = refusal(
        tmp_path / "worker.properties", RIGHT.replace("bootstrap.servers=a:1", "offset.storage.file.filename=o")
    )
    assert told[-1].startswith("Set bootstrap.servers to HOST:PORT of a broker")
