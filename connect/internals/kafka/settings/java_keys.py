"""All client settings of Java's producer, consumer and admin client, and how each is translated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connect.internals.kafka.settings.client import ClientKind
from connect.internals.kafka.settings.conversion import (
    INT_MAX,
    LONG_MAX,
    Conversion,
    boolean,
    integer,
    kilobytes,
    one_of,
    servers,
    text,
)

__all__ = [
    "CLIENT_KEYS",
    "IGNORED_PREFIXES",
    "Combined",
    "Decision",
    "HandledByWorker",
    "Ignored",
    "Mapped",
    "Refused",
]


@dataclass(frozen=True, slots=True)
class Mapped:
    """Passed to librdkafka as ``names``, after conversion."""

    names: tuple[str, ...]
    convert: Conversion
    note: str = ""


@dataclass(frozen=True, slots=True)
class Combined:
    """Passed to librdkafka as ``names``, in combination with other settings as ``note`` explains."""

    names: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class HandledByWorker:
    """Applied by the worker's own loops, because librdkafka has no such setting.

    ``check`` refuses what Java refuses.
    """

    check: Conversion
    note: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Accepted without effect, for the given ``reason``."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Refused with a ``remedy``, unless the value is in ``harmless``."""

    remedy: str
    harmless: frozenset[str] = frozenset(("",))


Decision = Mapped | Combined | HandledByWorker | Ignored | Refused

_CONVERTERS_MAKE_BYTES = Ignored("keys and values are bytes here: key.converter and value.converter make them")
_NO_JVM_METRICS = Ignored("there are no Java metrics: the worker reports its clients' metrics itself")
_NO_JVM_TLS = Ignored("TLS is OpenSSL's here, not a Java provider's")
_TOKEN_REFRESH = Ignored("librdkafka renews a token when four fifths of its life are over")
_TOKEN_CHECKED_BY_BROKER = Ignored("the broker checks the token, not the client")
_KINIT_BY_TIMER = Ignored("tickets are renewed every sasl.kerberos.min.time.before.relogin")
_LOGIN_HTTP = Ignored("librdkafka has its own timeouts and retries for the token endpoint")
_NOT_A_SHARE_CONSUMER = Ignored("share groups are not used")

_KERBEROS = "with sasl.mechanism=GSSAPI; needs a librdkafka that is built with Kerberos"
_OIDC = "with sasl.mechanism=OAUTHBEARER"
_ASSERTION = "with sasl.oauthbearer.jwt.retriever.class=...JwtBearerJwtRetriever"
_TLS = "with security.protocol=SSL or SASL_SSL"

_SECURITY_PROTOCOLS = {name: name for name in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")}


def _same(name: str, convert: Conversion = text, note: str = "") -> Mapped:
    return Mapped((name,), convert, note)


_ANY_CLIENT: dict[str, Decision] = {
    "bootstrap.servers": _same("metadata.broker.list", servers),
    "client.id": _same("client.id"),
    "client.dns.lookup": _same(
        "client.dns.lookup",
        one_of(
            {
                "use_all_dns_ips": "use_all_dns_ips",
                "resolve_canonical_bootstrap_servers_only": "resolve_canonical_bootstrap_servers_only",
            }
        ),
    ),
    "config.providers": Ignored("the worker resolves references before it makes a client"),
    "connections.max.idle.ms": _same(
        "connections.max.idle.ms", integer(0, INT_MAX, at_least=-1), "-1 becomes 0: never closed"
    ),
    "enable.metrics.push": _same("enable.metrics.push", boolean),
    "metadata.max.age.ms": _same("topic.metadata.refresh.interval.ms", integer(10, 3_600_000)),
    "metadata.recovery.strategy": _same(
        "metadata.recovery.strategy", one_of({"rebootstrap": "rebootstrap", "none": "none"})
    ),
    "metadata.recovery.rebootstrap.trigger.ms": _same("metadata.recovery.rebootstrap.trigger.ms", integer(0, INT_MAX)),
    "metric.reporters": _NO_JVM_METRICS,
    "metrics.num.samples": _NO_JVM_METRICS,
    "metrics.recording.level": _NO_JVM_METRICS,
    "metrics.sample.window.ms": _NO_JVM_METRICS,
    "receive.buffer.bytes": _same(
        "socket.receive.buffer.bytes",
        integer(0, 100_000_000, at_least=-1),
        "-1 becomes 0: the system's default",
    ),
    "send.buffer.bytes": _same(
        "socket.send.buffer.bytes", integer(0, 100_000_000, at_least=-1), "-1 becomes 0: the system's default"
    ),
    "reconnect.backoff.ms": _same("reconnect.backoff.ms", integer(0, 3_600_000)),
    "reconnect.backoff.max.ms": _same(
        "reconnect.backoff.max.ms", integer(0, 3_600_000), "at least reconnect.backoff.ms"
    ),
    "request.timeout.ms": _same("socket.timeout.ms", integer(10, 300_000)),
    "retry.backoff.ms": _same("retry.backoff.ms", integer(1, 300_000)),
    "retry.backoff.max.ms": _same("retry.backoff.max.ms", integer(1, 300_000)),
    "socket.connection.setup.timeout.ms": _same("socket.connection.setup.timeout.ms", integer(1000, INT_MAX)),
    "socket.connection.setup.timeout.max.ms": Ignored(
        "librdkafka does not lengthen socket.connection.setup.timeout.ms from try to try"
    ),
    "security.protocol": _same("security.protocol", one_of(_SECURITY_PROTOCOLS)),
    "security.providers": _NO_JVM_TLS,
}

_SASL: dict[str, Decision] = {
    "sasl.mechanism": Combined(("sasl.mechanisms",), "GSSAPI, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"),
    "sasl.jaas.config": Combined(
        ("sasl.username", "sasl.password", "sasl.kerberos.principal", "sasl.kerberos.keytab"),
        "read for PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule and Krb5LoginModule",
    ),
    "sasl.kerberos.service.name": Combined(("sasl.kerberos.service.name",), _KERBEROS),
    "sasl.kerberos.kinit.cmd": Combined(("sasl.kerberos.kinit.cmd",), f"the program, as in Java; {_KERBEROS}"),
    "sasl.kerberos.min.time.before.relogin": Combined(("sasl.kerberos.min.time.before.relogin",), _KERBEROS),
    "sasl.kerberos.ticket.renew.window.factor": _KINIT_BY_TIMER,
    "sasl.kerberos.ticket.renew.jitter": _KINIT_BY_TIMER,
    "sasl.login.refresh.window.factor": _TOKEN_REFRESH,
    "sasl.login.refresh.window.jitter": _TOKEN_REFRESH,
    "sasl.login.refresh.min.period.seconds": _TOKEN_REFRESH,
    "sasl.login.refresh.buffer.seconds": _TOKEN_REFRESH,
    "sasl.login.connect.timeout.ms": _LOGIN_HTTP,
    "sasl.login.read.timeout.ms": _LOGIN_HTTP,
    "sasl.login.retry.backoff.ms": _LOGIN_HTTP,
    "sasl.login.retry.backoff.max.ms": _LOGIN_HTTP,
    "sasl.login.class": Refused(
        "A Java class cannot run here: remove the key; sasl.mechanism and sasl.jaas.config decide the login"
    ),
    "sasl.client.callback.handler.class": Refused(
        "A Java class cannot run here: remove the key; sasl.mechanism and sasl.jaas.config decide the login"
    ),
    "sasl.login.callback.handler.class": Refused(
        "A Java class cannot run here: for OAUTHBEARER set sasl.oauthbearer.token.endpoint.url, "
        "sasl.oauthbearer.client.credentials.client.id and ....client.secret",
        frozenset(
            (
                "",
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
                "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
            )
        ),
    ),
    "sasl.oauthbearer.token.endpoint.url": Combined(
        ("sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.method"), _OIDC
    ),
    "sasl.oauthbearer.client.credentials.client.id": Combined(("sasl.oauthbearer.client.id",), _OIDC),
    "sasl.oauthbearer.client.credentials.client.secret": Combined(("sasl.oauthbearer.client.secret",), _OIDC),
    "sasl.oauthbearer.scope": Combined(("sasl.oauthbearer.scope",), _OIDC),
    "sasl.oauthbearer.sub.claim.name": Combined(("sasl.oauthbearer.sub.claim.name",), _OIDC),
    "sasl.oauthbearer.scope.claim.name": _TOKEN_CHECKED_BY_BROKER,
    "sasl.oauthbearer.header.urlencode": Combined((), f"only false; {_OIDC}"),
    "sasl.oauthbearer.jwt.retriever.class": Combined(
        ("sasl.oauthbearer.grant.type",),
        "the default, ClientCredentialsJwtRetriever or JwtBearerJwtRetriever",
    ),
    "sasl.oauthbearer.jwt.validator.class": _TOKEN_CHECKED_BY_BROKER,
    "sasl.oauthbearer.jwks.endpoint.url": _TOKEN_CHECKED_BY_BROKER,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": _TOKEN_CHECKED_BY_BROKER,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": _TOKEN_CHECKED_BY_BROKER,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": _TOKEN_CHECKED_BY_BROKER,
    "sasl.oauthbearer.clock.skew.seconds": _TOKEN_CHECKED_BY_BROKER,
    "sasl.oauthbearer.expected.audience": _TOKEN_CHECKED_BY_BROKER,
    "sasl.oauthbearer.expected.issuer": _TOKEN_CHECKED_BY_BROKER,
    "sasl.oauthbearer.assertion.template.file": Combined(("sasl.oauthbearer.assertion.jwt.template.file",), _ASSERTION),
}

_JWT_ASSERTION: dict[str, Decision] = {
    f"sasl.oauthbearer.assertion.{name}": Combined((f"sasl.oauthbearer.assertion.{name}",), _ASSERTION)
    for name in (
        "algorithm",
        "claim.aud",
        "claim.exp.seconds",
        "claim.iss",
        "claim.jti.include",
        "claim.nbf.seconds",
        "claim.sub",
        "file",
        "private.key.file",
        "private.key.passphrase",
    )
}

_STORE_TYPE = "JKS, PKCS12 or PEM; left out, the content of the file tells"

_SSL: dict[str, Decision] = {
    "ssl.truststore.type": Combined((), _STORE_TYPE),
    "ssl.truststore.location": Combined(
        ("ssl.ca.location", "ssl.ca.pem"),
        f"a JKS or PKCS12 store, or a PEM file, with certificates that are signed by themselves; {_TLS}",
    ),
    "ssl.truststore.certificates": Combined(("ssl.ca.pem",), _TLS),
    "ssl.truststore.password": Combined((), "of a JKS or PKCS12 store"),
    "ssl.keystore.type": Combined((), _STORE_TYPE),
    "ssl.keystore.location": Combined(
        ("ssl.key.location", "ssl.certificate.location", "ssl.key.pem", "ssl.certificate.pem"),
        f"a JKS or PKCS12 store, or a PEM file with key and certificates; {_TLS}",
    ),
    "ssl.keystore.password": Combined((), "of a JKS or PKCS12 store"),
    "ssl.keystore.key": Combined(("ssl.key.pem",), _TLS),
    "ssl.keystore.certificate.chain": Combined(("ssl.certificate.pem",), _TLS),
    "ssl.key.password": Combined(("ssl.key.password",), _TLS),
    "ssl.endpoint.identification.algorithm": Combined(("ssl.endpoint.identification.algorithm",), "empty becomes none"),
    "ssl.cipher.suites": Combined(("ssl.cipher.suites",), "Java's names or OpenSSL's; those of TLS 1.3 are always on"),
    "ssl.enabled.protocols": Ignored("OpenSSL takes the newest of TLSv1.2 and TLSv1.3 that the broker has"),
    "ssl.protocol": Ignored("OpenSSL takes the newest of TLSv1.2 and TLSv1.3 that the broker has"),
    "ssl.provider": _NO_JVM_TLS,
    "ssl.keymanager.algorithm": _NO_JVM_TLS,
    "ssl.trustmanager.algorithm": _NO_JVM_TLS,
    "ssl.secure.random.implementation": _NO_JVM_TLS,
    "ssl.engine.factory.class": Refused(
        "A Java class cannot run here: remove the key and give stores by ssl.truststore.* and ssl.keystore.*"
    ),
}

_PRODUCER: dict[str, Decision] = {
    "acks": _same("request.required.acks", one_of({"all": "all", "-1": "all", "0": "0", "1": "1"})),
    "batch.size": _same("batch.size", integer(1, INT_MAX)),
    "buffer.memory": _same("queue.buffering.max.kbytes", kilobytes, "in kilobytes"),
    "compression.type": _same(
        "compression.codec", one_of({name: name for name in ("none", "gzip", "snappy", "lz4", "zstd")})
    ),
    "compression.gzip.level": Combined(("compression.level",), "with compression.type=gzip"),
    "compression.lz4.level": Combined(("compression.level",), "with compression.type=lz4; above 12 becomes 12"),
    "compression.zstd.level": Combined(
        ("compression.level",), "with compression.type=zstd; below 1 becomes 1, above 12 becomes 12"
    ),
    "delivery.timeout.ms": _same(
        "message.timeout.ms", integer(1, INT_MAX), "at most transaction.timeout.ms in a transaction"
    ),
    "enable.idempotence": _same(
        "enable.idempotence",
        boolean,
        "left out: true, unless acks, retries or max.in.flight.requests.per.connection forbid it",
    ),
    "interceptor.classes": Ignored("a Java interceptor cannot run here: use a transformation"),
    "key.serializer": _CONVERTERS_MAKE_BYTES,
    "value.serializer": _CONVERTERS_MAKE_BYTES,
    "linger.ms": _same("queue.buffering.max.ms", integer(0, 900_000)),
    "max.block.ms": HandledByWorker(
        integer(0, LONG_MAX), "sending waits for room in the producer's buffer, however long it takes"
    ),
    "max.in.flight.requests.per.connection": _same(
        "max.in.flight.requests.per.connection", integer(1, 1_000_000, at_least=1)
    ),
    "max.request.size": _same("message.max.bytes", integer(1000, 1_000_000_000)),
    "metadata.max.idle.ms": Ignored("librdkafka forgets an unused topic by itself"),
    "partitioner.class": Combined(("partitioner",), "left out or Java's default: murmur2_random"),
    "partitioner.ignore.keys": Combined(("partitioner",), "true: random"),
    "partitioner.adaptive.partitioning.enable": Ignored("librdkafka does not prefer fast brokers"),
    "partitioner.availability.timeout.ms": Ignored("librdkafka does not prefer fast brokers"),
    "request.timeout.ms": Mapped(
        ("socket.timeout.ms", "request.timeout.ms"),
        integer(10, 300_000),
        "at most transaction.timeout.ms in a transaction",
    ),
    "retries": _same("message.send.max.retries", integer(0, INT_MAX)),
    "transactional.id": Combined(("transactional.id",), "not empty"),
    "transaction.timeout.ms": _same("transaction.timeout.ms", integer(1000, INT_MAX)),
    "transaction.two.phase.commit.enable": Refused(
        "Two-phase commit is not supported: remove the key", frozenset(("", "false"))
    ),
}

_CONSUMER: dict[str, Decision] = {
    "allow.auto.create.topics": _same("allow.auto.create.topics", boolean),
    "auto.commit.interval.ms": _same("auto.commit.interval.ms", integer(0, 86_400_000)),
    "auto.offset.reset": _same(
        "auto.offset.reset",
        one_of(
            {"latest": "latest", "earliest": "earliest", "none": "error"},
            "To start at a time (by_duration), stop the connector and set its offsets through the REST API",
        ),
    ),
    "check.crcs": _same("check.crcs", boolean),
    "client.rack": _same("client.rack"),
    "default.api.timeout.ms": Ignored("the worker's calls to the broker have limits of their own"),
    "enable.auto.commit": _same("enable.auto.commit", boolean),
    "exclude.internal.topics": Combined(("topic.blacklist",), "true: __consumer_offsets and the like"),
    "fetch.max.bytes": _same("fetch.max.bytes", integer(1000, 2_147_483_135)),
    "fetch.max.wait.ms": _same("fetch.wait.max.ms", integer(0, 300_000)),
    "fetch.min.bytes": _same("fetch.min.bytes", integer(1, 100_000_000)),
    "group.id": Combined(("group.id",), "not empty"),
    "group.instance.id": Combined(("group.instance.id",), "not empty"),
    "group.protocol": _same("group.protocol", one_of({"classic": "classic", "consumer": "consumer"})),
    "group.remote.assignor": Combined(("group.remote.assignor",), "with group.protocol=consumer"),
    "heartbeat.interval.ms": Combined(("heartbeat.interval.ms",), "with group.protocol=classic"),
    "interceptor.classes": Ignored("a Java interceptor cannot run here: use a transformation"),
    "internal.throw.on.fetch.stable.offset.unsupported": Ignored("internal to the Java client"),
    "isolation.level": _same(
        "isolation.level",
        one_of({"read_committed": "read_committed", "read_uncommitted": "read_uncommitted"}),
    ),
    "key.deserializer": _CONVERTERS_MAKE_BYTES,
    "value.deserializer": _CONVERTERS_MAKE_BYTES,
    "max.partition.fetch.bytes": _same("fetch.message.max.bytes", integer(1, 1_000_000_000)),
    "max.poll.interval.ms": _same("max.poll.interval.ms", integer(1, 86_400_000, at_least=1)),
    "max.poll.records": HandledByWorker(integer(1, INT_MAX, at_least=1), "the most records handed to a task at once"),
    "partition.assignment.strategy": Combined(
        ("partition.assignment.strategy",),
        "with group.protocol=classic; cooperative-sticky beside an eager assignor is left out, "
        "as such a group is eager in Java too",
    ),
    "session.timeout.ms": Combined(
        ("session.timeout.ms",),
        "with group.protocol=classic; left out, it is at most max.poll.interval.ms",
    ),
    "share.acknowledgement.mode": _NOT_A_SHARE_CONSUMER,
    "share.acquire.mode": _NOT_A_SHARE_CONSUMER,
}

_ADMIN: dict[str, Decision] = {
    "bootstrap.controllers": Refused("Controllers are not talked to directly: set bootstrap.servers"),
    "default.api.timeout.ms": HandledByWorker(
        integer(0, INT_MAX),
        "how long a worker waits for a broker at its start, 30000 by default; other calls have limits of their own",
    ),
    "retries": Ignored("a call is tried again until its time is over"),
}

CLIENT_KEYS: Mapping[ClientKind, Mapping[str, Decision]] = {
    ClientKind.PRODUCER: _ANY_CLIENT | _SASL | _JWT_ASSERTION | _SSL | _PRODUCER,
    ClientKind.CONSUMER: _ANY_CLIENT | _SASL | _JWT_ASSERTION | _SSL | _CONSUMER,
    ClientKind.ADMIN: _ANY_CLIENT | _SASL | _JWT_ASSERTION | _SSL | _ADMIN,
}
"""How each Java setting is handled, by kind of client."""

IGNORED_PREFIXES = {"metrics.context.": _NO_JVM_METRICS.reason}
"""Settings of which only the prefix is known, each with the reason why they have no effect."""
