"""Patience a cluster for its groups, where it does not answer."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from connect.errors import RetriableError
from connectors.mirror.checkpoints import GroupOffset
from connectors.mirror.groups import Groups
from connectors.mirror.patience import Patience


class Away:
    """The client of a cluster that never answers; it knows for how long it was asked to wait."""

    def __init__(self) -> None:
        self.timeouts: list[float] = []

    def describe_consumer_groups(self, names: list[str], request_timeout: float) -> dict[str, Future[Any]]:
        self.timeouts.append(request_timeout)
        return {name: Future() for name in names}

    def alter_consumer_group_offsets(self, asked: list[Any], request_timeout: float) -> dict[str, Future[Any]]:
        self.timeouts.append(request_timeout)
        return {each.group_id: Future() for each in asked}


@pytest.fixture
def made() -> list[Away]:
    """The clients that were made."""
    return []


@pytest.fixture
def groups(made: list[Away]) -> Groups:
    """The groups of a cluster that is away."""

    def connect() -> Any:
        made.append(Away())
        return made[-1]

    return Groups(connect, Patience("A", 0.01, lambda _: True))


def test_a_client_is_given_up_before_its_requests_time_out(groups: Groups, made: list[Away]) -> None:
    assert made == []
    for count in (1, 2):
        assert isinstance(groups.states(["g"])["g"], RetriableError)
        assert len(made) == count
    with pytest.raises(RetriableError, match="The cluster A has not answered"):
        groups.commit("g", [GroupOffset("t", 0, 1)])
    assert len(made) == 3
    assert all(timeout > 10 for client in made for timeout in client.timeouts)


def test_offsets_are_not_asked_for_of_groups_that_nobody_describes(groups: Groups, made: list[Away]) -> None:
    # The client has no method for it, and would fail.
    assert isinstance(groups.committed(["g"])["g"], RetriableError)
    assert [len(client.timeouts) for client in made] == [1]
