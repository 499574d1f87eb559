"""The measurements of ``syslog.py``."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from own_broker import own_broker

from worker.embedded.broker.server import BrokerConfig

_BIN: Final = Path(sys.executable).parent
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_TASK: Final = re.compile(r"process (\d+) runs rates\|task-0")
_UP: Final = re.compile(r"REST API is at (https?://[^ ]+:\d+/)")
SECONDS: Final = 5.0
RATES: Final = (20_000, 50_000, 80_000)
FORMS: Final = {
    "RFC 5424 with structured data": b'<156>1 2026-11-22T06:31:18.639343+00:00 vm app 123 - [timeQuality tzKnown="1" '
    b'isSynced="0"] %07d alice logged in from 10.1.2.3 port 50022 with a certificate of the company',
    "RFC 3164": b"<156>Nov 22 06:31:18 vm app[123]: %07d alice logged in from 10.1.2.3 port 50022 with a certificate "
    b"of the company, and then did something that takes some more words to tell",
}


@dataclass(frozen=True)
class Taken:
    """How many of the messages sent were taken, in what time, and at what cost."""

    sent: int
    taken: int
    seconds: float
    cpu: float

    def __str__(self) -> str:
        cost = self.cpu / self.taken if self.taken else float("nan")
        return (
            f"{self.taken / self.seconds:>10,.0f}/s of {self.sent / self.seconds:>9,.0f}/s sent, "
            f"{1 - self.taken / self.sent:>6.1%} lost, {cost * 1e6:>6.2f} us CPU each: {1 / cost:>9,.0f}/s a core"
        )


def send_datagrams(form: bytes, port: int, rate: int, result: Any) -> None:
    """Send at a rate, in bursts of a millisecond."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", port))
        sent, started = 0, time.perf_counter()
        while (passed := time.perf_counter() - started) < SECONDS:
            due = int(passed * rate)
            while sent < due:
                sender.send(form % sent)
                sent += 1
            time.sleep(0.001)
    result.send((sent, time.perf_counter() - started))


def send_stream(form: bytes, port: int, count: int, result: Any) -> None:
    """Send as many as there are to be, as fast as they are taken."""
    with socket.create_connection(("127.0.0.1", port)) as sender:
        started = time.perf_counter()
        for start in range(0, count, 500):
            sender.sendall(b"".join(form % number + b"\n" for number in range(start, start + 500)))
    result.send((count, time.perf_counter() - started))


def sending(target: Any, *arguments: Any) -> Any:
    """Start a sender; its result follows."""
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.Process(target=target, args=(*arguments, theirs), daemon=True).start()
    return ours


def bare_datagrams(form: bytes, rate: int) -> Taken:
    """Take datagrams by ``recvfrom``."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        try:
            listener.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)
        except OSError:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        listener.settimeout(0.5)
        result = sending(send_datagrams, form, listener.getsockname()[1], rate)
        listener.recvfrom(65536)
        taken, cpu = 1, time.process_time()
        try:
            while True:
                listener.recvfrom(65536)
                taken += 1
        except TimeoutError:
            cpu = time.process_time() - cpu
        return Taken(*_swapped(result.recv(), taken), cpu)


def bare_stream(form: bytes, count: int) -> Taken:
    """Take a stream by ``recv``, and divide it into lines."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        result = sending(send_stream, form, listener.getsockname()[1], count)
        connection, _ = listener.accept()
        taken, cpu, rest = 0, time.process_time(), b""
        with connection:
            while data := connection.recv(65536):
                *lines, rest = (rest + data).split(b"\n")
                taken += len(lines)
        cpu = time.process_time() - cpu
        return Taken(*_swapped(result.recv(), taken), cpu)


def bare_to_kafka(form: bytes, count: int, bootstrap: str, topic: str) -> Taken:
    """Take a stream by ``recv``, and give its lines to a producer as they are, until all are acknowledged."""
    settings = {"enable.idempotence": True, "linger.ms": 5, "queue.buffering.max.kbytes": 32 * 1024}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    acknowledged = [0]

    def delivered(error: Any, _message: Any) -> None:
        acknowledged[0] += error is None

    def produce(line: bytes) -> None:
        while True:
            try:
                producer.produce(topic, line, b"127.0.0.1", -1, delivered)
            except BufferError:
                producer.poll(0.05)
            else:
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        result = sending(send_stream, form, listener.getsockname()[1], count)
        connection, _ = listener.accept()
        started, cpu, rest = time.perf_counter(), time.process_time(), b""
        with connection:
            while data := connection.recv(65536):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    produce(line)
                producer.poll(0)
        producer.flush()
        sent, _ = result.recv()
        return Taken(sent, acknowledged[0], time.perf_counter() - started, time.process_time() - cpu)


def _swapped(sent: tuple[int, float], taken: int) -> tuple[int, int, float]:
    return sent[0], taken, sent[1]


class Worker:
    """A standalone worker with the source."""

    def __init__(self, folder: Path, bootstrap: str, topic: str, props: Mapping[str, str]) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        worker = {
            "bootstrap.servers": bootstrap,
            "key.converter": "StringConverter",
            "value.converter": "JsonConverter",
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": str(folder / f"{topic}.offsets"),
            "listeners": "http://127.0.0.1:0",
        }
        connector = {"name": "rates", "connector.class": "SyslogSource", "topic": topic, **props}
        connector["syslog.port"] = str(self.port)
        files = [self._write(folder / f"{topic}.{kind}", each) for kind, each in (("w", worker), ("c", connector))]
        self._log = folder / f"{topic}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen([_BIN / "sluice", "standalone", *files], stderr=log)
        self._wait(lambda: self._state() == "RUNNING")
        self._pid = int(_TASK.findall(self._log.read_text())[-1])

    def _write(self, file: Path, props: Mapping[str, str]) -> Path:
        file.write_text("".join(f"{key}={value}\n" for key, value in props.items()))
        return file

    def _wait(self, reached: Any) -> None:
        deadline = time.monotonic() + 60
        while not reached():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise SystemExit(self._log.read_text())
            time.sleep(0.05)

    def _state(self) -> str:
        found = _UP.findall(self._log.read_text())
        if not found:
            return ""
        try:
            with urllib.request.urlopen(f"{found[-1]}connectors/rates/status") as answer:
                tasks = json.load(answer)["tasks"]
        except OSError:
            return ""
        return tasks[0]["state"] if tasks else ""

    def records(self) -> int:
        """How many are on the topic."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "rates"})
        try:
            return int(consumer.get_watermark_offsets(TopicPartition(self._topic, 0), 30)[1])
        finally:
            consumer.close()

    def cpu(self) -> float:
        """The CPU seconds of the task's process."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def measure(self, target: Any, form: bytes, amount: int) -> Taken:
        """Send, and wait until no more records come."""
        cpu, before = self.cpu(), self.records()
        started = time.perf_counter()
        sent, seconds = sending(target, form, self.port, amount).recv()
        last, still = before, 0
        ended = time.perf_counter()
        while still < 6 and last - before < sent:
            time.sleep(0.1)
            now = self.records()
            still = still + 1 if now == last else 0
            if now != last:
                ended = time.perf_counter()
            last = now
        # A stream is taken when all of it is on the topic, a datagram is taken or lost while it is sent.
        return Taken(sent, last - before, ended - started if target is send_stream else seconds, self.cpu() - cpu)

    def close(self) -> None:
        """Stop it."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()


@contextmanager
def working(folder: Path, bootstrap: str, topic: str, **props: str) -> Iterator[Worker]:
    """Run a worker for a while."""
    worker = Worker(folder, bootstrap, topic, {key.replace("_", "."): value for key, value in props.items()})
    try:
        yield worker
    finally:
        worker.close()


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with own_broker(BrokerConfig(folder=folder / "broker", port=0)) as broker:
            for number, (title, form) in enumerate(FORMS.items()):
                print(f"\n{title}, {len(form % 1)} bytes", flush=True)
                for rate in RATES:
                    print(f"  UDP, bare   {bare_datagrams(form, rate)}", flush=True)
                with working(folder, broker.bootstrap_servers, f"udp-{number}") as worker:
                    worker.measure(send_datagrams, form, RATES[0])
                    for rate in RATES:
                        print(f"  UDP, source {worker.measure(send_datagrams, form, rate)}", flush=True)
                print(f"  TCP, bare   {bare_stream(form, 500_000)}", flush=True)
                bootstrap = broker.bootstrap_servers
                bare_to_kafka(form, 20_000, bootstrap, f"udp-{number}")
                print(f"  TCP, bare to Kafka {bare_to_kafka(form, 200_000, bootstrap, f'udp-{number}')}", flush=True)
                with working(folder, broker.bootstrap_servers, f"tcp-{number}", syslog_listener="TCP") as worker:
                    worker.measure(send_stream, form, 20_000)
                    print(f"  TCP, source {worker.measure(send_stream, form, 200_000)}", flush=True)


if __name__ == "__main__":
    main()
