"""The connection to MongoDB: the keys that sink and source share, and the client made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, Password, option
from connect.config.unsupported_keys import UnsupportedKey, given_keys
from connect.errors import ConfigError, ConnectError
from connect.hosts import HostDeniedError, HostsConfig
from connect.internals.extras import missing_extra
from connect.internals.tls.key_stores import read_key_store, read_trust_store
from connect.internals.tls.pem import file_in_memory
from connectors.mongodb.failures import told

if TYPE_CHECKING:
    from pymongo import MongoClient

__all__ = ["ConnectionConfig", "partition_hosts"]

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
_SELECTION_SECONDS: Final = 5
"""How long an operation waits for a server that can take it, where the URI sets nothing: the runtime tries again."""
_STORES: Final = (
    ("truststore", "ssl.truststore.location", "ssl.truststore.password"),
    ("keystore", "ssl.keystore.location", "ssl.keystore.password"),
)


class ConnectionConfig(HostsConfig):
    """Where MongoDB is, and how to sign in."""

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
        from pymongo import MongoClient  # noqa: PLC0415 - the driver is loaded only where it is used
        from pymongo.driver_info import DriverInfo  # noqa: PLC0415
        from pymongo.server_api import ServerApi  # noqa: PLC0415

        parsed = _parsed(self.connection_uri.value)
        self._check_addresses(parsed["nodelist"])
        if "serverselectiontimeoutms" not in {key.lower() for key in parsed["options"]}:
            options["serverSelectionTimeoutMS"] = _SELECTION_SECONDS * 1000
        if self.server_api_version:
            options["server_api"] = ServerApi(
                self.server_api_version,
                strict=self.server_api_strict,
                deprecation_errors=self.server_api_deprecation_errors,
            )
        with ExitStack() as files, told("connect"):
            options |= self._tls_options(files)
            name = f"sluice|{self.provider}" if self.provider else "sluice"
            return MongoClient(self.connection_uri.value, driver=DriverInfo(name), **options)

    def _tls_options(self, files: ExitStack) -> dict[str, Any]:
        found: dict[str, Any] = {}
        props = self._store_props
        if props:
            found["tls"] = True
        if (trusted := read_trust_store(props, "")) is not None:
            found["tlsCAFile"] = files.enter_context(file_in_memory(trusted))
        if (key := read_key_store(props, "")) is not None:
            found["tlsCertificateKeyFile"] = files.enter_context(file_in_memory(key.key + key.certificates))
            if key.password is not None:
                found["tlsCertificateKeyFilePassword"] = key.password
        return found

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
        try:
            parsed = _parsed(self.connection_uri.value)
        except ConnectError as error:
            yield ConfigError("connection.uri", "[hidden]", str(error))
            return
        if str(parsed["options"].get("w")) == "0":
            told = "With w=0 the server does not say whether it has written: remove w from the URI"
            yield ConfigError("connection.uri", "[hidden]", told)
        for host, _ in parsed["nodelist"]:
            try:
                self.host_rules.check_name(host)
            except HostDeniedError as error:
                yield ConfigRuleError(str(error), "connection.uri")

    def _store_errors(self) -> Iterator[ConfigError]:
        for (kind, location_key, password_key), read in zip(_STORES, (read_trust_store, read_key_store), strict=True):
            try:
                read(self._store_props, "")
            except ConfigError as error:
                key = f"connection.ssl.{kind}"
                text = str(error).replace(location_key, key).replace(password_key, f"{key}Password")
                yield ConfigRuleError(text, key)

    def _check_addresses(self, nodes: Iterable[tuple[str, int | None]]) -> None:
        for host, port in nodes:
            if not host.startswith("/"):
                self.host_rules.check_all(host, port or 0)


def partition_hosts(uri: str) -> str:
    """Return the part of the URI before the path, without credentials, as source partitions show it."""
    scheme, _, rest = uri.partition("://")
    hosts = rest.partition("/")[0].partition("?")[0].rpartition("@")[2]
    return f"{scheme}://{hosts}"


def _parsed(uri: str) -> Mapping[str, Any]:
    """Return the parts of a connection string; a ``ConnectError`` without secrets says what is wrong with it."""
    from pymongo.errors import PyMongoError  # noqa: PLC0415
    from pymongo.uri_parser import parse_uri  # noqa: PLC0415

    if uri.startswith("mongodb+srv://"):
        # Its hosts are in the DNS, which is asked when the client is made.
        host = partition_hosts(uri).removeprefix("mongodb+srv://")
        options = dict(part.partition("=")[::2] for part in uri.partition("?")[2].split("&"))
        return {"nodelist": [(host, None)] if host else [], "options": options}
    try:
        return parse_uri(uri, validate=True, warn=False)
    except (PyMongoError, ValueError, TypeError) as error:
        raise ConnectError(
            f"It is not a connection string of MongoDB ({_without_uri(str(error), uri)}): write "
            "mongodb://user:password@host:27017/?options, with special characters in the password percent-encoded"
        ) from None


def _without_uri(text: str, uri: str) -> str:
    """Return a driver's message without the parts of the URI that may be secret."""
    credentials = uri.partition("://")[2].rpartition("@")[0]
    secrets = [uri, credentials, *credentials.split(":")]
    if any(secret and secret in text for secret in secrets):
        return "the user or the password is malformed"
    return text
