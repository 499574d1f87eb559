"""The files that ``sluice init`` writes are those of workers and connectors."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from connect.config import parse_properties, read_properties
from worker.cli.main import main
from worker.config.connector_files import read_connector
from worker.config.unknown_keys import suggest_known_keys
from worker.config.worker import DistributedConfig, StandaloneConfig


def init(tmp_path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["init", *arguments], env={"SLUICE_HOME": str(tmp_path / "home")})


def test_the_files_are_valid_and_say_where_things_are(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    written = init(tmp_path, str(folder), "--bootstrap-servers", "kafka:9093")
    assert written.exit_code == 0, written.output
    for config_class, name in ((StandaloneConfig, "worker"), (DistributedConfig, "distributed")):
        config = config_class.parse(read_properties(folder / f"{name}.properties"))
        assert config.bootstrap_servers == ("kafka:9093",)
        assert not list(suggest_known_keys(config.originals, {key.name for key in config_class.definitions()}))
    alone = StandaloneConfig.parse(read_properties(folder / "worker.properties"))
    assert alone.listeners == ("http://localhost:8083",), "other machines do not reach a first worker"
    source, sink = (read_connector(folder / f"lines-{way}.properties") for way in ("in", "out"))
    assert (source.name, source.config["file"], source.config["topic"]) == ("lines-in", f"{folder}/in.txt", "lines")
    assert (sink.name, sink.config["file"], sink.config["topics"]) == ("lines-out", f"{folder}/out.txt", "lines")
    assert f"sluice standalone '{folder}/worker.properties'" in written.output


def test_keys_in_comments_are_properties_too(tmp_path: Path) -> None:
    init(tmp_path, str(tmp_path))
    for file in tmp_path.glob("*.properties"):
        commented = [
            line.removeprefix("#") for line in file.read_text().splitlines() if line[:1] == "#" and line[1:2].isalpha()
        ]
        assert all(parse_properties(line) for line in commented)
        assert "@" not in file.read_text()


def test_what_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "lines-in.properties").write_text("mine")
    refused = init(tmp_path, str(tmp_path))
    assert refused.exit_code == 1
    assert "lines-in.properties already exists" in refused.output
    assert [file.name for file in tmp_path.glob("*.properties")] == ["lines-in.properties"]
