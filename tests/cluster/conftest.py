"""Fixtures of the cluster tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from equipment.workers.cluster import Cluster


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory, bootstrap: str) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters on the run's broker that live as long as the tests of one file."""
    made: list[Cluster] = []

    def make(workers: int = 3, **props: str | Callable[[int], str]) -> Cluster:
        folder = tmp_path_factory.mktemp("cluster") / f"cluster-{uuid4().hex[:12]}"
        made.append(Cluster(folder, bootstrap, workers, **props))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


@pytest.fixture
def cluster(tmp_path: Path, bootstrap: str) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters on the run's broker for one test."""
    made: list[Cluster] = []

    def make(workers: int = 2, **props: str | Callable[[int], str]) -> Cluster:
        made.append(Cluster(tmp_path / f"cluster-{uuid4().hex[:12]}", bootstrap, workers, **props))
        return made[-1]

    yield make
    for each in made:
        each.close()
