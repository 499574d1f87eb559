"""The connectors that the files of a folder describe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect.errors import ConnectError
from worker.cli.apply.folder import read_folder


def folder(place: Path, **files: str) -> Path:
    for name, text in files.items():
        (place / name.replace("__", ".")).write_text(text)
    return place


def test_properties_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    config = {"name": "a", "connector.class": "FileStreamSource", "batch.size": "10", "on": "yes", "at": "2024-01-01"}
    folder(
        tmp_path,
        a__properties="\n".join(f"{key}={value}" for key, value in config.items()),
        b__json=json.dumps(config | {"name": "b", "batch.size": 10}),
        c__yaml="name: c\nconnector.class: FileStreamSource\nbatch.size: 10\non: yes\nat: 2024-01-01\nleft.out: null\n",
        d__yml="name: d\nconfig:\n  connector.class: FileStreamSource\n  batch.size: 10\n  on: yes\n  at: 2024-01-01\n",
    )
    found = read_folder(tmp_path)
    assert [item.name for item in found] == ["a", "b", "c", "d"]
    for item in found:
        assert item.config == config | {"name": item.name}
        assert item.state is None


def test_a_state_is_read_beside_a_config(tmp_path: Path) -> None:
    folder(
        tmp_path,
        a__json='{"name": "a", "config": {"x": 1}, "state": "paused"}',
        b__json='{"name": "b", "config": {"x": 1}, "initial_state": "STOPPED"}',
        c__json='{"name": "c", "state": "a key of the connector"}',
    )
    one, two, three = read_folder(tmp_path)
    assert (one.state, one.initial_state, one.config) == ("PAUSED", "PAUSED", {"name": "a", "x": "1"})
    assert (two.state, two.initial_state) == (None, "STOPPED")
    assert (three.state, three.config["state"]) == (None, "a key of the connector")


def test_a_yaml_file_may_hold_several_connectors(tmp_path: Path) -> None:
    folder(tmp_path, all__yaml="name: a\nx: 1\n---\n---\nname: b\nx: 2\n")
    assert [(item.name, item.config["x"]) for item in read_folder(tmp_path)] == [("a", "1"), ("b", "2")]


def test_other_files_are_left_alone_and_a_single_one_may_be_named(tmp_path: Path) -> None:
    folder(tmp_path, a__properties="name=a\n", README__md="# ours\n", __hidden__json="{", b__properties="name=b\n")
    assert [item.name for item in read_folder(tmp_path)] == ["a", "b"]
    assert [item.name for item in read_folder(tmp_path / "b.properties")] == ["b"]


def test_every_file_that_is_wrong_is_told(tmp_path: Path) -> None:
    folder(
        tmp_path,
        a__properties="name=same\n",
        b__json="{",
        c__yaml="a: [",
        d__yaml="- one\n",
        e__yaml="name: e\ntopic: x\ntopic: y\n",
        f__properties="topic=x\n",
        g__json='{"name": "g", "config": {}, "state": "asleep"}',
        h__properties="name=same\n",
    )
    with pytest.raises(ConnectError) as refused:
        read_folder(tmp_path)
    lines = str(refused.value).splitlines()
    assert [line for line in lines if "b.json starts with a brace but is not valid JSON" in line]
    assert [line for line in lines if "c.yaml is not YAML: " in line]
    assert [line for line in lines if "d.yaml holds a list: write key: value lines" in line]
    assert [line for line in lines if "e.yaml is not YAML: " in line and "the key topic appears twice" in line]
    assert [line for line in lines if "f.properties has no name" in line]
    assert [line for line in lines if "g.json: state is asleep; it must be one of running, paused, stopped" in line]
    assert [line for line in lines if "h.properties and" in line and "both describe the connector same" in line]
    assert len(lines) == 7
