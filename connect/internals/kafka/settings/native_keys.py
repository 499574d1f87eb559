"""The names of librdkafka's own settings, which may be used in addition to Java's.

Taken from librdkafka 2.16, without callbacks and without the properties that the worker sets itself.
"""

from __future__ import annotations

from connect.internals.kafka.settings.client import ClientKind

__all__ = ["ALIASES", "REFUSED_NATIVE_KEYS", "canonical_native_key", "is_native_key", "native_keys"]

ALIASES = {
    "acks": "request.required.acks",
    "bootstrap.servers": "metadata.broker.list",
    "compression.type": "compression.codec",
    "delivery.timeout.ms": "message.timeout.ms",
    "linger.ms": "queue.buffering.max.ms",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
    "retries": "message.send.max.retries",
    "sasl.mechanism": "sasl.mechanisms",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
"""Aliases of librdkafka's properties, with the primary name."""

REFUSED_NATIVE_KEYS = {
    "plugin.library.paths": "Loading a shared library into a client is not allowed: remove the key",
    "ssl.engine.location": "Loading a shared library into a client is not allowed: remove the key",
    "ssl.engine.id": "Loading a shared library into a client is not allowed: remove the key",
    "ssl.providers": "Loading a shared library into a client is not allowed: remove the key",
    "offset.store.method": "The worker keeps offsets itself: remove the key",
    "offset.store.path": "The worker keeps offsets itself: remove the key",
    "offset.store.sync.interval.ms": "The worker keeps offsets itself: remove the key",
    "log.queue": "The worker takes the client's log itself: remove the key",
    "enabled_events": "The worker serves the client's events itself: remove the key",
    "internal.termination.signal": "The worker handles signals itself: remove the key",
}
"""The librdkafka settings that nobody may set, each with the reason."""

_ANY_CLIENT = frozenset(
    (
        "allow.auto.create.topics",
        "api.version.fallback.ms",
        "api.version.request",
        "api.version.request.timeout.ms",
        "broker.address.family",
        "broker.address.ttl",
        "broker.version.fallback",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "debug",
        "enable.metrics.push",
        "enable.random.seed",
        "enable.sasl.oauthbearer.unsecure.jwt",
        "enable.ssl.certificate.verification",
        "https.ca.location",
        "https.ca.pem",
        "log.connection.close",
        "log.thread.name",
        "log_level",
        "max.in.flight.requests.per.connection",
        "message.copy.max.bytes",
        "message.max.bytes",
        "metadata.broker.list",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "receive.message.max.bytes",
        "reconnect.backoff.jitter.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.kerberos.keytab",
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.principal",
        "sasl.kerberos.service.name",
        "sasl.mechanisms",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.grant.type",
        "sasl.oauthbearer.metadata.authentication.type",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "socket.blocking.max.ms",
        "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "socket.timeout.ms",
        "ssl.ca.certificate.stores",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.cipher.suites",
        "ssl.crl.location",
        "ssl.curves.list",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.sigalgs.list",
        "statistics.interval.ms",
        "topic.blacklist",
        "topic.metadata.propagation.max.ms",
        "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.interval.ms",
        "topic.metadata.refresh.sparse",
    )
)

_PRODUCER = frozenset(
    (
        "batch.num.messages",
        "batch.size",
        "compression.codec",
        "compression.level",
        "delivery.report.only.error",
        "enable.gapless.guarantee",
        "enable.idempotence",
        "message.send.max.retries",
        "message.timeout.ms",
        "partitioner",
        "produce.offset.report",
        "queue.buffering.backpressure.threshold",
        "queue.buffering.max.kbytes",
        "queue.buffering.max.messages",
        "queue.buffering.max.ms",
        "queuing.strategy",
        "request.required.acks",
        "request.timeout.ms",
        "sticky.partitioning.linger.ms",
        "transaction.timeout.ms",
        "transactional.id",
    )
)

_CONSUMER = frozenset(
    (
        "auto.commit.enable",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "consume.callback.max.messages",
        "coordinator.query.interval.ms",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "fetch.error.backoff.ms",
        "fetch.max.bytes",
        "fetch.message.max.bytes",
        "fetch.min.bytes",
        "fetch.queue.backoff.ms",
        "fetch.wait.max.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.protocol.type",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "queued.max.messages.kbytes",
        "queued.min.messages",
        "session.timeout.ms",
        "share.acknowledgement.mode",
    )
)

_KEYS_OF_KIND = {
    ClientKind.PRODUCER: _ANY_CLIENT | _PRODUCER,
    ClientKind.CONSUMER: _ANY_CLIENT | _CONSUMER,
    ClientKind.ADMIN: _ANY_CLIENT,
}


def canonical_native_key(key: str) -> str:
    """Return librdkafka's primary name for a property, which may have an alias."""
    return ALIASES.get(key, key)


def native_keys(kind: ClientKind) -> frozenset[str]:
    """Return the primary names of the properties that librdkafka has for this kind of client."""
    return _KEYS_OF_KIND[kind]


def is_native_key(key: str, kind: ClientKind) -> bool:
    """Return whether librdkafka has the property ``key`` for this kind of client."""
    return canonical_native_key(key) in _KEYS_OF_KIND[kind]
