"""The topic of the audit, and what it says of an event that it cannot keep."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

from connect.errors import ConnectError
from equipment.brokers.topics import create_topic, read_topic
from worker.kafka.clients.audit_topic import AuditTopic

pytestmark = pytest.mark.integration

TOO_LARGE = json.dumps({"id": "x" * 2_000_000}).encode()


@pytest.fixture
def audit_topic(bootstrap: str) -> str:
    name = f"audit-{uuid4().hex[:12]}"
    create_topic(bootstrap, name)
    return name


def test_an_event_is_kept_or_refused(bootstrap: str, audit_topic: str) -> None:
    topic = AuditTopic(audit_topic, {"bootstrap.servers": bootstrap}, waits=True)
    topic.write(b'{"id": "1"}')
    with pytest.raises(ConnectError, match=f"The audit topic {audit_topic} cannot be written to: .*[Mm]essage size"):
        topic.write(TOO_LARGE)
    topic.write(b'{"id": "2"}')
    topic.close()
    assert [message.value() for message in read_topic(bootstrap, audit_topic)] == [b'{"id": "1"}', b'{"id": "2"}']
