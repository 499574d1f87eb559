"""Whether a connector is a source or a sink: every worker of a cluster comes to the same answer."""

from __future__ import annotations

import pytest

from connect.errors import ConnectError
from connect.internals.plugins import PluginRegistry
from equipment.fakes.herding import Place, WorkedInbox
from worker.herder.connectors.connectors import Connectors, TopicTracking
from worker.metrics.measurements import Measurements
from worker.stores.config import records
from worker.stores.config.state import ConfigState
from worker.stores.config.store import ConfigStore, ConnectorEntry, MemoryConfigStore
from worker.stores.status.store import MemoryStatusStore

DOTTED = {"name": "c", "connector.class": "somebody.else.Connector", "topics": "a,b"}
LISTED = {"name": "c", "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"}


class FollowedStore(MemoryConfigStore):
    """The store of a worker that only reads what the leader has written."""

    def __init__(self, state: ConfigState) -> None:
        super().__init__()
        self._state = state

    def connectors(self) -> dict[str, ConnectorEntry]:
        return dict(self._state.connectors)


def connectors_of(store: ConfigStore) -> Connectors:
    statuses = MemoryStatusStore()
    measurements = Measurements("here:1", statuses, Place(), WorkedInbox(), None)
    return Connectors(store, statuses, PluginRegistry.discover(()), TopicTracking(), measurements)


def followed(*config_records: tuple[bytes, bytes | None]) -> Connectors:
    state = ConfigState()
    for record in config_records:
        state.apply(records.parse(*record))
    return connectors_of(FollowedStore(state))


@pytest.mark.parametrize("found", ["source", "sink"])
def test_a_worker_that_did_not_validate_knows_what_the_leader_found(found: str) -> None:
    follower = followed(records.connector_record("c", DOTTED, found))
    assert follower.type("c") == follower.info("c")["type"] == found
    assert follower.is_source("c") is (found == "source")


def test_a_new_configuration_has_a_type_of_its_own() -> None:
    follower = followed(records.connector_record("c", DOTTED, "sink"), records.connector_record("c", DOTTED, "source"))
    assert follower.type("c") == "source"


def test_of_what_a_leader_of_kafka_connect_wrote_the_list_of_plugins_tells() -> None:
    assert followed(records.connector_record("c", LISTED)).is_source("c")


def test_what_nobody_has_told_is_not_guessed() -> None:
    for config in (DOTTED, {key: value for key, value in DOTTED.items() if key != "topics"}):
        follower = followed(records.connector_record("c", config))
        assert follower.type("c") == "unknown"
        with pytest.raises(ConnectError, match="unknown whether connector c is a source or a sink"):
            follower.is_source("c")


@pytest.mark.parametrize("nonsense", [b'"SOURCE"', b"1", b"null", b"[]"])
def test_a_type_that_is_none_is_as_if_there_were_none(nonsense: bytes) -> None:
    follower = followed((b"connector-c", b'{"properties":{"name":"c"},"type":%b}' % nonsense))
    assert follower.type("c") == "unknown"


def test_a_standalone_worker_keeps_it_as_well() -> None:
    store = MemoryConfigStore()
    store.put_connector("c", DOTTED, None, plugin_type="sink")
    assert connectors_of(store).type("c") == "sink"
    store.put_connector("c", DOTTED, None, plugin_type="source")
    assert connectors_of(store).is_source("c")


def test_the_record_is_java_s_and_what_we_add() -> None:
    key, value = records.connector_record("c", {"name": "c"}, "source")
    assert (key, value) == (b"connector-c", b'{"properties":{"name":"c"},"type":"source"}')
    assert records.connector_record("c", {"name": "c"})[1] == b'{"properties":{"name":"c"}}'
