"""Clients of MongoDB: what a connection string may hold, and which hosts it may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConnectError
from connect.hosts import HostDeniedError, HostRules
from connect.internals.tls.key_stores import read_key_store, read_trust_store
from connect.internals.tls.pem import file_in_memory
from connect.kits.mongodb.failures import told

if TYPE_CHECKING:
    from pymongo import MongoClient

__all__ = ["mongo_client", "partition_hosts", "uri_problems"]

_SELECTION_SECONDS: Final = 5
"""How long an operation waits for a server that can take it, where the URI sets nothing: the runtime tries again."""


def mongo_client(
    uri: str, rules: HostRules, stores: Mapping[str, str], *, name: str = "sluice", **options: Any
) -> MongoClient[dict[str, Any]]:
    """Return a new client, which connects when it is first used.

    ``stores`` are a trust store and a key store under the names ``ssl.truststore.*`` and ``ssl.keystore.*``.
    """
    from pymongo import MongoClient  # noqa: PLC0415 - the driver is loaded only where it is used
    from pymongo.driver_info import DriverInfo  # noqa: PLC0415

    parsed = _parsed(uri)
    for host, port in parsed["nodelist"]:
        if not host.startswith("/"):
            rules.check_all(host, port or 0)
    if "serverselectiontimeoutms" not in {key.lower() for key in parsed["options"]}:
        options.setdefault("serverSelectionTimeoutMS", _SELECTION_SECONDS * 1000)
    with ExitStack() as files, told("connect"):
        options |= _tls_options(stores, files)
        return MongoClient(uri, driver=DriverInfo(name), **options)


def _tls_options(stores: Mapping[str, str], files: ExitStack) -> dict[str, Any]:
    found: dict[str, Any] = {"tls": True} if stores else {}
    if (trusted := read_trust_store(stores, "")) is not None:
        found["tlsCAFile"] = files.enter_context(file_in_memory(trusted))
    if (key := read_key_store(stores, "")) is not None:
        found["tlsCertificateKeyFile"] = files.enter_context(file_in_memory(key.key + key.certificates))
        if key.password is not None:
            found["tlsCertificateKeyFilePassword"] = key.password
    return found


def uri_problems(uri: str, rules: HostRules) -> Iterator[str]:
    """Yield what is wrong with a connection string, without showing secrets."""
    try:
        parsed = _parsed(uri)
    except ConnectError as error:
        yield str(error)
        return
    if str(parsed["options"].get("w")) == "0":
        yield "With w=0 the server does not say whether it has written: remove w from it"
    for host, _ in parsed["nodelist"]:
        try:
            rules.check_name(host)
        except HostDeniedError as error:
            yield str(error)


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
