"""The contract kit over the source connector of mirrors, between two brokers.

Checkpoints and heartbeats have no position to resume from: they are tested with the group offsets and times they tell.
"""

from __future__ import annotations

import pytest

from connect.testing import SourceConnectorTests
from connectors.mirror import MirrorSourceConnector
from equipment.brokers.topics import create_topic, produce
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
