"""The contract kit over the connectors of mirrors, between two brokers.

Checkpoints and heartbeats have no position to resume from: those of a task that starts again may say the same again.
"""

from __future__ import annotations

import pytest

from connect.data import SourceRecord
from connect.testing import SourceConnectorTests
from connectors.mirror import MirrorCheckpointConnector, MirrorHeartbeatConnector, MirrorSourceConnector
from equipment.brokers.topics import create_topic, produce
from equipment.brokers.written_flow import WrittenFlow
from worker.embedded.broker.server import BrokerInfo

pytestmark = pytest.mark.integration


class TestMirrorSource(SourceConnectorTests):
    connector_class = MirrorSourceConnector
    record_count = 2

    @pytest.fixture
    def props(self, bootstrap: str, second_broker: BrokerInfo, topic: str) -> dict[str, str]:
        create_topic(bootstrap, topic)
        produce(bootstrap, topic, [b"one", b"two"])
        return {
            "source.cluster.alias": "A",
            "target.cluster.alias": topic,
            "source.cluster.bootstrap.servers": bootstrap,
            "target.cluster.bootstrap.servers": second_broker.bootstrap_servers,
            "topics": topic,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "sync.topic.acls.enabled": "false",
            "sync.topic.configs.enabled": "false",
        }


@pytest.fixture(scope="module")
def flow(bootstrap: str, second_broker: BrokerInfo) -> WrittenFlow:
    """A flow of which two groups have read."""
    flow = WrittenFlow(bootstrap, second_broker.bootstrap_servers)
    flow.write_syncs((0, 0))
    flow.write_runs((0, 0, 1000))
    flow.commit(150)
    flow.commit(100, f"{flow.group}-2")
    return flow


class TestMirrorCheckpoints(SourceConnectorTests):
    connector_class = MirrorCheckpointConnector
    resumes_exactly = False

    @pytest.fixture
    def props(self, flow: WrittenFlow) -> dict[str, str]:
        return flow.props


class TestMirrorHeartbeats(SourceConnectorTests):
    connector_class = MirrorHeartbeatConnector
    resumes_exactly = False
    record_count = 2

    @pytest.fixture
    def props(self, flow: WrittenFlow) -> dict[str, str]:
        return {**flow.props, "emit.heartbeats.interval.seconds": "0"}

    def identity(self, record: SourceRecord) -> object:
        return record.topic, record.key
