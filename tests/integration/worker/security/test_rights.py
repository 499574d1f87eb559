"""What users need the right to: exactly what docs/kafka-security.md says, and each error names what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from rights import PAGE, RIGHTS, MakeWorker, ask, clients, create, failure, named, names_of, overrides

from equipment.brokers.acls import Acl
from equipment.brokers.secured import SecuredBroker, User
from equipment.brokers.topics import create_topic, produce, read_topic
from equipment.proofs import thorough_rows
from equipment.waiting import wait_until
from equipment.workers.standalone import StandaloneWorker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

WORKER: Final = "A worker"
SUPPORT: Final = "A worker with exactly-once support"
SOURCE: Final = "A source"
EXACTLY_ONCE: Final = "An exactly-once source"
SINK: Final = "A sink"
QUEUE: Final = "A dead letter queue"
LETTERS: Final = "Viewing dead letters"
OFFSETS: Final = "Offsets of a sink"
HARMLESS: Final = "DescribeConfigs"
ONE_BROKER: Final = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}


@dataclass(frozen=True)
class Rig:
    """A worker that may do what it has to, and whatever a connector needs that no other test has."""

    broker: SecuredBroker
    worker: StandaloneWorker
    group: str
    folder: Path

    def connector(self, chapters: tuple[str, ...], without: Acl | None = None) -> Connector:
        """Names and users for a connector, with the rights of these chapters but one."""
        users = {kind: self.broker.new_user() for kind in ("admin", "producer", "consumer")}
        variables = {"WORKER": "admin", "PRODUCER": "producer", "CONSUMER": "consumer"}
        names = names_of(self.group, **{variable: users[kind].name for variable, kind in variables.items()})
        allowed = named(names, *chapters)
        missing = [] if without is None else [without.named(names)]
        self.broker.allow([acl for acl in allowed if acl not in missing])
        return Connector(self, names, users)


@dataclass(frozen=True)
class Connector:
    """The names and users of one test."""

    rig: Rig
    names: Mapping[str, str]
    users: Mapping[str, User]

    @property
    def lines(self) -> Path:
        """The file of the source."""
        return self.rig.folder / f"{self.names['SOURCE']}.txt"

    @property
    def written(self) -> Path:
        """The file of the sink."""
        return self.rig.folder / f"{self.names['SINK']}.txt"

    def source(self, **more: str) -> str:
        """Create a source of two lines."""
        self.lines.write_text("one\ntwo\n")
        name, own = self.names["SOURCE"], {"file": str(self.lines), "topic": self.names["TOPIC"]}
        self._create(name, {"connector.class": "FileStreamSource", **own, **ONE_BROKER, **more})
        return name

    def sink(self, **more: str) -> str:
        """Create a sink."""
        name, own = self.names["SINK"], {"file": str(self.written), "topics": self.names["TOPIC"]}
        self._create(name, {"connector.class": "FileStreamSink", **own, **more})
        return name

    def sink_with_queue(self) -> str:
        """Create a sink that understands no record."""
        tolerant = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": self.names["DLQ"]}
        context = {"errors.deadletterqueue.context.headers.enable": "true"}
        replicas = {"errors.deadletterqueue.topic.replication.factor": "1"}
        return self.sink(**{"value.converter": "JsonConverter"}, **tolerant, **context, **replicas)

    def _create(self, name: str, config: Mapping[str, str]) -> None:
        create(self.rig.worker, name, {**overrides(**self.users), **config})

    def topic_with(self, *values: bytes) -> None:
        """Let there be a topic."""
        create_topic(self.rig.broker.bootstrap, self.names["TOPIC"])
        produce(self.rig.broker.bootstrap, self.names["TOPIC"], list(values))

    def values(self, topic: str) -> list[bytes]:
        """What is on one of its topics."""
        return [message.value() for message in read_topic(self.rig.broker.bootstrap, self.names[topic])]


def rig_of(secured: SecuredBroker, make: MakeWorker, folder: Path, *chapters: str, **props: str) -> Rig:
    users = secured.new_user(), secured.new_user(), secured.new_user()
    group = f"group-{uuid4().hex[:12]}"
    secured.allow(named(names_of(group, WORKER=users[0].name), *chapters))
    worker = make(group, {**clients(*users), **props}).start()
    return Rig(secured, worker, group, folder)


@pytest.fixture(scope="module")
def rig(secured: SecuredBroker, secured_worker: MakeWorker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    yield rig_of(secured, secured_worker, tmp_path_factory.mktemp("files"), WORKER)


@pytest.fixture(scope="module")
def exact_rig(
    secured: SecuredBroker, secured_worker: MakeWorker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rig]:
    folder, support = tmp_path_factory.mktemp("files"), {"exactly.once.source.support": "enabled"}
    yield rig_of(secured, secured_worker, folder, WORKER, SUPPORT, **support)


def each(chapter: str) -> list[Any]:
    """The rights of a chapter, of which `make test` takes the first."""
    first, *others = [(chapter, acl) for acl in RIGHTS[chapter]]
    return [first, *thorough_rows(*others)]


def lacks(text: str, acl: Acl, connector: Connector) -> bool:
    """Whether a text says that this right is missing, or Describe, which is a part of it, and how it is given."""
    missing = acl.named(connector.names)
    resource = missing.resource.replace("-", " ")
    name = f"{missing.name}0" if missing.prefixed else missing.name
    return any(
        f"{operation} on {resource} {name}" in text and f"--operation {operation} --{missing.resource} {name}" in text
        for operation in (missing.operation, "Describe")
    )


# -- with exactly these rights -----------------------------------------------------------------------------------------


def test_a_source_a_sink_and_its_dead_letters_need_these_rights(rig: Rig) -> None:
    connector = rig.connector((SOURCE, SINK, QUEUE, LETTERS, OFFSETS))
    connector.source()
    sink = connector.sink_with_queue()
    wait_until("there are dead letters", lambda: connector.values("DLQ") == [b"one", b"two"])
    letters = ask(rig.worker, "GET", f"connectors/{sink}/dlq").json()["records"]
    assert [letter["offset"] for letter in letters] == [0, 1]
    ask(rig.worker, "PUT", f"connectors/{sink}/stop")
    rig.worker.wait_for_states(sink, "STOPPED")
    for method, path, body in offset_requests(connector):
        assert ask(rig.worker, method, path, body).status_code == 200


def test_a_sink_waits_for_a_topic_that_it_may_not_create(rig: Rig) -> None:
    """The brokers refuse it, as if it might not read the topic."""
    connector = rig.connector((SOURCE, SINK))
    sink = connector.sink()
    wait_until("it waits", lambda: "does not exist" in str(ask(rig.worker, "GET", f"connectors/{sink}/status").json()))
    connector.source()
    wait_until(
        "the lines are there", lambda: connector.written.exists() and connector.written.read_text() == "one\ntwo\n"
    )
    # The task looks for missing topics every few seconds, and may get records before.
    wait_until(
        "it waits no more",
        lambda: "does not exist" not in str(ask(rig.worker, "GET", f"connectors/{sink}/status").json()),
    )


def test_an_exactly_once_source_needs_these_rights(exact_rig: Rig) -> None:
    connector = exact_rig.connector((SOURCE, EXACTLY_ONCE))
    name = connector.source()
    wait_until("the lines are there", lambda: connector.values("TOPIC") == [b"one", b"two"])
    # Its former producers are fenced before it starts again with more tasks, or fewer.
    assert ask(exact_rig.worker, "POST", f"connectors/{name}/restart?includeTasks=true").status_code == 202
    with connector.lines.open("a") as lines:
        lines.write("three\n")
    wait_until("the last line is there", lambda: connector.values("TOPIC") == [b"one", b"two", b"three"])


# -- without one of them -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chapter", "acl"), each(SOURCE), ids=str)
def test_a_source_that_lacks_a_right_says_which(rig: Rig, chapter: str, acl: Acl) -> None:
    connector = rig.connector((chapter,), acl)
    name = connector.source()
    if acl.operation == HARMLESS:
        wait_until("the lines are there", lambda: connector.values("TOPIC") == [b"one", b"two"])
        return
    assert lacks(failure(rig.worker, name), acl, connector)


@pytest.mark.parametrize(("chapter", "acl"), each(EXACTLY_ONCE), ids=str)
def test_an_exactly_once_source_that_lacks_a_right_says_which(exact_rig: Rig, chapter: str, acl: Acl) -> None:
    connector = exact_rig.connector((SOURCE, chapter), acl)
    assert lacks(failure(exact_rig.worker, connector.source()), acl, connector)


@pytest.mark.parametrize(("chapter", "acl"), each(SINK), ids=str)
def test_a_sink_that_lacks_a_right_says_which(rig: Rig, chapter: str, acl: Acl) -> None:
    connector = rig.connector((chapter,), acl)
    connector.topic_with(b"one")
    assert lacks(failure(rig.worker, connector.sink()), acl, connector)


@pytest.mark.parametrize(("chapter", "acl"), each(QUEUE), ids=str)
def test_a_dead_letter_queue_that_lacks_a_right_says_which(rig: Rig, chapter: str, acl: Acl) -> None:
    connector = rig.connector((SINK, chapter), acl)
    connector.topic_with(b"one")
    assert lacks(failure(rig.worker, connector.sink_with_queue()), acl, connector)


@pytest.mark.parametrize(("chapter", "acl"), each(LETTERS), ids=str)
def test_a_look_at_dead_letters_that_lacks_a_right_says_which(rig: Rig, chapter: str, acl: Acl) -> None:
    connector = rig.connector((SINK, QUEUE, chapter), acl)
    connector.topic_with(b"one")
    sink = connector.sink_with_queue()
    wait_until("there is a dead letter", lambda: connector.values("DLQ") == [b"one"])
    answers = [
        ask(rig.worker, "GET", f"connectors/{sink}/dlq"),
        ask(rig.worker, "POST", f"connectors/{sink}/dlq/replay", {"to": "topic", "selection": "all"}),
    ]
    assert any(answer.status_code == 500 and lacks(answer.text, acl, connector) for answer in answers), answers


@pytest.mark.parametrize(("chapter", "acl"), each(OFFSETS), ids=str)
def test_requests_about_offsets_that_lack_a_right_say_which(rig: Rig, chapter: str, acl: Acl) -> None:
    connector = rig.connector((SINK, chapter), acl)
    connector.topic_with(b"one")
    sink = connector.sink()
    wait_until("the record is there", lambda: connector.written.exists() and connector.written.read_text() == "one\n")
    ask(rig.worker, "PUT", f"connectors/{sink}/stop")
    rig.worker.wait_for_states(sink, "STOPPED")
    answers = [ask(rig.worker, *request) for request in offset_requests(connector)]
    assert {answer.status_code for answer in answers} == {200, 500}
    for answer in answers:
        assert answer.ok or lacks(answer.text, acl, connector), answer.text


@pytest.mark.parametrize("kind", ["admin", "producer", "consumer"])
def test_a_task_whose_login_is_refused_fails_and_shows_no_password(rig: Rig, kind: str) -> None:
    connector = rig.connector((SOURCE, SINK))
    wrong = User(connector.users[kind].name, "wr0ng-s3cret")
    refused = overrides(**{kind: wrong})
    if kind == "consumer":
        connector.topic_with(b"one")
    trace = failure(rig.worker, connector.sink(**refused) if kind == "consumer" else connector.source(**refused))
    assert "Authentication failed" in trace
    assert "the admin client's user" in trace if kind == "admin" else f"the {kind}'s user" in trace
    assert "wr0ng-s3cret" not in trace
    assert "wr0ng-s3cret" not in rig.worker.log()


def offset_requests(connector: Connector) -> list[tuple[str, str, object]]:
    """One request of each kind about the offsets of a stopped sink."""
    offsets = f"connectors/{connector.names['SINK']}/offsets"
    partition = {"kafka_topic": connector.names["TOPIC"], "kafka_partition": 0}
    return [
        ("GET", offsets, None),
        ("GET", f"connectors/{connector.names['SINK']}/lag", None),
        ("PATCH", offsets, {"offsets": [{"partition": partition, "offset": {"kafka_offset": 1}}]}),
        ("POST", f"{offsets}/reset", {"to": "earliest"}),
        ("PATCH", offsets, {"offsets": [{"partition": partition, "offset": None}]}),
        ("DELETE", offsets, None),
    ]


# -- the page ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", RIGHTS)
def test_the_tables_of_the_page_say_what_its_commands_give(chapter: str) -> None:
    assert set(rows_of(chapter)) == {
        (acl.user.removeprefix("$").lower(), acl.operation, acl.resource, acl.name + ("..." if acl.prefixed else ""))
        for acl in RIGHTS[chapter]
    }


ROW: Final = re.compile(r"^\| (worker|producer|consumer) \| ([\w, ]+) \| ([^|]+) \|", re.MULTILINE)
ON: Final = re.compile(r"(group|topic|transactional id)s? ((?:`[^`]*\$[^`]+`(?:, (?=`))?)+)")


def rows_of(chapter: str) -> Iterator[tuple[str, str, str, str]]:
    """The rights in the table of a chapter."""
    text = PAGE.read_text().partition(f"\n## {chapter}\n")[2].partition("\n## ")[0]
    for user, operations, on in ROW.findall(text):
        for resource, names in ON.findall(on):
            for name in re.findall(r"`([^`]+)`", names):
                for operation in operations.split(", "):
                    yield user, operation, resource.replace(" ", "-"), name
