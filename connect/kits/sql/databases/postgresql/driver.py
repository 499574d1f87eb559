"""How PostgreSQL is connected to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.errors import ConnectError
from connect.kits.sql.databases.postgresql.errors import connect_with_state, is_transient, is_transient_state
from connect.kits.sql.driver import NUMBER, SECONDS, Change, Driver, Options, one_of, same, when
from connect.kits.sql.hosts import HERE, Address, HostGuard, is_socket

if TYPE_CHECKING:
    from sqlalchemy import Dialect

__all__ = ["PsycopgDriver"]


def _search_path(value: str) -> Options:
    if not re.fullmatch(r"[\w$]+(,[\w$]+)*", value):
        raise ValueError("must be a comma-separated list of schema names consisting of letters, digits, _ and $")
    return {"options": f"-csearch_path={value}"}


_IGNORED: Final = frozenset({
    "adaptiveFetch", "assumeMinServerVersion", "autosave", "binaryTransfer", "cancelSignalTimeout", "cleanupSavepoints",
    "databaseMetadataCacheFields", "databaseMetadataCacheFieldsMiB", "defaultRowFetchSize", "disableColumnSanitiser",
    "escapeSyntaxCallMode", "hostRecheckSeconds", "loadBalanceHosts", "logUnclosedConnections", "maxResultBuffer",
    "preferQueryMode", "preparedStatementCacheQueries", "preparedStatementCacheSizeMiB", "prepareThreshold",
    "readOnlyMode", "receiveBufferSize", "reWriteBatchedInserts", "sendBufferSize", "socketTimeout", "stringtype",
    "tcpNoDelay", "unknownLength",
})  # fmt: skip


class PsycopgDriver(Driver):
    """psycopg 3."""

    options: ClassVar[Mapping[str, Change]] = {
        "application_name": same("application_name", r"[^\x00-\x1f]{1,63}"),
        "ApplicationName": same("application_name", r"[^\x00-\x1f]{1,63}"),
        "channel_binding": same("channel_binding", "disable|prefer|require"),
        "channelBinding": same("channel_binding", "disable|prefer|require"),
        "connect_timeout": same("connect_timeout", NUMBER),
        "connectTimeout": same("connect_timeout", NUMBER),
        "loginTimeout": same("connect_timeout", NUMBER),
        "currentSchema": _search_path,
        "gssencmode": same("gssencmode", "disable|prefer|require"),
        "gssEncMode": same("gssencmode", "disable|prefer|require"),
        "keepalives": same("keepalives", "[01]"),
        "keepalives_count": same("keepalives_count", NUMBER),
        "keepalives_idle": same("keepalives_idle", NUMBER),
        "keepalives_interval": same("keepalives_interval", NUMBER),
        "tcp_user_timeout": same("tcp_user_timeout", NUMBER),
        "tcpKeepAlive": when({"keepalives": "1"}, {"keepalives": "0"}),
        "ssl": when({"sslmode": "require"}),
        "sslmode": same("sslmode", "disable|allow|prefer|require|verify-ca|verify-full"),
        "sslrootcert": same("sslrootcert", "system"),
        "target_session_attrs": same("target_session_attrs", "any|read-write|read-only|primary|standby|prefer-standby"),
        "targetServerType": one_of(
            {
                "any": {"target_session_attrs": "any"},
                **{key: {"target_session_attrs": "primary"} for key in ("primary", "master")},
                **{key: {"target_session_attrs": "standby"} for key in ("secondary", "slave")},
                **{key: {"target_session_attrs": "prefer-standby"} for key in ("prefersecondary", "preferslave")},
            }
        ),
    }
    ignored: ClassVar[frozenset[str]] = _IGNORED
    modules: ClassVar[tuple[str, ...]] = ("psycopg",)
    # SQLAlchemy would make dictionaries of hstore, which is read and written as text.
    engine_options: ClassVar[Mapping[str, Any]] = {"use_native_hstore": False}

    def arguments(self, address: Address) -> dict[str, Any]:
        return {"connect_timeout": SECONDS, "fallback_application_name": "sluice-connect", **address.options}

    def connect(self, guard: HostGuard, dialect: Dialect, arguments: Mapping[str, Any]) -> Any:
        return connect_with_state(dialect, {**arguments, **_with_addresses(guard, dialect.loaded_dbapi, arguments)})

    def is_transient(self, error: BaseException) -> bool:
        return is_transient(error)

    def is_transient_report(self, state: str, number: int, text: str) -> bool:  # noqa: ARG002
        return is_transient_state(state)


def _with_addresses(guard: HostGuard, psycopg: Any, arguments: Mapping[str, Any]) -> Mapping[str, str]:
    """Return libpq's lists of hosts and ports, and their addresses beside them."""
    hosts, ports = _listed(arguments.get("host")), _listed(arguments.get("port"))
    written = _listed(arguments.get("hostaddr") or "," * (len(hosts) - 1))
    if len(written) != len(hosts):
        raise ConnectError(
            f"{guard.key('hostaddr')}: hostaddr must list as many addresses as there are hosts ({len(hosts)})."
        )
    found: list[tuple[str, str, str]] = []
    failure: Exception | None = None
    for host, address, port in zip(hosts, written, ports * len(hosts) if len(ports) == 1 else ports, strict=True):
        if not address and is_socket(host):
            guard.check_all("host", HERE)
            found.append((host, "", port))
            continue
        try:
            reachable = guard.reachable("hostaddr" if address else "host", address or host, int(port or 0))
        except (OSError, UnicodeError) as error:
            failure = psycopg.OperationalError(f"failed to resolve host {address or host!r}: {error}")
        else:
            found += [(host, each, port) for each in reachable]
    if failure is not None and not found:
        raise failure
    names, addresses, chosen = zip(*found, strict=True)
    return {"host": ",".join(names), "hostaddr": ",".join(addresses), "port": ",".join(chosen)}


def _listed(value: object) -> list[str]:
    return ("" if value is None else str(value)).split(",")
