"""Passwords that are changed on a broker while workers use them."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from rights import MakeWorker, ask, create, every_client, failure, named, names_of

from equipment.brokers.secured import SecuredBroker, User
from equipment.brokers.topics import read_topic
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PATIENCE = 90.0


class Secrets:
    """A file of passwords, to which configurations refer."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._kept: dict[str, str] = {}

    def keep(self, **users: User) -> None:
        """Write the passwords of users into the file."""
        self._kept |= {key: user.password for key, user in users.items()}
        self.file.write_text("".join(f"{key}={password}\n" for key, password in self._kept.items()))

    def login(self, key: str, user: User) -> dict[str, str]:
        """How a client logs in with the password that the file has."""
        reference = user.jaas_config.replace(user.password, f"${{file:{self.file}:{key}}}")
        return {**user.login, "sasl.jaas.config": reference}


def restart(worker: DistributedWorker, name: str) -> None:
    assert ask(worker, "POST", f"connectors/{name}/restart?includeTasks=true").status_code == 202


class Lines:
    """The file of a source, and the topic it goes to."""

    def __init__(self, secured: SecuredBroker, file: Path, topic: str) -> None:
        creation = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
        self.source = {"connector.class": "FileStreamSource", "file": str(file), "topic": topic, **creation}
        self._bootstrap, self._file, self._topic = secured.bootstrap, file, topic
        self._sent = 0
        file.touch()

    def come_through(self, line: str) -> None:
        """Write one more, and wait until it is there."""
        self._sent += 1
        with self._file.open("a") as file:
            file.write(f"{line}\n")
        wait_until(f"{line} is there", lambda: len(read_topic(self._bootstrap, self._topic)) == self._sent, PATIENCE)


def test_passwords_change_while_connectors_run(
    secured: SecuredBroker, secured_worker: MakeWorker, tmp_path: Path
) -> None:
    group, secrets = f"group-{uuid4().hex[:12]}", Secrets(tmp_path / "secrets.properties")
    user, own = secured.new_user(), secured.new_user("SCRAM-SHA-512")
    secrets.keep(worker=user, source=own)
    names = names_of(group, WORKER=user.name, PRODUCER=own.name)
    others = names | names_of(group, PRODUCER=user.name)
    chapters = ("A worker", "The history of configurations", "A source")
    secured.allow([*named(names, *chapters), *named(others, "A source")])
    provider = {"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}
    worker = secured_worker(group, every_client(secrets.login("worker", user)) | provider)
    worker.start()
    login = {f"producer.override.{key}": value for key, value in secrets.login("source", own).items()}
    name, lines = names["SOURCE"], Lines(secured, tmp_path / "in.txt", names["TOPIC"])
    create(worker, name, lines.source | login)
    lines.come_through("before")

    # A broker asks for the password when a connection begins: those that there are go on.
    new_own = secured.change_password(own)
    lines.come_through("over the connection that there was")
    restart(worker, name)
    told = failure(worker, name)
    assert "Check the login of the producer's user: sasl.mechanism, and the user and password" in told
    secrets.keep(source=new_own)
    restart(worker, name)
    lines.come_through("with the new password")

    new_user = secured.change_password(user)
    secrets.keep(worker=new_user)
    lines.come_through("while the worker goes on")
    more = Lines(secured, tmp_path / "more.txt", others["TOPIC"])
    create(worker, others["SOURCE"], more.source)
    more.come_through("by a task that begins with the worker's new password")
    assert worker.terminate() == 0
    worker.start()
    lines.come_through("after the restart")
    more.come_through("after the restart")
    for password in (one.password for one in (user, own, new_user, new_own)):
        assert password not in worker.log() + told
    assert "could not be added to their history" not in worker.log(), "the worker has the rights that this needs"
