"""The settings of each Kafka client by its role: a source task's producer, a sink task's consumer, and so on.

Layers from low to high: Java's defaults and Sluice's, Connect's settings for the role, the worker's ``producer.`` (or
``consumer.``, ``admin.``) settings, the connector's ``producer.override.`` settings, and forced settings. Java's keys
are translated to librdkafka's in :mod:`connect.internals.kafka.settings`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from connect.config.errors import ConfigRuleError, keys_of
from connect.errors import ConfigError
from connect.internals.kafka.settings.client import ClientKind, ClientProperties
from connect.internals.kafka.settings.java_keys import CLIENT_KEYS, Ignored
from connect.internals.kafka.settings.native_keys import is_native_key
from connect.internals.kafka.settings.overrides import refused_overrides
from connect.internals.kafka.settings.properties import JAVA_DEFAULTS, layered, librdkafka_properties

__all__ = [
    "admin_properties",
    "client_id_base",
    "dlq_admin_properties",
    "dlq_consumer_properties",
    "dlq_group_id",
    "dlq_producer_properties",
    "internal_properties",
    "keeps_order",
    "sink_client_id",
    "sink_consumer_properties",
    "sink_group_id",
    "source_offsets_consumer_properties",
    "source_producer_properties",
    "transactional_id",
]

_OUR_DEFAULTS: Mapping[ClientKind, Mapping[str, str]] = MappingProxyType(
    {
        # I9: like Java's, a producer buffers 32 MiB of records, but no more than 100,000 of them, because each has an
        # overhead of some hundred bytes.
        ClientKind.PRODUCER: {
            "buffer.memory": str(32 * 1024 * 1024),
            "queue.buffering.max.messages": "100000",
            "linger.ms": "5",
        },
        # I9: 32 MiB may be queued for consumption and 16 MiB being fetched from a broker. A consumer whose queue is
        # full waits for the back-off, 1,000 ms by default, and a quick sink empties it meanwhile. With 10 ms one
        # consumes 750,000 records a second, with 4 ms 1,600,000.
        ClientKind.CONSUMER: {
            "queued.max.messages.kbytes": str(32 * 1024),
            "queued.min.messages": "5000",
            "fetch.max.bytes": str(16 * 1024 * 1024),
            "fetch.queue.backoff.ms": "4",
        },
        ClientKind.ADMIN: {},
    }
)

_IN_FLIGHT = "max.in.flight.requests.per.connection"
_INT_MAX = str(2**31 - 1)
_LONG_MAX = str(2**63 - 1)

# These belong to the worker's own membership, although consumers have settings with the same names.
_WORKER_GROUP_KEYS = frozenset(("group.id", "session.timeout.ms", "heartbeat.interval.ms"))

_WORKER_PREFIXES = tuple(kind.worker_prefix for kind in ClientKind)


def sink_group_id(connector_name: str) -> str:
    """Return the default consumer group of a sink connector."""
    return f"connect-{connector_name}"


def dlq_group_id(connector_name: str) -> str:
    """Return the group of a sink's positions in its dead letter queue.

    It is also the transactional id of the queue's writer.
    """
    return f"{sink_group_id(connector_name)}-dlq"


def transactional_id(group_id: str, connector_name: str, task: int) -> str:
    """Return the transactional id of an exactly-once source task in the cluster ``group_id``."""
    return f"{group_id}-{connector_name}-{task}"


def client_id_base(worker: Mapping[str, str]) -> str:
    """Return the prefix of the client ids of a worker's own clients."""
    base = worker.get("group.id", "").strip() or "connect"
    own = worker.get("client.id", "").strip()
    return f"{base}-{own}-" if own else f"{base}-"


def source_producer_properties(
    worker: Mapping[str, str], connector: Mapping[str, str], task: int, *, exactly_once: bool = False
) -> ClientProperties:
    """Return the settings of a source task's producer; ``exactly_once`` makes it transactional."""
    name = connector["name"]
    forced: dict[str, str] = {}
    if exactly_once:
        forced = {
            "enable.idempotence": "true",
            "transactional.id": transactional_id(worker["group.id"], name, task),
        }
    return _task_producer_properties(worker, connector, f"connector-producer-{name}-{task}", forced)


def keeps_order(properties: ClientProperties) -> bool:
    """Return whether a producer always writes the records of a partition in the order in which it got them."""
    return bool(properties.properties["enable.idempotence"]) or properties.properties.get(_IN_FLIGHT) == 1


def dlq_producer_properties(
    worker: Mapping[str, str], connector: Mapping[str, str], task: int, *, exactly_once: bool = False
) -> ClientProperties:
    """Return the settings of the producer for a sink task's dead letter queue, which may be transactional."""
    client_id = f"connector-dlq-producer-{connector['name']}-{task}"
    forced: dict[str, str] = {}
    if exactly_once:
        forced = {"enable.idempotence": "true", "transactional.id": dlq_group_id(connector["name"])}
    return _task_producer_properties(worker, connector, client_id, forced)


def _task_producer_properties(
    worker: Mapping[str, str], connector: Mapping[str, str], client_id: str, forced: Mapping[str, str]
) -> ClientProperties:
    role = _bootstrap(worker) | {
        "acks": "all",  # I1
        "client.id": client_id,
        "delivery.timeout.ms": _INT_MAX,
        "max.block.ms": _LONG_MAX,
    }
    properties = _task_client(ClientKind.PRODUCER, role, worker, connector, forced)
    if properties.properties["enable.idempotence"] or _IN_FLIGHT in properties.properties:
        return properties
    # Idempotence keeps the order of records with many requests in flight; without it there may be only one.
    return _task_client(ClientKind.PRODUCER, {**role, _IN_FLIGHT: "1"}, worker, connector, forced)


def sink_client_id(connector_name: str, task: int) -> str:
    """Return the ``client.id`` of a sink task's consumer, unless the configuration has another."""
    return f"connector-consumer-{connector_name}-{task}"


def sink_consumer_properties(
    worker: Mapping[str, str], connector: Mapping[str, str], task: int, *, shares: bool = False
) -> ClientProperties:
    """Return the settings of a sink task's consumer; ``shares`` says whether the task shares its process."""
    role = _bootstrap(worker) | {
        "auto.offset.reset": "earliest",
        "client.id": sink_client_id(connector["name"], task),
        # Brokers answer as soon as there is a record; this is how often a consumer asks again while there is none.
        "fetch.max.wait.ms": "1000",
        "group.id": sink_group_id(connector["name"]),
    }
    if shares:
        # There, a consumer with a full queue asks again up to 0.2 s late, and must not run dry until then.
        role["queued.min.messages"] = "100000"
    if connector.get("topics.regex", "").strip():
        role["exclude.internal.topics"] = "true"
    if connector.get("run.until", "").strip() == "drained":
        # A misspelled topic should be missed, and not be created and found empty.
        role["allow.auto.create.topics"] = "false"
    # I2: the worker commits an offset when the task says that its data is durable.
    forced = {"enable.auto.commit": "false", "enable.auto.offset.store": "false"}
    return _task_client(ClientKind.CONSUMER, role, worker, connector, forced)


def dlq_consumer_properties(worker: Mapping[str, str], connector: Mapping[str, str], task: int) -> ClientProperties:
    """Return the settings of the consumer for a sink's dead letter queue, which does not read uncommitted records."""
    properties = sink_consumer_properties(worker, connector, task)
    own = {"group.id": dlq_group_id(connector["name"]), "isolation.level": "read_committed"}
    return replace(properties, properties={**properties.properties, **own})


def source_offsets_consumer_properties(
    worker: Mapping[str, str], connector: Mapping[str, str], task: int | None, *, exactly_once: bool = False
) -> ClientProperties:
    """Return the settings of the consumer that reads the offsets topic for a source connector or one of its tasks."""
    client_id = f"connector-consumer-{_numbered(connector, task)}"
    role = _bootstrap(worker) | {"client.id": client_id}
    forced = _reads_a_whole_topic(client_id)
    if exactly_once:
        forced["isolation.level"] = "read_committed"
    return _task_client(ClientKind.CONSUMER, role, worker, connector, forced)


def admin_properties(
    worker: Mapping[str, str], connector: Mapping[str, str], task: int | None = None
) -> ClientProperties:
    """Return the settings of the admin client of a connector or one of its tasks."""
    return _admin_properties(worker, connector, f"connector-adminclient-{_numbered(connector, task)}")


def dlq_admin_properties(worker: Mapping[str, str], connector: Mapping[str, str], task: int) -> ClientProperties:
    """Return the settings of the admin client that creates a sink task's dead letter queue."""
    return _admin_properties(worker, connector, f"connector-dlq-adminclient-{_numbered(connector, task)}")


def _admin_properties(worker: Mapping[str, str], connector: Mapping[str, str], client_id: str) -> ClientProperties:
    role = {"client.id": client_id} | _worker_own(worker, ClientKind.ADMIN)
    return _task_client(ClientKind.ADMIN, role, worker, connector, {})


def internal_properties(
    worker: Mapping[str, str], kind: ClientKind, purpose: str, settings: Mapping[str, str] | None = None
) -> ClientProperties:
    """Return the settings of a client of the worker itself, from the worker's settings without a prefix.

    ``purpose`` completes its client id: ``configs``, ``offsets``, ``statuses``, ``leader``, ``shared-admin``.
    ``settings`` override the worker's.
    """
    client_id = client_id_base(worker) + purpose
    java = layered(
        kind,
        _OUR_DEFAULTS[kind],
        JAVA_DEFAULTS[kind],
        {"delivery.timeout.ms": _INT_MAX} if kind is ClientKind.PRODUCER else {},
        _worker_own(worker, kind),
        settings or {},
    )
    forced = {"client.id": client_id}
    if kind is ClientKind.PRODUCER:
        forced |= {"acks": "all", _IN_FLIGHT: "1"}
    if kind is ClientKind.CONSUMER:
        forced |= _reads_a_whole_topic(client_id)
    return librdkafka_properties(layered(kind, java, forced), kind)


def _worker_own(worker: Mapping[str, str], kind: ClientKind) -> dict[str, str]:
    """Return the worker's settings without a prefix that apply to such a client."""
    return {
        key: value
        for key, value in worker.items()
        if not key.startswith(_WORKER_PREFIXES) and _is_meant_for_clients(key, kind)
    }


def _is_meant_for_clients(key: str, kind: ClientKind) -> bool:
    if key in _WORKER_GROUP_KEYS:
        return False
    decision = CLIENT_KEYS[kind].get(key)
    return is_native_key(key, kind) if decision is None else not isinstance(decision, Ignored)


def _reads_a_whole_topic(client_id: str) -> dict[str, str]:
    # librdkafka creates no consumer without a group. This group is never joined, and nothing is committed to it.
    return {
        "allow.auto.create.topics": "false",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "enable.auto.offset.store": "false",
        "group.id": client_id,
    }


def _bootstrap(worker: Mapping[str, str]) -> dict[str, str]:
    return {"bootstrap.servers": worker["bootstrap.servers"]}


def _numbered(connector: Mapping[str, str], task: int | None) -> str:
    return connector["name"] if task is None else f"{connector['name']}-{task}"


def _task_client(
    kind: ClientKind,
    role: Mapping[str, str],
    worker: Mapping[str, str],
    connector: Mapping[str, str],
    forced: Mapping[str, str],
) -> ClientProperties:
    """Merge the layers of a connector's client, and report the user's values that have no effect.

    The override policy is checked here as well as in validation: the configuration may have been stored before the
    policy was tightened, or by another worker.
    """
    for refused in refused_overrides(worker, connector, [kind]):
        raise refused
    user = layered(kind, _below(kind.worker_prefix, worker), _below(kind.override_prefix, connector))
    java = layered(kind, _OUR_DEFAULTS[kind], JAVA_DEFAULTS[kind], role, user, forced)
    try:
        properties = librdkafka_properties(java, kind)
    except ConfigError as error:
        raise _as_written(error, {kind.worker_prefix: worker, kind.override_prefix: connector}) from None
    covered = {
        key: f"the worker always sets it to {value}"
        for key, value in forced.items()
        if key in user and user[key].strip().lower() != value
    }
    return replace(properties, ignored=MappingProxyType({**properties.ignored, **covered}))


def _as_written(error: ConfigError, sources: Mapping[str, Mapping[str, str]]) -> ConfigError:
    """Return the error with its keys as the user wrote them. ``sources`` has the configurations by key prefix."""
    keys = {key: prefix + key for prefix, source in sources.items() for key in keys_of(error) if prefix + key in source}
    if not isinstance(error, ConfigRuleError):
        return ConfigError(keys.get(error.key, error.key), error.value, error.reason)
    text = error.reason
    for key, written in keys.items():
        text = re.sub(rf"(?<![\w.]){re.escape(key)}(?![\w.]*\w)", written, text)
    return ConfigRuleError(text, *(keys.get(key, key) for key in error.keys))


def _below(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
