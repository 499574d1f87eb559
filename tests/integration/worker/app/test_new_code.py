"""A connector that is restarted runs the code that its plugin has by now: its worker need not be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import requests

from equipment.brokers.topics import create_topic, read_so_far
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration

SOURCE = '''
from connect.config import HIGH, Config, option
from connect.data import SourceRecord
from connect.source import SourceConnector, SourceTask


class Options(Config):
    """Options."""

    topic: str = option(importance=HIGH, doc="Topic.")


class SayingTask(SourceTask[Options]):
    """Says the same again and again."""

    def poll(self):
        self.context.wait(0.1)
        return [SourceRecord(self.config.topic, "{}")]


class Saying(SourceConnector[Options]):
    """Says the same again and again."""

    task_class = SayingTask
'''


def test_a_restart_loads_the_code_of_a_plugin_anew(standalone: Any, bootstrap: str, topic: str, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    module = plugins / "saying_for_restart.py"
    module.write_text(SOURCE.format("old"))
    (plugins / "plugins.toml").write_text('[[connector]]\nclass = "saying_for_restart.Saying"\ntype = "source"\n')
    create_topic(bootstrap, topic)
    worker = standalone(plugin_path=str(plugins))
    worker.connector(topic, connector_class="Saying", topic=topic)
    worker.start()
    wait_until("the old code runs", lambda: b"old" in read_so_far(bootstrap, topic))
    module.write_text(SOURCE.format("a newer word"))
    answer = requests.post(f"{worker.url()}connectors/{topic}/restart?includeTasks=true", timeout=60)
    assert answer.status_code == 202
    wait_until("the new code runs", lambda: read_so_far(bootstrap, topic)[-1:] == [b"a newer word"])
