"""``sluice mirror plan`` on two clusters: what a file of older tools means, and which of its keys have no effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from equipment.brokers.topics import create_topic
from worker.cli.mirror.command import mirror
from worker.embedded.broker.server import BrokerInfo


@pytest.mark.usefixtures("log_as_before")
def test_old_names_take_effect_and_lost_keys_are_problems(
    second_broker: BrokerInfo, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "mm2.properties"
    props = {
        "clusters": "gcp, azure",
        "gcp.bootstrap.servers": second_broker.bootstrap_servers,
        "azure.bootstrap.servers": bootstrap,
        "gcp->azure.enabled": "true",
        "topics": f"{topic}.*",
        "topics.blacklist": f"{topic}-no",
        "replication.policy.class": "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
        "replication.factor": "1",
        **{f"{kind}.topic.replication.factor": "1" for kind in ("offset-syncs", "checkpoints", "heartbeats")},
    }
    for name in (topic, f"{topic}-no"):
        create_topic(second_broker.bootstrap_servers, name)

    def planned(*words: str, **more: str) -> tuple[int, str]:
        file.write_text("".join(f"{key} = {value}\n" for key, value in {**props, **more}.items()))
        result = CliRunner().invoke(mirror, ["plan", str(file), *words])
        return result.exit_code, result.stdout

    code, text = planned("-o", "json")
    found = json.loads(text)
    remotes = {each["topic"]: each["remote"] for each in found["flows"][0]["topics"] if each["topic"].startswith(topic)}
    assert remotes == {topic: topic, f"{topic}-no": None}
    warning = (
        "topics.blacklist is an old name of topics.exclude and is used as such. Write topics.exclude, since "
        "MirrorMaker 4 ignores topics.blacklist."
    )
    assert (code, found["problems"], found["warnings"]) == (0, [], [warning])
    code, text = planned(**{"topic.blacklist": "x", "task.max": "3", "offset.flush.interval.ms": "1000"})
    assert code == 3
    assert "  topic.blacklist has no effect: did you mean topics.exclude?\n" in text
    assert "  task.max has no effect: did you mean tasks.max?\n" in text
    assert "alias of their target: write azure.offset.flush.interval.ms\n" in text
    assert text.endswith(f"Warnings\n  {warning}\n")
