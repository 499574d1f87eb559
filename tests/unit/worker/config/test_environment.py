"""A worker's properties from variables, as the images of Kafka Connect take them."""

from __future__ import annotations

import pytest

from connect.errors import ConnectError
from worker.config.environment import take_worker_variables


def test_names_are_those_of_the_images() -> None:
    environ = {
        "CONNECT_BOOTSTRAP_SERVERS": "kafka:9092",
        "CONNECT_CONFIG_STORAGE_REPLICATION_FACTOR": "3",
        "CONNECT_PRODUCER_SSL_KEY__A": "dash",
        "CONNECT_LOG_LEVELS___X": "underscore",
        "CONNECT_LOG4J_ROOT_LOGLEVEL": "WARN",
        "PATH": "/bin",
        "CONNECT_": "no name",
    }
    assert take_worker_variables(environ) == {
        "bootstrap.servers": "kafka:9092",
        "config.storage.replication.factor": "3",
        "producer.ssl.key-a": "dash",
        "log.levels_x": "underscore",
        "log.level": "WARN",
    }
    assert environ == {"PATH": "/bin", "CONNECT_": "no name"}


def test_names_of_debeziums_images_need_no_prefix_and_give_way_to_those_that_have_it() -> None:
    environ = {"GROUP_ID": "1", "BOOTSTRAP_SERVERS": "a:1", "CONNECT_GROUP_ID": "2", "CONFIG_STORAGE_TOPIC": "c"}
    assert take_worker_variables(environ) == {
        "bootstrap.servers": "a:1",
        "group.id": "2",
        "config.storage.topic": "c",
    }
    assert not environ


def test_a_name_that_means_nothing_is_refused() -> None:
    with pytest.raises(ConnectError, match="CONNECT_A____B has 4 underscores together"):
        take_worker_variables({"CONNECT_A____B": "x"})
