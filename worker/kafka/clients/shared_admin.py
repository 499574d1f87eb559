"""Admin clients that the tasks of a process share, one for each login, and the questions about groups they ask.

Whoever asks for a group's coordinator by librdkafka must be careful: if the request times out, or loses its connection,
while the client still looks for the coordinator, librdkafka aborts the process (pull request 5397), with all tasks in
it. So a request is given up long before it times out, together with its client, which nothing else uses.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakValueDictionary

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from connect.internals.kafka.settings.client import ClientProperties, PropertyValue

__all__ = ["SharedAdmin"]

_CLIENT_ID: Final = "client.id"
_FOR_TOPICS: Final = "connect-shared-admin"
_FOR_GROUPS: Final = "connect-shared-groups"
_LONGER_SECONDS: Final = 60.0
"""How much longer than its caller the client would wait."""
_LOOK_AGAIN_SECONDS: Final = 0.1
_MOVING: Final = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
_Key = frozenset[tuple[str, PropertyValue]]
_clients: WeakValueDictionary[_Key, AdminClient] = WeakValueDictionary()
_lock: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class SharedAdmin:
    """The process's clients with a task's properties, except for its ``client.id``. For any thread."""

    properties: ClientProperties
    make: Callable[[ClientProperties], AdminClient]

    def client(self) -> AdminClient:
        """Return the client for topics, which is made if there is none, and closed when nobody refers to it."""
        return self._client(_FOR_TOPICS)

    def describe_group(self, group: str, seconds: float) -> Any:
        """Return the description of a group.

        Raises ``KafkaException``, also if the group's coordinator does not answer, or is not there, within ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._description(group, deadline - time.monotonic())
            except KafkaException as error:
                # A new cluster has coordinators when somebody has asked for one.
                if error.args[0].code() not in _MOVING or time.monotonic() + _LOOK_AGAIN_SECONDS >= deadline:
                    raise
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _description(self, group: str, seconds: float) -> Any:
        client = self._client(_FOR_GROUPS)
        asked = client.describe_consumer_groups([group], request_timeout=seconds + _LONGER_SECONDS)[group]
        try:
            return asked.result(seconds)
        except TimeoutError:
            self._forget(client)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
        finally:
            client.poll(0)

    def _client(self, client_id: str) -> AdminClient:
        wanted = replace(self.properties, properties={**self.properties.properties, _CLIENT_ID: client_id})
        key = frozenset(wanted.properties.items())
        with _lock:
            client = _clients.get(key)
            if client is None:
                client = _clients[key] = self.make(wanted)
            return client

    def _forget(self, client: AdminClient) -> None:
        """Give this client to nobody any more: it is closed when the last one who waits for it has given up."""
        with _lock:
            for key in [key for key, known in _clients.items() if known is client]:
                del _clients[key]
