"""Clients that sign in by the certificate of their connection."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from equipment.brokers.certificates import Authority
from equipment.fakes.cluster_herder import ClusterHerder
from rest.access.access import Access
from rest.access.guards import Guards
from rest.access.sign_in import SignIn
from rest.access.stored_configs import StoredConfigs
from rest.app import create_app
from rest.server.server import RestServer
from rest.server.tls import TlsSettings
from worker.security.certificate_names import NameRules

pytestmark = pytest.mark.integration


def test_the_certificate_of_the_connection_reaches_the_app(tmp_path: Path) -> None:
    authority = Authority()
    store, ca = tmp_path / "key.p12", tmp_path / "ca.pem"
    store.write_bytes(authority.sign("127.0.0.1").pkcs12("geheim"))
    ca.write_text(authority.pem)
    tls = TlsSettings(
        {
            "listeners.https.ssl.keystore.location": str(store),
            "listeners.https.ssl.keystore.password": "geheim",
            "listeners.https.ssl.truststore.location": str(ca),
            "listeners.https.ssl.truststore.type": "PEM",
            "listeners.https.ssl.client.auth": "requested",
        }
    )
    client = tmp_path / "client.pem"
    alice = authority.sign("alice.example")
    client.write_text(alice.key_pem() + alice.certificate_pem)
    herder = ClusterHerder({})
    sign_in = SignIn(certificate_names=NameRules.parse("RULE:^CN=([^.]*)\\..*$/$1/,DEFAULT"))
    app = create_app(herder, "cluster", guards=Guards(access=Access(sign_in, None, StoredConfigs(herder))))
    server = RestServer(["https://127.0.0.1:0"], tls)
    server.answer_with(app)
    try:
        url = f"https://127.0.0.1:{server.port}/whoami"
        known = requests.get(url, verify=str(ca), cert=str(client), timeout=30)
        unknown = requests.get(url, verify=str(ca), timeout=30, headers={"SSL_CLIENT_CERT": "alice"})
    finally:
        server.close()

    assert known.json()["principal"] == {"name": "alice", "mechanism": "certificate", "groups": []}
    assert unknown.status_code == 401
