"""Asks a cluster for its groups, where it does not answer or answers in part."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from connect.errors import ConnectError, RetriableError
from connectors.mirror.checkpoint.monitor import translated_text
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


def _listed(*errors: int) -> Any:
    """Return the groups of a cluster of which one broker lists its group, and others fail."""

    def connect() -> Any:
        answer: Future[Any] = Future()
        failures = [KafkaException(KafkaError(error)) for error in errors]
        answer.set_result(SimpleNamespace(valid=[SimpleNamespace(group_id="g")], errors=failures))
        return SimpleNamespace(list_consumer_groups=lambda request_timeout: answer)

    return Groups(connect, Patience("A", 1, lambda _: True))


def test_all_groups_are_listed() -> None:
    assert _listed().names() == ["g"]


@pytest.mark.parametrize("error", [KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError._TRANSPORT])
def test_a_list_without_the_groups_of_a_broker_that_loads_is_no_list(error: int) -> None:
    with pytest.raises(RetriableError, match=r"The cluster A was asked to list its groups: .*incomplete.* Try again"):
        _listed(error).names()


def test_a_broker_that_refuses_to_list_its_groups_is_not_asked_again() -> None:
    with pytest.raises(ConnectError, match="The cluster A was asked to list its groups") as refused:
        _listed(KafkaError.CLUSTER_AUTHORIZATION_FAILED).names()
    assert not isinstance(refused.value, RetriableError)


@pytest.mark.parametrize(
    ("groups", "text"),
    [
        ((), "There is no group left to translate offsets of"),
        (("g",), "Translating the offsets of 1 group: g"),
        (("g", "h"), "Translating the offsets of 2 groups: g, h"),
    ],
)
def test_the_groups_that_are_translated_are_counted(groups: tuple[str, ...], text: str) -> None:
    assert translated_text(groups) == text
