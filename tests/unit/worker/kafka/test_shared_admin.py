"""Admin clients that tasks share exist while one of them uses them."""

from __future__ import annotations

import gc
import weakref

from connect.internals.kafka.clients import librdkafka
from connect.internals.kafka.settings.client import ClientProperties
from worker.kafka.clients.shared_admin import SharedAdmin


def settings(**more: str) -> ClientProperties:
    given = {"metadata.broker.list": "127.0.0.1:1", "client.id": "connector-consumer-orders-0"}
    return ClientProperties(
        properties=given | {key.replace("_", "."): at for key, at in more.items()}, runtime={}, ignored={}
    )


def test_tasks_with_the_same_login_share_a_client_until_none_uses_it() -> None:
    first = SharedAdmin(settings(), librdkafka.admin).client()
    second = SharedAdmin(settings(client_id="connector-consumer-orders-1"), librdkafka.admin).client()
    assert second is first
    ended = weakref.ref(first)
    del first
    gc.collect()
    assert ended() is second
    del second
    assert ended() is None


def test_tasks_with_logins_of_their_own_share_none() -> None:
    first = SharedAdmin(settings(sasl_username="alice"), librdkafka.admin).client()
    assert SharedAdmin(settings(sasl_username="bob"), librdkafka.admin).client() is not first
