"""Workers whose brokers ask who they are: every way to log in, for all clients of a worker, with Java's settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from rights import MakeWorker, ask, named, names_of

from connect.errors import ConnectError
from equipment.brokers.acls import Acl
from equipment.brokers.certificates import Authority
from equipment.brokers.key_stores import PASSWORD
from equipment.brokers.secured import CERTIFIED, PLAIN, SecuredBroker
from equipment.brokers.tokens import TokenServer, token_server
from equipment.brokers.topics import read_topic
from equipment.proofs import thorough
from equipment.waiting import wait_until
from equipment.workers.distributed import DistributedWorker
from worker.app.brokers import cluster_id_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(480)]

OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


@dataclass(frozen=True)
class Login:
    """A user, what its clients are told, and what nobody else may read."""

    user: str
    settings: dict[str, str]
    secrets: tuple[str, ...]
    worker: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def tokens(secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenServer]:
    """An identity provider with TLS that only those trust who are told to."""
    folder, authority = tmp_path_factory.mktemp("tokens"), Authority()
    (folder / "id.pem").write_text(authority.pem)
    with token_server(secured.folder, (authority.sign("127.0.0.1"), folder)) as server:
        server.trusted = folder / "id.pem"
        yield server


def trusting(broker: SecuredBroker, kind: str) -> dict[str, str]:
    file = {"JKS": "trust.jks", "PKCS12": "trust.p12"}[kind]
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.location": str(broker.folder / file),
        "ssl.truststore.password": PASSWORD,
        "ssl.truststore.type": kind,
    }


def plain(_broker: SecuredBroker, _tokens: TokenServer) -> Login:
    return Login(PLAIN.name, PLAIN.login, (PLAIN.password,))


def scram(broker: SecuredBroker, _tokens: TokenServer) -> Login:
    user = broker.new_user("SCRAM-SHA-512")
    return Login(user.name, user.login | trusting(broker, "JKS"), (user.password, PASSWORD))


def oauth(broker: SecuredBroker, tokens: TokenServer) -> Login:
    name, secret = f"client-{uuid4().hex[:12]}", f"s3cret-of-{uuid4().hex}"
    tokens.clients[name] = secret
    settings = trusting(broker, "PKCS12") | token_settings(tokens, name, secret)
    return Login(name, settings, (secret, PASSWORD), {ALLOWED: tokens.url})


def certificate(broker: SecuredBroker, _tokens: TokenServer) -> Login:
    key, _, rest = (broker.folder / "key.pem").read_text().partition("-----BEGIN CERTIFICATE-----")
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(broker.folder / "authority.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": one_line(key),
        "ssl.keystore.certificate.chain": one_line("-----BEGIN CERTIFICATE-----" + rest),
    }
    return Login(CERTIFIED, settings, (key.splitlines()[1],))


def token_settings(tokens: TokenServer, client: str, secret: str) -> dict[str, str]:
    trust = f'ssl.truststore.type="PEM" ssl.truststore.location="{tokens.trusted}"'
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH} required {trust};",
        "sasl.oauthbearer.token.endpoint.url": tokens.url,
        "sasl.oauthbearer.client.credentials.client.id": client,
        "sasl.oauthbearer.client.credentials.client.secret": secret,
    }


def one_line(pem: str) -> str:
    return " ".join(pem.split("\n")).strip()


@pytest.mark.parametrize("way", [*thorough(plain, certificate), scram, oauth])
def test_all_clients_of_a_worker_log_in(
    way: Callable[[SecuredBroker, TokenServer], Login],
    secured: SecuredBroker,
    tokens: TokenServer,
    secured_worker: MakeWorker,
    tmp_path: Path,
) -> None:
    login, group = way(secured, tokens), f"group-{uuid4().hex[:12]}"
    names = names_of(group, WORKER=login.user, PRODUCER=login.user, CONSUMER=login.user)
    chapters = ("A worker", "A worker with exactly-once support", "A source", "An exactly-once source", "A sink")
    secured.allow(named(names, *chapters))
    keys = {
        f"{prefix}{key}": value for key, value in login.settings.items() for prefix in ("", "producer.", "consumer.")
    }
    worker = secured_worker(group, {**keys, **login.worker, "exactly.once.source.support": "enabled"}).start()
    lines, written = tmp_path / "in.txt", tmp_path / "out.txt"
    lines.write_text("one\ntwo\n")
    creation = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
    source = {"connector.class": "FileStreamSource", "file": str(lines), "topic": names["TOPIC"], **creation}
    sink = {"connector.class": "FileStreamSink", "file": str(written), "topics": names["TOPIC"]}
    for name, config in ((names["SOURCE"], source), (names["SINK"], sink)):
        assert ask(worker, "PUT", f"connectors/{name}/config", config).status_code == 201
    wait_until("the lines came through", lambda: written.exists() and written.read_text() == "one\ntwo\n", 90)
    if way is oauth:
        another_client(secured, tokens, worker, names, source)
    assert worker.terminate() == 0
    for secret in login.secrets:
        assert secret not in worker.log()


def another_client(
    secured: SecuredBroker,
    tokens: TokenServer,
    worker: DistributedWorker,
    names: dict[str, str],
    source: dict[str, str],
) -> None:
    """A connector may name an identity provider that the worker's file lists, and no other."""
    user, secret, topic = f"client-{uuid4().hex[:12]}", f"s3cret-of-{uuid4().hex}", f"{names['TOPIC']}-more"
    tokens.clients[user] = secret
    own = {f"producer.override.{key}": value for key, value in token_settings(tokens, user, secret).items()}
    name, config = f"{names['SOURCE']}-more", {**source, "topic": topic, **own}
    producer = [Acl(user, "Write", "topic", topic), Acl(user, "Write", "topic", names["OFFSETS"])]
    transactions = Acl(user, "Write", "transactional-id", f"{names['GROUP']}-{name}-", prefixed=True)
    admin = [Acl(names["WORKER"], operation, "topic", topic) for operation in ("Create", "Describe")]
    secured.allow([*producer, transactions, *admin])
    endpoint = "producer.override.sasl.oauthbearer.token.endpoint.url"
    refused = ask(worker, "PUT", f"connectors/{name}/config", {**config, endpoint: tokens.url + "/other"})
    assert refused.status_code == 400
    assert f"{endpoint} cannot be used. What it names is not listed in {ALLOWED}" in refused.text
    assert ask(worker, "PUT", f"connectors/{name}/config", config).status_code == 201
    wait_until("its lines are there", lambda: len(read_topic(secured.bootstrap, topic)) == 2, 90)
    assert secret not in worker.log()


def test_a_worker_is_told_that_it_gets_no_token(secured: SecuredBroker, tokens: TokenServer) -> None:
    props = trusting(secured, "PKCS12") | token_settings(tokens, "stranger", "wr0ng-s3cret")
    bootstrap = {"bootstrap.servers": secured.addresses["SASL_SSL"], "default.api.timeout.ms": "2000"}
    with pytest.raises(ConnectError) as caught:
        cluster_id_of(bootstrap | props)
    assert "OAUTHBEARER token" in str(caught.value)
    assert "Check the identity provider at sasl.oauthbearer.token.endpoint.url" in str(caught.value)
    assert "wr0ng-s3cret" not in str(caught.value)
    assert ("stranger", 401) in tokens.asked


def test_a_worker_whose_login_is_refused_is_told_so_at_once(secured: SecuredBroker) -> None:
    props = secured.new_user().login | {"sasl.jaas.config": PLAIN.jaas_config.replace(PLAIN.password, "wr0ng-s3cret")}
    wrong = props | {"sasl.mechanism": "PLAIN", "bootstrap.servers": secured.addresses["SASL_PLAINTEXT"]}
    with pytest.raises(ConnectError) as caught:
        cluster_id_of(wrong)
    assert "Check the login of the worker's user: sasl.mechanism" in str(caught.value)
    assert "wr0ng-s3cret" not in str(caught.value)
