"""The rights that docs/kafka-security.md says are needed, and names for what they are on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from uuid import uuid4

import requests

from equipment.brokers.acls import Acl, acls_of, blocks_of
from equipment.brokers.secured import User
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import StandaloneWorker

__all__ = [
    "PAGE",
    "RIGHTS",
    "MakeWorker",
    "ask",
    "clients",
    "create",
    "every_client",
    "failure",
    "named",
    "names_of",
    "overrides",
]

PAGE: Final = Path(__file__).parents[4] / "docs" / "kafka-security.md"
RIGHTS: Final[Mapping[str, tuple[Acl, ...]]] = {
    title: tuple(acls_of(block)) for title, block in blocks_of(PAGE).items() if "kafka-acls.sh" in block
}
"""What the commands of each chapter allow; names are variables yet."""


MakeWorker = Callable[[str, Mapping[str, str]], DistributedWorker]
"""Makes a worker with a ``group.id`` and properties, at the listener of their ``security.protocol``."""


def names_of(group: str, **more: str) -> dict[str, str]:
    """The variables of the page, for a cluster as the tests make it, and connectors that no other test has."""
    unique = uuid4().hex[:12]
    return {
        "GROUP": group,
        "CONFIGS": f"{group}-config",
        "OFFSETS": f"{group}-offset",
        "STATUSES": f"{group}-status",
        "HISTORY": f"{group}-config-history",
        "SOURCE": f"source-{unique}",
        "SINK": f"sink-{unique}",
        "TOPIC": f"topic-{unique}",
        "DLQ": f"dlq-{unique}",
        **more,
    }


def named(names: Mapping[str, str], *chapters: str) -> list[Acl]:
    """The rights of chapters, with these names."""
    return [acl.named(names) for chapter in chapters for acl in RIGHTS[chapter]]


def clients(worker: User, producer: User, consumer: User) -> dict[str, str]:
    """The properties of a worker whose clients log in as these users."""
    return {
        **worker.login,
        **{f"producer.{key}": value for key, value in producer.login.items()},
        **{f"consumer.{key}": value for key, value in consumer.login.items()},
    }


def every_client(settings: Mapping[str, str]) -> dict[str, str]:
    """The properties of a worker all of whose clients have these settings."""
    return {f"{prefix}{key}": value for key, value in settings.items() for prefix in ("", "producer.", "consumer.")}


def overrides(**users: User) -> dict[str, str]:
    """The keys of a connector whose clients log in as others than the worker's."""
    return {f"{kind}.override.sasl.jaas.config": user.jaas_config for kind, user in users.items()}


def ask(worker: StandaloneWorker, method: str, path: str, body: object = None) -> requests.Response:
    """What a worker answers, asked again while its cluster rebalances."""

    def answered() -> list[requests.Response]:
        response = requests.request(method, worker.url() + path, json=body, timeout=90)
        return [] if response.status_code == 409 else [response]

    return wait_until(f"{method} {path} is answered", answered, 90)[0]


def create(worker: StandaloneWorker, name: str, config: Mapping[str, str]) -> None:
    """Create a connector."""
    response = ask(worker, "PUT", f"connectors/{name}/config", dict(config))
    assert response.status_code == 201, response.text


def failure(worker: StandaloneWorker, name: str) -> str:
    """Why a task of a connector has failed."""

    def trace() -> str:
        status = worker.status(name)
        return "".join(str(task["trace"]) for task in status.get("tasks", ()) if task["state"] == "FAILED")

    return wait_until(f"{name} has failed", trace, 90)
