"""Brokers that have never had a consumer group, whose coordinators are yet to come up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

ASK = """
import sys
from connect.kafka.clients import librdkafka
from worker.kafka.clients import roles
from worker.kafka.groups.offsets import ConsumerGroup
properties = roles.admin_properties({"bootstrap.servers": sys.argv[1]}, {"name": "c"})
print(ConsumerGroup(librdkafka.admin(properties), properties, sys.argv[2]).offsets())
"""


def test_the_offsets_of_a_group_are_read_while_its_coordinator_comes_up(
    tmp_path: Path, broker_jars: tuple[Path, ...]
) -> None:
    with EmbeddedBroker(BrokerConfig(folder=tmp_path / "broker", port=0)).lease() as info:
        asking = [
            subprocess.Popen(
                [sys.executable, "-c", ASK, info.bootstrap_servers, f"group-{number}"], stdout=-1, text=True
            )
            for number in range(4)
        ]
        answers = [process.communicate(timeout=60)[0].strip() for process in asking]
    assert [process.returncode for process in asking] == [0] * 4
    assert answers == ["{}"] * 4
