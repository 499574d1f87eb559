"""A broker with authentication and ACLs, shared by a whole test run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from connect.errors import ConnectError
from connect.internals.jvm.home import file_lock
from equipment.brokers.acls import Acl
from equipment.brokers.certificates import Authority
from equipment.brokers.key_stores import PASSWORD, write_stores
from equipment.brokers.tokens import AUDIENCE, ISSUER, write_keys
from equipment.brokers.topics import admin_client
from equipment.ports import own_port
from equipment.waiting import wait_until
from worker.app.brokers import cluster_id_of
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker
from worker.embedded.ports import HOST

__all__ = ["CERTIFIED", "PLAIN", "SecuredBroker", "User", "secured_broker"]

PROTOCOLS: Final = ("SASL_PLAINTEXT", "SASL_SSL", "SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CERTIFIED: Final = "certified"
"""The user whose certificate is in the key stores."""

_SECURITY: Final = "org.apache.kafka.common.security"
_SCRAM: Final = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
_LEAST_ITERATIONS: Final = 4096


@dataclass(frozen=True, slots=True)
class User:
    """A user with a password and no permissions yet."""

    name: str
    password: str
    mechanism: str = "SCRAM-SHA-256"

    @property
    def login(self) -> dict[str, str]:
        """Java's client settings for logging in without TLS."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": self.jaas_config,
        }

    @property
    def jaas_config(self) -> str:
        """The value of ``sasl.jaas.config``."""
        module = "plain.Plain" if self.mechanism == "PLAIN" else "scram.Scram"
        return f'{_SECURITY}.{module}LoginModule required username="{self.name}" password="{self.password}";'


PLAIN: Final = User("plain", "s3cret-of-plain", "PLAIN")
"""The user of SASL PLAIN."""


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    """The broker, and the settings that its clients need."""

    bootstrap: str
    """An address where a test may do everything, without a login."""
    addresses: Mapping[str, str]
    """The addresses for clients, by ``security.protocol``."""
    folder: Path
    """``authority.pem``, the key stores and ``key.pem`` of ``CERTIFIED``, and the key of the tokens."""

    def new_user(self, mechanism: str = "SCRAM-SHA-256") -> User:
        """Create a SCRAM user."""
        user = User(f"user-{uuid4().hex[:12]}", _new_password(), mechanism)
        self._keep(user)
        admin = _admin(self.bootstrap)

        def is_known() -> bool:
            described: Any = admin.describe_user_scram_credentials([user.name])
            return described[user.name].exception(30) is None

        wait_until(f"the broker knows {user.name}", is_known)
        return user

    def change_password(self, user: User) -> User:
        """Change a user's password; returns when the old one is refused."""
        changed = replace(user, password=_new_password())
        self._keep(changed)
        address = {"bootstrap.servers": self.addresses["SASL_PLAINTEXT"], "default.api.timeout.ms": "2000"}

        def is_refused() -> bool:
            try:
                cluster_id_of(address | user.login)
            except ConnectError:
                return True
            return False

        wait_until(f"the old password of {user.name} is refused", is_refused)
        return changed

    def _keep(self, user: User) -> None:
        info = ScramCredentialInfo(_SCRAM[user.mechanism], _LEAST_ITERATIONS)
        upsertion = UserScramCredentialUpsertion(user.name, info, user.password.encode())
        _admin(self.bootstrap).alter_user_scram_credentials([upsertion])[user.name].result(30)

    def allow(self, acls: Iterable[Acl]) -> None:
        """Add permissions; returns when they are effective."""
        admin, bindings = _admin(self.bootstrap), [acl.binding for acl in dict.fromkeys(acls)]
        for created in admin.create_acls(bindings).values():
            created.result(30)
        wait_until("what is allowed holds", lambda: set(bindings) <= set(self._bindings()))

    def forbid(self, acls: Iterable[Acl]) -> None:
        """Remove permissions; returns when that is effective."""
        admin, gone = _admin(self.bootstrap), list(dict.fromkeys(acls))
        for deleted in admin.delete_acls([acl.filter for acl in gone]).values():
            deleted.result(30)
        bindings = {acl.binding for acl in gone}
        wait_until("what is forbidden holds", lambda: not bindings & set(self._bindings()))

    def _bindings(self) -> list[Any]:
        return list(_admin(self.bootstrap).describe_acls(Acl.everything()).result(30))


@contextmanager
def secured_broker(run: Path) -> Iterator[SecuredBroker]:
    """Use the secured broker of a test run: the first lease starts it, and it ends after the last one."""
    folder = run / "secured"
    with file_lock(folder / "lock"):
        addresses = _addresses(folder)
    stores = folder / "stores"
    environ = {**os.environ, "JAVA_TOOL_OPTIONS": f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={_keys(stores)}"}
    config = BrokerConfig(folder=folder / "broker", port=0, properties=_properties(addresses, stores))
    with EmbeddedBroker(config, environ=environ).lease() as info:
        yield SecuredBroker(info.bootstrap_servers, addresses, stores)


def _addresses(folder: Path) -> dict[str, str]:
    """The addresses stored in the folder, which is filled if it is new."""
    kept = folder / "addresses.json"
    if not kept.exists():
        stores = folder / "stores"
        stores.mkdir()
        authority = Authority()
        certified = authority.sign(CERTIFIED)
        write_stores(stores, authority, certified)
        (stores / "key.pem").write_text(certified.key_pem() + certified.certificate_pem)
        (stores / "broker.p12").write_bytes(authority.sign(HOST).pkcs12(PASSWORD))
        write_keys(stores)
        ports = {own_port(): protocol for protocol in PROTOCOLS}
        kept.write_text(json.dumps({protocol: f"{HOST}:{port}" for port, protocol in ports.items()}))
    return dict(json.loads(kept.read_text()))


def _properties(addresses: Mapping[str, str], stores: Path) -> dict[str, str]:
    properties = {
        "listeners": ",".join(f"{protocol}://{address}" for protocol, address in addresses.items()),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The tests, and the broker itself, connect without a login.
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(stores / "broker.p12"),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(stores / "authority.pem"),
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
        "listener.name.ssl.ssl.client.auth": "required",
        "sasl.oauthbearer.jwks.endpoint.url": _keys(stores),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
    for listener in ("sasl_plaintext", "sasl_ssl"):
        properties |= {f"listener.name.{listener}.{key}": value for key, value in _logins().items()}
    return properties


def _logins() -> dict[str, str]:
    return {
        "plain.sasl.jaas.config": f'{_SECURITY}.plain.PlainLoginModule required user_{PLAIN.name}="{PLAIN.password}";',
        "scram-sha-256.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
        "scram-sha-512.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
        "oauthbearer.sasl.jaas.config": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
        "oauthbearer.sasl.server.callback.handler.class": (
            f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
    }


def _new_password() -> str:
    return f"s3cret-of-{uuid4().hex}"


def _keys(stores: Path) -> str:
    return (stores / "jwks.json").as_uri()


@cache
def _admin(bootstrap: str) -> AdminClient:
    return admin_client(bootstrap)
