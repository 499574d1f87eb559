"""The config providers of the worker's own file: those that are plugins run in processes of their own."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

import equipment
from connect.errors import ConfigError, PluginError
from worker.config.child_providers import ChildProvider, worker_values
from worker.runtime.entry import main
from worker.security.redaction import Redaction
from worker.supervisor.process import ForkServerLauncher

pytestmark = pytest.mark.slow

PLUGINS = Path(equipment.__file__).parent / "leaking_plugins"
WORKER = {
    "bootstrap.servers": "unused:1",
    "plugin.path": str(PLUGINS),
    "config.providers": "vault,env",
    "config.providers.env.class": "EnvVarConfigProvider",
    "config.providers.vault.class": "LeakingProvider",
    "config.providers.vault.param.password": "s3cret of the vault",
    "config.providers.vault.param.pid": "unused",
}


def test_a_plugin_gives_the_values_of_the_worker_file_from_another_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OF_THE_ENVIRONMENT", "s3cret of the environment")
    redaction = Redaction()
    file = WORKER | {"a": "<${vault:db:password}> ${vault:db:none}", "b": "${env:OF_THE_ENVIRONMENT}", "c": "plain"}
    with caplog.at_level(logging.DEBUG):
        values = worker_values(file, redaction)
    assert values == file | {"a": "<s3cret of the vault> ${vault:db:none}", "b": "s3cret of the environment"}
    assert redaction.hide("s3cret of the vault, s3cret of the environment") == "[hidden], [hidden]"
    assert f"looked up [hidden] in {os.getpid()}" not in caplog.text
    assert "looked up [hidden] in " in caplog.text, "what the plugin logs is heard"
    assert "s3cret" not in caplog.text
    assert "The values from config provider vault in the worker's file expire after 60 s" in caplog.text


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("hang", "it did not answer within 2 s"),
        ("die", "its process exited with status 3"),
        ("refuse", "the vault is sealed"),
        ("fail", "it failed: ValueError: leaked"),
    ],
)
def test_a_provider_that_gives_nothing_is_told_with_its_name_and_the_key(path: str, reason: str) -> None:
    reference = f"${{vault:{path}:password}}"
    file = WORKER | {"ssl.key.password": f"literal {reference}"}
    provider = ChildProvider("vault", file, Redaction(), ForkServerLauncher(main), patience=2.0)
    with pytest.raises(ConfigError) as raised:
        provider.get(path, {"password"})
    text = str(raised.value)
    assert text.startswith(
        f"Invalid value {reference} for configuration ssl.key.password: Config provider vault (LeakingProvider) "
        f"could not look a value up: {reason}"
    )
    assert "config.providers.vault.param.*" in text
    assert "s3cret" not in text


def test_a_provider_that_there_is_not_is_an_error_without_a_reference_to_it() -> None:
    with pytest.raises(PluginError, match="NoSuch"):
        worker_values(WORKER | {"config.providers.vault.class": "NoSuch"}, Redaction())


def test_a_worker_file_without_providers_starts_no_process() -> None:
    file = {"bootstrap.servers": "unused:1", "ssl.key.password": "s3cret"}
    redaction = Redaction()
    assert worker_values(file, redaction) == file
    assert redaction.hide("s3cret") == "[hidden]"


@pytest.mark.parametrize("name", ["FileConfigProvider", "DirectoryConfigProvider"])
def test_a_provider_that_may_read_anything_is_warned_of_once(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = {"config.providers": "it", "config.providers.it.class": name}
    worker_values(file, Redaction())
    assert [record.getMessage().partition(" reads")[0] for record in caplog.records] == ["Config provider it"]
    assert "Set config.providers.it.param.allowed.paths" in caplog.text
    caplog.clear()
    worker_values(file | {"config.providers.it.param.allowed.paths": str(tmp_path)}, Redaction())
    assert caplog.records == []
