"""Admin clients that the tasks of a process share: each costs three threads and some connections."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from weakref import WeakValueDictionary

from confluent_kafka.admin import AdminClient

from connect.internals.kafka.settings.client import ClientProperties, PropertyValue

__all__ = ["shared_admin"]

_CLIENT_ID: Final = "client.id"
_SHARED_ID: Final = "connect-shared-admin"

_Key = frozenset[tuple[str, PropertyValue]]
_clients: WeakValueDictionary[_Key, AdminClient] = WeakValueDictionary()
_lock: Final = threading.Lock()


def shared_admin(properties: ClientProperties, make: Callable[[ClientProperties], AdminClient]) -> AdminClient:
    """Return the process's client with these properties, which is made if there is none.

    It is closed when none of its users refers to it any more. Its ``client.id`` is none of theirs.
    """
    shared = replace(properties, properties={**properties.properties, _CLIENT_ID: _SHARED_ID})
    key = frozenset(shared.properties.items())
    with _lock:
        client = _clients.get(key)
        if client is None:
            client = _clients[key] = make(shared)
        return client
