"""Commands that look at what a flow has mirrored: verify, and cut-over. Runs are written here."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer

from connectors.mirror.clients import Clients
from connectors.mirror.config.checkpoint import MirrorCheckpointTaskConfig
from connectors.mirror.verification.results import FollowedVerifications
from equipment.brokers.topics import committed, ordered_producer
from equipment.brokers.written_flow import WrittenFlow
from equipment.waiting import wait_until
from worker.cli.mirror.command import mirror
from worker.embedded.broker.server import BrokerInfo


@pytest.fixture
def flow(bootstrap: str, second_broker: BrokerInfo) -> WrittenFlow:
    """A flow from the first cluster to the second."""
    return WrittenFlow(bootstrap, second_broker.bootstrap_servers)


def _write(bootstrap: str, topic: str, values: dict[int, str], headers: list[tuple[str, bytes]] | None = None) -> None:
    """Write records whose timestamps tell which they are."""
    producer = ordered_producer(bootstrap)
    for number, value in values.items():
        producer.produce(topic, value.encode(), b"k", 0, timestamp=1000 + number, headers=headers or [])
    assert producer.flush(30) == 0


def _sluice(command: str, folder: Path, flow: WrittenFlow, *words: str, **props: str) -> Result:
    file = folder / "mm2.properties"
    given = {
        "clusters": f"{flow.a}, {flow.b}",
        f"{flow.a}.bootstrap.servers": flow.source,
        f"{flow.b}.bootstrap.servers": flow.target,
        f"{flow.a}->{flow.b}.enabled": "true",
        "topics": flow.topic,
        "groups": flow.group,
        "heartbeats.replication.enabled": "false",
        **{key.replace("_", "."): value for key, value in props.items()},
    }
    file.write_text("".join(f"{key} = {value}\n" for key, value in given.items()))
    return CliRunner().invoke(mirror, [command, str(file), *words])


def _report(done: Result) -> dict[str, Any]:
    (report,) = json.loads(done.stdout)
    return {key: report[key] for key in ("equal", "expired", "unknown", "waiting", "difference")}


def test_verify_counts_what_is_equal_and_tells_the_first_difference(flow: WrittenFlow, tmp_path: Path) -> None:
    _write(flow.source, flow.topic, {number: f"v{number}" for number in range(12)})
    # At the target the first two were written before, and the last but one is another.
    copies = {number: f"v{number}" for number in range(9)} | {9: "other"}
    _write(flow.target, flow.remote, {20: "older", 21: "older", **copies})
    flow.write_runs((3, 5, 6))
    good = _sluice("verify", tmp_path, flow, "-o", "json")
    assert good.exit_code == 0, good.output
    assert _report(good) == {"equal": 6, "expired": 0, "unknown": 3, "waiting": 3, "difference": None}
    newest = _sluice("verify", tmp_path, flow, "--last", "5", "-o", "json")
    assert _report(newest) == {"equal": 2, "expired": 0, "unknown": 0, "waiting": 3, "difference": None}

    flow.write_runs((9, 11, 1))
    bad = _sluice("verify", tmp_path, flow, "-o", "json", replication_factor="1")
    assert bad.exit_code == 3
    kept = _sluice("verify", tmp_path, flow, "--kept", "-o", "json")
    (last,) = json.loads(kept.stdout)
    assert (last["topic"], last["partition"], last["equal"], last["last"], last["difference"]) == (
        *(flow.topic, 0, 6, None),
        9,
    )
    assert "FIRST DIFFERENCE" in _sluice("verify", tmp_path, flow, "--kept").stdout
    with closing(_following(flow)) as followed:
        wait_until("it is measured", lambda: _measured(followed) == {"records": 6.0, "differs": 1.0})
    assert _report(bad)["difference"] == {"offset": 9, "offset_there": 11, "what": "different value"}
    text = _sluice("verify", tmp_path, flow)
    assert text.stdout.splitlines()[1].split() == [
        *(flow.topic, "0", flow.remote, "6", "0", "3", "0"),
        *("offset", "9,", "11", "there:", "different", "value"),
    ]


def _following(flow: WrittenFlow) -> FollowedVerifications:
    config = MirrorCheckpointTaskConfig.parse(flow.props)
    return FollowedVerifications(config, Clients(flow.props), lambda _: True)


def _measured(followed: FollowedVerifications) -> dict[str, float]:
    followed.follow()
    found = {each.name.removeprefix("mirror_verified_"): each.value for each in followed.measurements()}
    return {name: value for name, value in found.items() if name != "timestamp_seconds"}


def test_verify_finds_a_record_that_was_passed_over(flow: WrittenFlow, tmp_path: Path) -> None:
    _write(flow.source, flow.topic, {number: f"v{number}" for number in range(6)})
    _write(flow.target, flow.remote, {0: "v0", 1: "v1", 4: "v4", 5: "v5"})
    # The mirror says that there was nothing between.
    flow.write_runs((0, 0, 2), (4, 2, 2))
    done = _sluice("verify", tmp_path, flow, "-o", "json")
    assert done.exit_code == 3
    assert _report(done)["difference"] == {"offset": 2, "offset_there": None, "what": "not mirrored"}
    flow.write_runs((6, 4, 3))
    gone = _sluice("verify", tmp_path, flow, "--last", "1", "-o", "json")
    assert _report(gone)["equal"] == 1


def test_verify_expects_the_header_of_provenance(flow: WrittenFlow, tmp_path: Path) -> None:
    _write(flow.source, flow.topic, {0: "v0"})
    # It has been at the target and stays where it is.
    _write(flow.source, flow.topic, {1: "back"}, [("from", flow.b.encode())])
    _write(flow.source, flow.topic, {2: "v2"})
    _write(flow.target, flow.remote, {0: "v0", 2: "v2"}, [("from", flow.a.encode())])
    flow.write_runs((0, 0, 1), (2, 1, 1))
    done = _sluice("verify", tmp_path, flow, "-o", "json", mirror_provenance_header="from")
    assert done.exit_code == 0, done.output
    assert _report(done) == {"equal": 2, "expired": 0, "unknown": 0, "waiting": 0, "difference": None}
    without = _sluice("verify", tmp_path, flow, "-o", "json")
    assert _report(without)["difference"] == {"offset": 0, "offset_there": 0, "what": "different headers"}


def test_a_cut_over_waits_for_the_last_record_and_for_the_groups(flow: WrittenFlow, tmp_path: Path) -> None:
    _write(flow.source, flow.topic, {number: f"v{number}" for number in range(10)})
    flow.write_runs((0, 0, 8))
    flow.commit(5)
    planned = _sluice("cut-over", tmp_path, flow, "--dry-run")
    assert planned.exit_code == 3
    assert [line.split() for line in planned.stdout.splitlines()] == [
        ["TOPIC", "PARTITION", "LEFT", "TO", "MIRROR"],
        [flow.topic, "0", "2"],
        [],
        ["GROUP", "TOPIC", "PARTITION", "OFFSET", "THERE", "OFFSET", "THERE", "READ", "AGAIN", "REMARK"],
        [flow.group, flow.topic, "0", "5", flow.remote, "5", "0", "exact"],
    ]
    early = _sluice("cut-over", tmp_path, flow, "--seconds", "0")
    assert early.exit_code == 1
    assert f"2 of {flow.topic}-0" in early.output
    flow.write_runs((8, 8, 2))
    consumer = Consumer({"bootstrap.servers": flow.source, "group.id": flow.group, "enable.auto.commit": False})
    consumer.subscribe([flow.topic])
    try:
        wait_until("the consumer has its partition", lambda: consumer.poll(0.1) or consumer.assignment())
        used = _sluice("cut-over", tmp_path, flow)
        assert used.exit_code == 1
        assert f"still have members: {flow.group}" in used.output
    finally:
        consumer.close()
    assert committed(flow.target, flow.group, flow.remote) == [-1001]
    done = _sluice("cut-over", tmp_path, flow)
    assert done.exit_code == 0, done.output
    assert committed(flow.target, flow.group, flow.remote) == [5]
    told = _sluice("groups", tmp_path, flow, "-o", "json")
    assert [(each["group"], each["read_again"]) for each in json.loads(told.stdout)] == [(flow.group, 0)]


def test_a_cut_over_fails_while_a_partition_is_unknown(flow: WrittenFlow, tmp_path: Path) -> None:
    _write(flow.source, flow.topic, {number: f"v{number}" for number in range(4)})
    _write(flow.target, flow.remote, {number: f"v{number}" for number in range(4)})
    # The runs that are kept are younger than the group's offset.
    flow.write_runs((3, 3, 1))
    flow.commit(1)
    for more in ((), ("--dry-run",)):
        done = _sluice("cut-over", tmp_path, flow, *more)
        assert done.exit_code == 1, done.output
        assert f"It is unknown where these groups continue: {flow.group} in {flow.topic}-0." in done.output
    assert committed(flow.target, flow.group, flow.remote) == [-1001]
