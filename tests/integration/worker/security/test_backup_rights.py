"""A backup by a user who may not read the internal topics is refused: it would be an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from equipment.brokers.secured import SecuredBroker
from worker.cli.main import main

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_it_says_what_may_not_be_read_and_writes_no_file(secured: SecuredBroker, topic: str, tmp_path: Path) -> None:
    user = secured.new_user()
    props = {
        "bootstrap.servers": secured.addresses["SASL_PLAINTEXT"],
        "group.id": topic,
        "config.storage.topic": f"{topic}-config",
        "offset.storage.topic": f"{topic}-offset",
        "status.storage.topic": f"{topic}-status",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        **user.login,
    }
    worker = tmp_path / "worker.properties"
    worker.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
    done = CliRunner().invoke(main, ["state", "backup", str(tmp_path / "backup"), "--worker", str(worker)])
    assert done.exit_code == 1
    assert f"Topic {topic}-config cannot be read: " in done.output
    assert user.password not in done.output
    assert not (tmp_path / "backup").exists()
