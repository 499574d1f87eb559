"""rsyslog sends to workers that are killed, or restarted in good order: its queue keeps what they did not take.

``make syslog-kills KILLS=20`` makes as many kills; the seed is printed.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from connect.errors import ConnectError
from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.fakes.syslog_receiver import SyslogReceiver
from equipment.ports import own_port
from equipment.servers.rsyslog import Rsyslog, queued
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

MakeWorker = Callable[..., StandaloneWorker]

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("SLUICE_SYSLOG_KILLS", "1"))
SEED = int(os.environ.get("SLUICE_SYSLOG_SEED", str(random.randrange(1 << 32))))
_NUMBER = re.compile(rb"n=(\d+)=")
PACE = 100
"""How many messages are logged at a time."""


def sending(folder: Path, **action: str) -> Rsyslog:
    try:
        daemon = Rsyslog(
            folder,
            queued({"target": "127.0.0.1", "template": "RSYSLOG_SyslogProtocol23Format", **action}),
            modules='module(load="omrelp")',
        )
    except ConnectError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"rsyslog cannot be had: {error}")
    return daemon.start()


class Flow:
    """Numbered messages, logged in a thread for as long as wanted."""

    def __init__(self, daemon: Rsyslog) -> None:
        self._daemon = daemon
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = 0

    def _run(self) -> None:
        while not self._ended.is_set():
            self._daemon.log_all([f"n={number}=" for number in range(self.count, self.count + PACE)])
            self.count += PACE
            # Not to wait for something: the pace of the flow.
            self._ended.wait(0.05)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Log while the block runs."""
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()


def numbers(bootstrap: str, topic: str) -> list[int]:
    """The numbers on the topic, in its order."""
    found = (_NUMBER.search(message.value() or b"") for message in read_topic(bootstrap, topic))
    # rsyslog sends what it says itself, too.
    return [int(each[1]) for each in found if each]


def listening(standalone: MakeWorker, topic: str, connector: str, port: int) -> StandaloneWorker:
    worker = standalone(value_converter="JsonConverter", value_converter_schemas_enable="false")
    worker.connector(
        "logs",
        **{
            "connector.class": connector,
            "topic": topic,
            "syslog.port": str(port),
            "syslog.listener": "TCP",
            "syslog.listen.address": "127.0.0.1",
        },
    )
    return worker.start()


@pytest.mark.thorough
def test_relp_loses_nothing_though_workers_are_killed(
    standalone: MakeWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """At any moment: what Kafka has not, rsyslog has."""
    print(f"SLUICE_SYSLOG_SEED={SEED}")
    chance = random.Random(SEED)
    create_topic(bootstrap, topic)
    port = own_port()
    worker = listening(standalone, topic, "RelpSource", port)
    daemon = sending(tmp_path / "rsyslog", type="omrelp", port=str(port))
    flow = Flow(daemon)
    try:
        with flow.running():
            for _ in range(KILLS):
                before = len(numbers(bootstrap, topic))
                wait_until("messages flow", lambda before=before: len(numbers(bootstrap, topic)) > before, 90)
                time.sleep(chance.uniform(0, 0.5))
                worker.kill()
                worker.start()
        sent = flow.count
        wait_until("all are there", lambda: len(set(numbers(bootstrap, topic))) == sent, 120)
    finally:
        print(f"{len(set(numbers(bootstrap, topic)))} of {flow.count} are there")
        daemon.close()
    found = numbers(bootstrap, topic)
    assert set(found) == set(range(sent))
    print(f"{KILLS} kills: {sent} sent, none lost, {len(found) - sent} doubled")
    # At most the window of a session is under way at each kill, and the unread acknowledgements of as many.
    assert len(found) - sent <= KILLS * 2 * 1000


def test_tcp_loses_nothing_when_workers_are_restarted(
    standalone: MakeWorker, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """In good order: the task tells rsyslog that it stops, and publishes what was sent before that was seen."""
    create_topic(bootstrap, topic)
    port = own_port()
    worker = listening(standalone, topic, "SyslogSource", port)
    daemon = sending(tmp_path / "rsyslog", type="omfwd", protocol="tcp", port=str(port))
    flow = Flow(daemon)
    try:
        with flow.running():
            for _ in range(KILLS):
                before = len(numbers(bootstrap, topic))
                wait_until("messages flow", lambda before=before: len(numbers(bootstrap, topic)) > before, 90)
                assert worker.terminate() == 0
                worker.start()
        sent = flow.count
        wait_until("all are there", lambda: len(set(numbers(bootstrap, topic))) == sent, 120)
    finally:
        daemon.close()
    found = numbers(bootstrap, topic)
    print(f"{KILLS} restarts: {sent} sent, none lost, {len(found) - sent} doubled")
    assert sorted(set(found)) == list(range(sent))


def test_a_sink_loses_nothing_though_workers_are_killed_and_receivers_restarted(
    standalone: MakeWorker, bootstrap: str, topic: str
) -> None:
    """Every record arrives, each partition in its order but for what is sent again; a quiet receiver reads it all."""
    create_topic(bootstrap, topic)
    worker = standalone()
    with SyslogReceiver(own_port()) as receiver:
        props = {"connector.class": "SyslogSink", "topics": topic, "syslog.host": "127.0.0.1"}
        props |= {"syslog.port": str(receiver.port), "syslog.position.enable": "true", "retry.backoff.ms": "50"}
        worker.connector("send", **props, **{"consumer.override.auto.offset.reset": "earliest"})
        worker.start()
        sent = 0
        for turn in range(max(KILLS, 2)):
            # Before they are produced: all of them may be there before this is counted.
            before = len(receiver.messages)
            produce(bootstrap, topic, [b"%d" % number for number in range(sent, sent + 2000)])
            sent += 2000
            wait_until("messages flow", lambda before=before: len(receiver.messages) > before, 90)
            if turn % 2:
                receiver.close()
                receiver.open()
            else:
                worker.kill()
                worker.start()

        def arrived() -> list[int]:
            return [int(message.rpartition(" ")[2]) for message in receiver.messages]

        wait_until("all are there", lambda: len(set(arrived())) == sent, 120)
        assert worker.terminate() == 0
        found = arrived()
    assert set(found) == set(range(sent))
    # In order: what comes again comes with all that follows it.
    assert all(after == before + 1 or after <= before for before, after in pairwise(found))
    print(f"{KILLS} kills: {sent} sent, none lost, {len(found) - sent} doubled")
