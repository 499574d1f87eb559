"""Tasks may ask for the members of a group while the broker does not answer: their process lives on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from equipment.waiting import wait_until
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

ASK = """
import sys, threading
from confluent_kafka import KafkaException
from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientProperties
from worker.kafka.clients.shared_admin import SharedAdmin

properties = {"metadata.broker.list": sys.argv[1], "client.id": "orders", "log_level": 0}
admin = SharedAdmin(ClientProperties(properties=properties, runtime={}, ignored={}), librdkafka.admin)

def ask(group):
    try:
        return admin.describe_group(group, 1.0).state.name
    except KafkaException as error:
        return error.args[0].name()

def all_ask():
    answers = [None] * 20
    def one(number):
        answers[number] = ask(f"group-{number}")
    threads = [threading.Thread(target=one, args=(number,)) for number in range(20)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return sorted(set(answers))

for line in sys.stdin:
    print(*all_ask(), flush=True)
"""


def ask(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    print("ask", file=process.stdin, flush=True)
    return process.stdout.readline()


@pytest.mark.timeout(300)
def test_a_coordinator_that_does_not_answer_in_time_aborts_no_process(tmp_path: Path) -> None:
    with EmbeddedBroker(BrokerConfig(folder=tmp_path / "broker", port=0)).lease() as broker:
        command = [sys.executable, "-c", ASK, broker.bootstrap_servers]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asking:
            for _ in range(3):
                os.kill(broker.pid, signal.SIGSTOP)
                try:
                    assert ask(asking) == "_TIMED_OUT\n"
                finally:
                    os.kill(broker.pid, signal.SIGCONT)
                # The answers to the former requests arrive, to clients that are closed.
                wait_until("all groups are described", lambda: ask(asking) == "DEAD\n", 120)
        assert asking.returncode == 0
