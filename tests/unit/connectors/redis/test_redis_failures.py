"""What the server's answers mean: to be retried, of one record, or permanent."""

from __future__ import annotations

import pytest
from redis import exceptions
from redis._parsers.base import BaseParser

from connectors.redis.failures import Kind, failure, kind_of


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("LOADING Redis is loading the dataset in memory", Kind.PASSING),
        ("READONLY You can't write against a read only replica.", Kind.PASSING),
        ("OOM command not allowed when used memory > 'maxmemory'.", Kind.PASSING),
        ("MISCONF Redis is configured to save RDB snapshots", Kind.PASSING),
        ("NOREPLICAS Not enough good replicas to write.", Kind.PASSING),
        ("CLUSTERDOWN The cluster is down", Kind.PASSING),
        ("TRYAGAIN Multiple keys request during rehashing of slot", Kind.PASSING),
        ("MASTERDOWN Link with MASTER is down", Kind.PASSING),
        ("ERR max number of clients reached", Kind.PASSING),
        ("MOVED 3999 127.0.0.1:6381", Kind.PERMANENT),
        ("CROSSSLOT Keys in request don't hash to the same slot", Kind.PERMANENT),
        ("NOAUTH Authentication required.", Kind.PERMANENT),
        ("WRONGPASS invalid username-password pair or user is disabled.", Kind.PERMANENT),
        ("NOPERM this user has no permissions to run the 'set' command", Kind.PERMANENT),
        ("ERR unknown command 'JSON.SET', with args beginning with: 'a' ", Kind.PERMANENT),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", Kind.RECORD),
        ("ERR value is not a valid float", Kind.RECORD),
    ],
)
def test_answers_of_the_server(answer: str, kind: Kind) -> None:
    assert kind_of(BaseParser.parse_error(answer)) is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.ConnectionError("Connection refused"), Kind.PASSING),
        (exceptions.TimeoutError("Timeout reading from socket"), Kind.PASSING),
        (OSError("no route"), Kind.PASSING),
        (exceptions.RedisClusterException("Redis Cluster cannot be connected"), Kind.PASSING),
        (exceptions.WatchError("Watched variable changed."), None),
        (ValueError("a mistake"), None),
    ],
)
def test_errors_of_the_client(error: Exception, kind: Kind | None) -> None:
    assert kind_of(error) is kind


def test_a_failure_says_what_to_do() -> None:
    found = failure(BaseParser.parse_error("MOVED 1 host:1"), "write to Redis")
    assert "set redis.cluster=true" in str(found)
