"""Brokers that have never had a consumer group, whose coordinators are yet to come up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from equipment.brokers.topics import create_topic
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

ASK = """
import sys
from worker.kafka.clients import roles
from worker.kafka.groups.offsets import ConsumerGroup
properties = roles.admin_properties({"bootstrap.servers": sys.argv[1]}, {"name": "c"})
group = ConsumerGroup(properties, sys.argv[2])
if sys.argv[3] == "delete":
    group.delete()
if sys.argv[3] == "alter":
    group.alter({("there", 0): 7})
print(group.offsets())
"""


def test_the_offsets_of_a_group_are_read_and_written_while_its_coordinator_comes_up(
    tmp_path: Path, broker_jars: tuple[Path, ...]
) -> None:
    with EmbeddedBroker(BrokerConfig(folder=tmp_path / "broker", port=0)).lease() as info:
        create_topic(info.bootstrap_servers, "there")
        asking = [
            subprocess.Popen(
                [sys.executable, "-c", ASK, info.bootstrap_servers, f"group-{number}", what], stdout=-1, text=True
            )
            for number, what in enumerate(("read", "read", "delete", "alter"))
        ]
        answers = [process.communicate(timeout=60)[0].strip() for process in asking]
    assert [process.returncode for process in asking] == [0] * 4
    assert answers == ["{}", "{}", "{}", "{('there', 0): 7}"]
