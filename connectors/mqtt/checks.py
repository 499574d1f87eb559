"""What a validation finds out by connecting, under a client id of its own, so that no session is disturbed."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import uuid4

from connect.errors import ConnectError
from connectors.mqtt.config import ConnectionConfig
from connectors.mqtt.session import Session, refused_filters

__all__ = ["connection_problems", "subscription_problems"]

_ANSWER_SECONDS: Final = 10.0


def connection_problems(config: ConnectionConfig) -> Iterator[tuple[str, str]]:
    """Yield a key and the reason if the server cannot be connected to."""
    yield from subscription_problems(config, (), 0)


def subscription_problems(config: ConnectionConfig, filters: Iterable[str], qos: int) -> Iterator[tuple[str, str]]:
    """Yield a key and the reason if the server cannot be connected to, or refuses a subscription.

    Nothing is received: the connection ends with the answer, and the session with it.
    """
    changes: queue.SimpleQueue[Any] = queue.SimpleQueue()
    own = type(config).parse(
        {**config.originals, "mqtt.client.id": f"sluice-{uuid4().hex[:12]}", "mqtt.will.topic": ""}
    )
    session = Session(own, is_clean=True, opened=lambda _: None, changed=lambda: changes.put(None))
    wanted = list(filters)
    session.client.on_subscribe = lambda _client, _data, _mid, codes, _properties: changes.put(codes)
    session.start()
    try:
        problem = _answered(session, changes, config)
        if problem is not None:
            yield "mqtt.server.uri", problem
        elif wanted:
            session.client.subscribe([(each, qos) for each in wanted])
            yield from (("mqtt.topics", each) for each in refused_filters(wanted, _codes(changes)))
    finally:
        session.close()


def _answered(session: Session, changes: queue.SimpleQueue[Any], config: ConnectionConfig) -> str | None:
    """Return why there is no connection; ``None`` if there is one."""
    for _ in config.servers:
        try:
            changes.get(timeout=config.mqtt_connect_timeout_seconds + _ANSWER_SECONDS)
        except queue.Empty:
            break
        if session.is_open:
            return None
    failure: ConnectError | None = session.failure
    return str(failure) if failure is not None else f"The MQTT server {config.place} does not answer."


def _codes(changes: queue.SimpleQueue[Any]) -> list[Any]:
    try:
        while (codes := changes.get(timeout=_ANSWER_SECONDS)) is None:
            pass
    except queue.Empty:
        return []
    return list(codes)
