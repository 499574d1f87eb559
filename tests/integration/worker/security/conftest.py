"""A broker that denies, and workers and users that it knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from rights import MakeWorker

from equipment.brokers.secured import SecuredBroker, secured_broker
from equipment.workers.cluster import LONG_SESSIONS
from equipment.workers.distributed import DistributedWorker
from equipment.workers.standalone import PATIENT


@pytest.fixture(scope="session")
def secured(broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """A broker with logins, TLS and rights, one for all the processes of this test run. Do not stop it."""
    assert broker_jars
    base = tmp_path_factory.getbasetemp()
    with secured_broker(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) as broker:
        yield broker


@pytest.fixture(scope="module")
def secured_worker(secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeWorker]:
    """Makes workers with a ``group.id`` and properties, at the listener of their ``security.protocol``."""
    workers: list[DistributedWorker] = []

    def make(group: str, props: Mapping[str, str]) -> DistributedWorker:
        bootstrap = secured.addresses[props["security.protocol"]]
        folder = tmp_path_factory.mktemp("secured") / group
        workers.append(DistributedWorker(folder, bootstrap, group=group, **PATIENT, **LONG_SESSIONS, **props))
        return workers[-1]

    yield make
    for worker in workers:
        worker.close()
