"""The connection to MongoDB: the keys that sink and source share, and the client made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Password, option
from connect.config.unsupported_keys import UnsupportedKey, given_keys
from connect.errors import ConfigError
from connect.hosts import HostsConfig
from connect.internals.extras import missing_extra
from connect.internals.tls.key_stores import read_key_store, read_trust_store
from connect.kits.mongodb.client import mongo_client, uri_problems

if TYPE_CHECKING:
    from pymongo import MongoClient

__all__ = ["ConnectionConfig"]

_CSFLE: Final = UnsupportedKey(
    "Client-side field level encryption is not supported: remove the csfle keys, and encrypt the fields in the "
    "application or by a transformation.",
    ("", "false"),
)
_REFUSED: Final[Mapping[str, UnsupportedKey]] = {
    "csfle.enabled": _CSFLE,
    "csfle.key.vault.namespace": _CSFLE,
    "csfle.local.master.key": _CSFLE,
    "csfle.schema.map": _CSFLE,
}
_STORES: Final = (
    ("truststore", "ssl.truststore.location", "ssl.truststore.password"),
    ("keystore", "ssl.keystore.location", "ssl.keystore.password"),
)


class ConnectionConfig(HostsConfig):
    """Where MongoDB is, and how to sign in."""

    passed_keys: ClassVar[tuple[str, ...] | None] = ()
    connection_uri: Password = option(
        default=Password("mongodb://localhost:27017"),
        importance=HIGH,
        doc="The connection string, such as mongodb://user:password@host1,host2/?replicaSet=rs0. It may hold any "
        "option of the driver. Hidden, as it may hold a password.",
    )
    connection_ssl_truststore: str = option(
        default="",
        importance=MEDIUM,
        doc="A file with the certificates of the trusted authorities (PEM, JKS or PKCS12), for connections with TLS.",
    )
    connection_ssl_truststore_password: Password | None = option(
        default=None,
        name="connection.ssl.truststorePassword",
        importance=MEDIUM,
        doc="The password of connection.ssl.truststore.",
    )
    connection_ssl_keystore: str = option(
        default="",
        importance=MEDIUM,
        doc="A file with the client's private key and certificates (PEM, JKS or PKCS12), for connections with TLS.",
    )
    connection_ssl_keystore_password: Password | None = option(
        default=None,
        name="connection.ssl.keystorePassword",
        importance=MEDIUM,
        doc="The password of connection.ssl.keystore.",
    )
    server_api_version: str = option(
        default="",
        importance=MEDIUM,
        doc="The version of the stable server API to ask for, such as 1; by default none is asked for.",
    )
    server_api_deprecation_errors: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether the server refuses deprecated commands. Requires server.api.version.",
    )
    server_api_strict: bool = option(
        default=False,
        importance=MEDIUM,
        doc="Whether the server refuses commands that are not part of the API version. Requires server.api.version.",
    )
    provider: str = option(
        default="",
        importance=LOW,
        doc="A name that the server logs beside the driver's.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule over several options."""
        yield from super().check()
        for key, value, advice in given_keys(_REFUSED, self.originals):
            shown = "[hidden]" if key == "csfle.local.master.key" else value
            yield ConfigRuleError(f"Invalid value {shown} for configuration {key}: {advice}", key)
        if missing := missing_extra("mongodb", "pymongo"):
            yield ConfigRuleError(missing, "connection.uri")
            return
        yield from self._uri_errors()
        if self.server_api_version not in ("", "1"):
            yield ConfigError("server.api.version", self.server_api_version, "The versions that exist are: 1")
        if not self.server_api_version and (self.server_api_strict or self.server_api_deprecation_errors):
            key = "server.api.strict" if self.server_api_strict else "server.api.deprecation.errors"
            yield ConfigRuleError(f"{key} requires server.api.version: set it to 1, or remove {key}.", key)
        yield from self._store_errors()

    def client(self, **options: Any) -> MongoClient[dict[str, Any]]:
        """Return a new client. It connects when it is first used."""
        from pymongo.server_api import ServerApi  # noqa: PLC0415 - the driver is loaded only where it is used

        if self.server_api_version:
            options["server_api"] = ServerApi(
                self.server_api_version,
                strict=self.server_api_strict,
                deprecation_errors=self.server_api_deprecation_errors,
            )
        name = f"sluice|{self.provider}" if self.provider else "sluice"
        return mongo_client(self.connection_uri.value, self.host_rules, self._store_props, name=name, **options)

    @property
    def _store_props(self) -> dict[str, str]:
        """The stores under the names by which the kit of TLS knows them."""
        props = {}
        for kind, location_key, password_key in _STORES:
            location = getattr(self, f"connection_ssl_{kind}")
            password = getattr(self, f"connection_ssl_{kind}_password")
            if location:
                props[location_key] = location
                if password is not None and password.value:
                    props[password_key] = password.value
        if "ssl.keystore.password" in props:
            props["ssl.key.password"] = props["ssl.keystore.password"]
        return props

    def _uri_errors(self) -> Iterator[ConfigError]:
        for problem in uri_problems(self.connection_uri.value, self.host_rules):
            yield ConfigError("connection.uri", "[hidden]", problem)

    def _store_errors(self) -> Iterator[ConfigError]:
        for (kind, location_key, password_key), read in zip(_STORES, (read_trust_store, read_key_store), strict=True):
            try:
                read(self._store_props, "")
            except ConfigError as error:
                key = f"connection.ssl.{kind}"
                text = str(error).replace(location_key, key).replace(password_key, f"{key}Password")
                yield ConfigRuleError(text, key)
