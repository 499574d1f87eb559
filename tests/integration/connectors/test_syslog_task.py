"""The tasks of the syslog sources with sockets: what is received, bounded, counted, refused and acknowledged."""

from __future__ import annotations

import random
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from connect.data import SourceRecord
from connect.errors import ConfigError, ConnectError
from connect.testing import SourceTaskTestContext, StoredOffsets
from connectors.syslog import RelpSourceConfig, RelpSourceTask, SyslogSourceConfig, SyslogSourceTask
from equipment.brokers.certificates import Authority
from equipment.fakes.syslog_senders import RelpClient
from equipment.ports import own_port
from equipment.proofs import thorough
from equipment.waiting import wait_until

Task = SyslogSourceTask | RelpSourceTask
HOST = "127.0.0.1"


class Listening:
    """A task that runs, and what it has published."""

    def __init__(self, task: Task, context: SourceTaskTestContext, port: int) -> None:
        self.task, self.context, self.port = task, context, port
        self.records: list[SourceRecord] = []

    def poll(self) -> list[SourceRecord]:
        """What one poll gives."""
        polled = list(self.task.poll() or ())
        self.records += polled
        return polled

    def wait_for(self, count: int) -> list[Any]:
        """The texts, once there are so many."""

        def enough() -> bool:
            self.poll()
            return len(self.records) >= count

        wait_until(f"{count} records are there", enough)
        return self.texts()

    def texts(self) -> list[Any]:
        return [record.value["message"] for record in self.records]

    def measured(self, name: str) -> float:
        """A measurement."""
        return next(each.value for each in self.task.measurements() if each.name == name)

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), 5)

    def send(self, data: bytes) -> None:
        """Send over a connection of its own."""
        with self.connect() as sender:
            sender.sendall(data)


@pytest.fixture
def listening() -> Iterator[Callable[..., Listening]]:
    with ExitStack() as started:

        def start(kind: str = "TCP", *, tolerate: bool = False, **props: str) -> Listening:
            port = int(props.pop("port", own_port()))
            given = {"syslog.port": str(port), "syslog.listen.address": HOST}
            given |= {f"syslog.{key.replace('_', '.')}": value for key, value in props.items()}
            context = SourceTaskTestContext(StoredOffsets(), tolerate_errors=tolerate)
            task: Task
            if kind.startswith("RELP"):
                given["syslog.listener"] = "TCPSSL" if kind == "RELPSSL" else "TCP"
                task = RelpSourceTask(RelpSourceConfig.parse(given), context)
            else:
                task = SyslogSourceTask(SyslogSourceConfig.parse({**given, "syslog.listener": kind}), context)
            started.callback(task.stop)
            task.start()
            return Listening(task, context, port)

        yield start


def test_datagrams(listening: Callable[..., Listening]) -> None:
    task = listening("UDP", message_max_bytes="480")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for line in (b"<13>a: 1\n\0", b"\n", b"<13>a: " + b"x" * 600, b"<13>a: \xff3"):
            sender.sendto(line, (HOST, task.port))
    assert task.wait_for(3) == ["1", "x" * 473, "\\xff3"]
    first, second, _ = task.records
    assert (first.key, first.topic, first.source_partition) == (
        HOST,
        "syslog",
        {"listener": f"udp://{HOST}:{task.port}"},
    )
    assert [header.key for header in second.headers] == ["syslog.truncated"]
    assert not first.headers
    assert first.timestamp is not None
    assert abs(first.timestamp / 1000 - time.time()) < 60
    counted = ("messages_total", "truncated_total", "undecodable_total", "dropped_datagrams_total")
    assert [task.measured(f"syslog_{name}") for name in counted] == [3, 1, 1, 0]


def test_a_full_queue_leaves_datagrams_to_the_kernel_which_counts_what_it_drops(
    listening: Callable[..., Listening], caplog: pytest.LogCaptureFixture
) -> None:
    task = listening("UDP", queue_max_size="10", receive_buffer_bytes="100000")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(5_000):
            sender.sendto(b"<13>a: %d" % number, (HOST, task.port))
    wait_until("some are dropped", lambda: task.measured("syslog_dropped_datagrams_total"))
    assert task.measured("syslog_queue_messages") < 600
    wait_until("all are accounted for", lambda: _accounted(task, 5_000))
    wait_until("it is said", lambda: "The kernel dropped" in caplog.text)
    texts = task.texts()
    assert texts == sorted(texts, key=int)


def _accounted(task: Listening, sent: int) -> bool:
    task.poll()
    return len(task.records) + task.measured("syslog_dropped_datagrams_total") == sent


def test_a_full_queue_makes_senders_wait(listening: Callable[..., Listening]) -> None:
    task = listening(queue_max_size="100")
    lines = [b"<13>a: %06d %b\n" % (number, b"x" * 1000) for number in range(5_000)]
    sent = threading.Event()

    def send() -> None:
        task.send(b"".join(lines))
        sent.set()

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    wait_until("the queue is full", lambda: task.measured("syslog_queue_messages") >= 100)
    assert not sent.wait(0.3)
    assert task.measured("syslog_queue_messages") < 300
    assert [int(text[:6]) for text in task.wait_for(5_000)] == list(range(5_000))
    sender.join(10)
    assert sent.is_set()


def test_senders_that_wait_for_room_are_not_idle(listening: Callable[..., Listening]) -> None:
    task = listening(queue_max_size="100", idle_timeout_ms="100")
    lines = [b"<13>a: %06d %b\n" % (number, b"x" * 1000) for number in range(5_000)]
    ended = threading.Event()

    def send() -> None:
        try:
            task.send(b"".join(lines))
        finally:
            ended.set()

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    wait_until("the queue is full", lambda: task.measured("syslog_queue_messages") >= 100)
    # The receiver looks for idle senders every second.
    assert not ended.wait(2.5)
    assert [int(text[:6]) for text in task.wait_for(5_000)] == list(range(5_000))
    sender.join(10)
    assert task.measured("syslog_truncated_total") == 0


def test_a_slow_sender_and_a_silent_one_hold_up_nobody(listening: Callable[..., Listening]) -> None:
    task = listening(max_connections="3")
    with task.connect(), task.connect() as slow:
        slow.sendall(b"100000000 <13>never ")
        wait_until("both are in", lambda: task.measured("syslog_connections") == 2)
        task.send(b"<13>a: 1\n")
        assert task.wait_for(1) == ["1"]
        wait_until("one has gone", lambda: task.measured("syslog_connections") == 2)
        with task.connect() as third:
            third.sendall(b"<13>a: 2\n")
            assert task.wait_for(2) == ["1", "2"]
            with task.connect() as one_too_many:
                assert one_too_many.recv(1) == b""
    assert task.measured("syslog_refused_connections_total") == 1


def test_idle_connections_are_closed_if_that_is_wanted(listening: Callable[..., Listening]) -> None:
    task = listening(idle_timeout_ms="100")
    with task.connect() as idle:
        assert idle.recv(1) == b""


def test_lines_of_no_known_form_are_reported_if_that_is_wanted(listening: Callable[..., Listening]) -> None:
    lines = b"<13>a: 1\nwhat is this\n<13>a: 2\nand this\n<13>a: 3\n"
    tolerant = listening(tolerate=True, unparsed="report")
    tolerant.send(lines)
    assert tolerant.wait_for(3) == ["1", "2", "3"]
    reported = tolerant.context.errant_record_reporter.reported
    assert [record.value for record, _ in reported] == ["what is this", "and this"]
    strict = listening(unparsed="report")
    strict.send(lines)
    assert strict.wait_for(1) == ["1"]
    with pytest.raises(ConnectError, match="neither RFC 5424 nor RFC 3164 nor CEF"):
        strict.poll()
    publishing = listening()
    publishing.send(lines)
    assert publishing.wait_for(5) == ["1", "what is this", "2", "and this", "3"]
    assert publishing.measured("syslog_unknown_total") == 2


def test_a_task_that_stops_publishes_what_was_sent(listening: Callable[..., Listening]) -> None:
    task = listening()
    with task.connect() as sender:
        sender.sendall(b"<13>a: 1\n")
        assert task.wait_for(1) == ["1"]
        found: list[SourceRecord] = []
        last = threading.Thread(target=lambda: found.extend(task.task.last_poll() or ()))
        sender.sendall(b"<13>a: 2\n")
        last.start()
        # The listener says that it stops, and reads on.
        assert sender.recv(1) == b""
        sender.sendall(b"<13>a: 3\n<13>a: 4")
    last.join(10)
    assert [record.value["message"] for record in found] == ["2", "3", "4"]
    with pytest.raises(ConnectionRefusedError):
        task.connect()


def test_a_task_that_stops_publishes_what_was_sent_encrypted(listening: Callable[..., Listening]) -> None:
    task = listening("TCPSSL", ssl_self_signed_certificate_enable="true")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with task.connect() as plain, context.wrap_socket(plain) as sender:
        sender.sendall(b"<13>a: 1\n")
        assert task.wait_for(1) == ["1"]
        found: list[SourceRecord] = []
        last = threading.Thread(target=lambda: found.extend(task.task.last_poll() or ()))
        last.start()
        wait_until("the listener has said that it stops", lambda: select.select([sender], [], [], 0)[0])
        sender.sendall(b"<13>a: 2\n")
        last.join(10)
    assert [record.value["message"] for record in found] == ["2"]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def files(folder: Path, authority: Authority, password: str | None = None) -> dict[str, str]:
    identity = authority.sign(HOST)
    (folder / "chain.pem").write_text(identity.certificate_pem)
    (folder / "key.pem").write_text(identity.key_pem(password))
    (folder / "ca.pem").write_text(authority.pem)
    return {"ssl_cert_chain_path": str(folder / "chain.pem"), "ssl_key_path": str(folder / "key.pem")}


def test_tls_with_certificates_on_both_sides(
    listening: Callable[..., Listening], authority: Authority, tmp_path: Path
) -> None:
    props = files(tmp_path, authority, "hush-hush")
    task = listening("TCPSSL", ssl_key_password="hush-hush", ssl_ca_path=str(tmp_path / "ca.pem"), **props)
    trusting = ssl.create_default_context(cadata=authority.pem)
    with task.connect() as plain, trusting.wrap_socket(plain, server_hostname=HOST) as stranger, pytest.raises(OSError):
        stranger.sendall(b"<13>a: no\n")
        stranger.recv(1)
        raise ConnectionError("TLS 1.3 tells a stranger only when it reads.")
    identity = authority.sign("sender")
    (tmp_path / "sender.pem").write_text(identity.key_pem() + identity.certificate_pem)
    trusting.load_cert_chain(tmp_path / "sender.pem")
    with task.connect() as plain, trusting.wrap_socket(plain, server_hostname=HOST) as sender:
        sender.sendall(b"8 <13>a: 1" * 30_000)
    assert task.wait_for(30_000) == ["1"] * 30_000
    # Who does not speak TLS is closed, and holds up nobody.
    task.send(b"<13>a: plain\n" * 10)
    wait_until("it is closed", lambda: task.measured("syslog_broken_connections_total") == 2)


def test_certificates_that_cannot_be_used_are_told_of(authority: Authority, tmp_path: Path) -> None:
    props = {f"syslog.{key.replace('_', '.')}": value for key, value in files(tmp_path, authority, "hush").items()}
    given = {"syslog.port": "6514", "syslog.listener": "TCPSSL"}

    def refused(**more: str) -> str:
        with pytest.raises(ConfigError) as caught:
            SyslogSourceConfig.parse({**given, **{key.replace("_", "."): value for key, value in more.items()}})
        return str(caught.value)

    assert "syslog.ssl.key.path is missing" in refused()
    wrong = refused(**props, syslog_ssl_key_password="secret-word")
    assert "syslog.ssl.key.password" in wrong
    assert "secret-word" not in wrong
    assert "cannot be read: No such file" in refused(**{**props, "syslog.ssl.key.path": "/no/such"})
    (tmp_path / "key.pem").write_text(authority.sign("other").key_pem())
    assert "does not fit the first certificate" in refused(**props)


@pytest.mark.parametrize("kind", ["RELP", "RELPSSL"])
def test_relp_acknowledges_once_kafka_has_a_message(listening: Callable[..., Listening], kind: str) -> None:
    more = {"ssl_self_signed_certificate_enable": "true"} if kind == "RELPSSL" else {}
    task = listening(kind, **more)
    client = RelpClient(task.port, encrypted=kind == "RELPSSL")
    sent = [client.send(b"<13>a: %d" % number) for number in range(5)]
    assert task.wait_for(5) == ["0", "1", "2", "3", "4"]
    assert task.measured("relp_unacknowledged_messages") == 5
    assert not client.has_answer(0.2)
    assert isinstance(task.task, RelpSourceTask)
    for record in task.records:
        task.task.commit_record(record)
    assert [client.answer() for _ in sent] == [(number, b"200 OK") for number in sent]
    assert task.measured("relp_unacknowledged_messages") == 0
    unsafe = client.send(b"<13>a: 5")
    task.wait_for(6)
    task.task.commit_record(task.records[-1])
    task.task.stop()
    assert client.answer() == (unsafe, b"200 OK")
    client.close()


def test_relp_acknowledges_what_is_given_up(listening: Callable[..., Listening]) -> None:
    task = listening("RELP", tolerate=True, unparsed="report")
    client = RelpClient(task.port)
    sent = [client.send(line) for line in (b"what is this", b"<13>a: 1", b"and this")]
    assert task.wait_for(1) == ["1"]
    answered = {client.answer(), client.answer()}
    assert answered == {(sent[0], b"200 OK"), (sent[2], b"200 OK")}
    client.close()


def test_what_is_not_relp_is_told_of(listening: Callable[..., Listening], caplog: pytest.LogCaptureFixture) -> None:
    task = listening("RELP")
    with task.connect() as sender:
        sender.sendall(b"<13>Nov 22 06:31:18 vm app: x\n")
        assert sender.recv(1) == b""
    assert "what it sends is not RELP" in caplog.text


def test_tasks_share_a_port(listening: Callable[..., Listening]) -> None:
    first = listening(port_shared="true")
    second = listening(port=str(first.port), port_shared="true")
    for number in range(40):
        first.send(b"<13>a: %d\n" % number)

    def all_there() -> bool:
        first.poll()
        second.poll()
        return len(first.records) + len(second.records) == 40

    wait_until("both have got their part", all_there)
    assert first.records
    assert second.records
    assert sorted(map(int, first.texts() + second.texts())) == list(range(40))


def test_a_port_that_is_used_fails_the_task_with_the_remedy(listening: Callable[..., Listening]) -> None:
    with pytest.raises(ConnectError, match=r"such as 0\.0\.0\.0"):
        listening(listen_address="192.0.2.1")


def test_names_of_senders(listening: Callable[..., Listening]) -> None:
    task = listening(reverse_dns_remote_ip="true")
    task.send(b"<13>a: 1\n<13>Nov 22 06:31:18 vm app: 2\n")
    task.wait_for(2)
    expected = _name(HOST)
    assert [record.value["host"] for record in task.records] == [expected, "vm"]
    assert {record.value["remoteAddress"] for record in task.records} == {HOST}


def _name(address: str) -> str:
    try:
        return socket.gethostbyaddr(address)[0]
    except OSError:
        return address


def test_keys_without_effect_are_told_of() -> None:
    config = SyslogSourceConfig.parse(
        {
            "syslog.port": "5454",
            "confluent.license": "",
            "confluent.topic.bootstrap.servers": "broker:9092",
            "topic.prefix": "logs",
            "syslog.ssl.provider": "JDK",
            "syslog.write.timeout.millis": "10000",
        }
    )
    assert config.topic == "logs"
    assert [text.split(" has no effect")[0] for text in config.warnings()] == [
        "The key confluent.topic.bootstrap.servers",
        "The key syslog.write.timeout.millis",
    ]


def test_a_port_that_is_still_used_is_waited_for(listening: Callable[..., Listening]) -> None:
    port = own_port()
    with socket.create_server((HOST, port)) as former:
        freeing = threading.Timer(0.5, former.close)
        freeing.start()
        task = listening(port=str(port))
        freeing.join()
    task.send(b"<13>a: 1\n")
    assert task.wait_for(1) == ["1"]


@pytest.mark.parametrize("kind", ["UDP", "TCP"])
def test_all_addresses_of_both_versions(listening: Callable[..., Listening], kind: str) -> None:
    try:
        task = listening(kind, listen_address="::")
    except ConnectError as error:
        pytest.skip(f"This machine has no IPv6: {error}")
    for family, address in ((socket.AF_INET, HOST), (socket.AF_INET6, "::1")):
        with socket.socket(family, socket.SOCK_DGRAM if kind == "UDP" else socket.SOCK_STREAM) as sender:
            try:
                sender.connect((address, task.port))
            except OSError as error:
                pytest.skip(f"This machine has no {address}: {error.strerror}")
            sender.sendall(b"<13>a: 1\n")
            task.wait_for(len(task.records) + 1)
    assert [record.key for record in task.records] == [HOST, "::1"]
    assert task.records[0].source_partition == {"listener": f"{kind.lower()}://[::]:{task.port}"}


@pytest.mark.parametrize("kind", ["TCP", *thorough("TCPSSL", "RELP", "RELPSSL")])
def test_garbage_and_broken_connections_do_no_harm(listening: Callable[..., Listening], kind: str) -> None:
    """Bytes of chance, connections that are reset in their midst, and half of a handshake; then a message."""
    encrypted = kind.endswith("SSL")
    more = {"ssl_self_signed_certificate_enable": "true"} if encrypted else {}
    task = listening(kind, **more)
    chance = random.Random(kind)
    pieces = (
        b"1 open 0\n",
        b"2 syslog 9 <13>a",
        b"999999999 <",
        b"\x16\x03\x01\x02\x00\x01",
        b"<13>1 - - ",
        b"\n",
        b"\0",
    )
    for number in range(150):
        sender = task.connect()
        sender.sendall(chance.randbytes(chance.randrange(2000)) + b"".join(chance.choices(pieces, k=5)))
        if number % 3:
            # A reset in place of an end.
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sender.close()
        task.poll()
    wait_until("all have gone", lambda: task.measured("syslog_connections") == 0 and not task.poll())
    task.records.clear()
    if kind.startswith("RELP"):
        client = RelpClient(task.port, encrypted=encrypted)
        client.send(b"<13>a: fine")
        assert task.wait_for(1) == ["fine"]
        client.close()
    elif not encrypted:
        task.send(b"<13>a: fine\n")
        assert task.wait_for(1) == ["fine"]
    assert task.measured("syslog_queue_messages") == 0
    assert task.measured("syslog_queue_bytes") == 0
