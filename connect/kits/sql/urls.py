"""Database URLs: JDBC's, ``jdbc:postgresql://...``, and SQLAlchemy's, ``postgresql+psycopg://...``.

An error never shows the text of a URL, which may contain a password: it names the part that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote, unquote_plus

from connect.config import Password
from connect.kits.sql.driver import Driver
from connect.kits.sql.hosts import Address
from connect.kits.sql.registry import DEFAULT_DRIVERS, driver_name, driver_of

__all__ = ["ALLOWED_DRIVERS_KEY", "ALLOWED_OPTIONS_KEY", "Allowed", "parse_url"]

ALLOWED_DRIVERS_KEY: Final = "jdbc.allowed.drivers"
ALLOWED_OPTIONS_KEY: Final = "jdbc.allowed.options"

_OUT_OF_PLACE: Final = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9]*(?:\+[A-Za-z0-9_]+)?):")
_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.%a-z]+\]|[A-Za-z0-9._-]+")
_NAME: Final = re.compile(r"[A-Za-z][\w.]*", re.ASCII)
_ENCODED: Final = "its host or port is invalid: write @ / : ? # in a user or a password percent-encoded, @ as %40"
_JDBC: Final = "jdbc:"
_MARIADB_MODES: Final = re.compile(r"(sequential|loadbalance|replication|aurora|failover):", re.IGNORECASE)
_MEMORY: Final = ":memory:"


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the worker's configuration allows: drivers, and driver options beyond the harmless ones."""

    drivers: Sequence[str] = DEFAULT_DRIVERS
    options: Sequence[str] = ()

    def driver(self, name: str) -> Driver:
        """Return the driver of that name. Raises ``ValueError`` if it is not allowed."""
        full = driver_name(name)
        if full not in map(driver_name, self.drivers):
            raise ValueError(
                f"the driver {full} is not allowed on this worker; use one of {', '.join(self.drivers) or 'none'}, or "
                f"add it to {ALLOWED_DRIVERS_KEY} in the worker's configuration"
            )
        return driver_of(full)


def parse_url(
    text: str,
    *,
    allowed: Allowed | None = None,
    user: str | None = None,
    password: Password | None = None,
    options: Mapping[str, str] | None = None,
) -> Address:
    """Parse a URL; ``user``, ``password`` and ``options`` take precedence over those in the URL.

    Raises ``ValueError``, whose text says what to change and shows nothing of the URL except names of options.
    """
    allowed = allowed or Allowed()
    text = text.strip()
    if _OUT_OF_PLACE.search(text):
        raise ValueError("it contains a control character")
    jdbc = text[: len(_JDBC)].lower() == _JDBC
    rest = text[len(_JDBC) :] if jdbc else text
    scheme = _SCHEME.match(rest)
    if scheme is None:
        raise ValueError("it must begin with jdbc:postgresql:, jdbc:mysql:, jdbc:mariadb:, jdbc:sqlite: or the like")
    driver = allowed.driver(scheme[1])
    rest = rest[scheme.end() :]
    if jdbc and not driver.options:
        raise ValueError(f"for a {scheme[1]} database, write SQLAlchemy's URL: {driver.name}://...")
    if driver.name == "sqlite+pysqlite":
        return _sqlite(rest, driver, allowed, options or {}, jdbc=jdbc)
    if jdbc:
        rest = _MARIADB_MODES.sub("", rest, count=1)
    return _network(rest, driver, allowed, user, password, options or {}, jdbc=jdbc)


def _sqlite(rest: str, driver: Driver, allowed: Allowed, options: Mapping[str, str], *, jdbc: bool) -> Address:
    path, query = _cut(rest, "?")
    if not jdbc:
        if not path.startswith("///"):
            raise ValueError("write SQLAlchemy's URL of a file as sqlite:////absolute/path")
        path = unquote(path[3:])
    if path.lower().startswith("file:"):
        raise ValueError("use the path of the file; file: URIs are not allowed because of their parameters")
    if not path or path == _MEMORY:
        raise ValueError("use a file: an in-memory database exists only within one connection")
    return Address(driver.name, database=path, options=_options(driver, allowed, [*_pairs(query), *options.items()]))


def _network(
    rest: str,
    driver: Driver,
    allowed: Allowed,
    user: str | None,
    password: Password | None,
    options: Mapping[str, str],
    *,
    jdbc: bool,
) -> Address:
    place, query = _cut(rest, "?")
    if "#" in rest:
        raise ValueError("it contains a #: write # in a user or password as %23")
    authority, database = _authority(place, jdbc=jdbc)
    logins, at, hosts = authority.rpartition("@")
    if (at and not hosts) or ("@" in query and "/" not in place[2:]):
        # What looks like options is part of a password, so it is not shown.
        raise ValueError(_ENCODED)
    reachable = tuple(_hosts(hosts))
    if len(reachable) > 1 and not driver.name.startswith("postgresql"):
        raise ValueError(f"{driver.name} supports only one host")
    url_user, colon, written = logins.partition(":")
    given: list[tuple[str, str]] = []
    own_user, own_password = (_decoded(url_user), _decoded(written) if colon else None) if at else (None, None)
    for name, value in _pairs(query):
        if name == "user":
            own_user = value
        elif name == "password":
            own_password, written = value, _raw_password(query)
        else:
            given.append((name, value))
    chosen = password if password is not None else None if own_password is None else Password(own_password)
    return Address(
        driver.name,
        reachable,
        _decoded(database),
        user if user is not None else own_user,
        chosen,
        _options(driver, allowed, [*given, *options.items()]),
        Password(written),
    )


def _authority(place: str, *, jdbc: bool) -> tuple[str, str]:
    """Return the part with the hosts, and the name of the database."""
    if place.startswith("//"):
        authority, _, database = place[2:].partition("/")
    elif jdbc:
        # PostgreSQL's short form: jdbc:postgresql:database, on this machine.
        authority, database = "", place.lstrip("/")
    else:
        raise ValueError("the driver must be followed by ://")
    if "/" in database or "@" in database:
        raise ValueError("write / and @ in a user, password or database name as %2F and %40")
    return authority, database


def _hosts(text: str) -> Iterator[tuple[str, int | None]]:
    for part in (text or "localhost").split(","):
        match = _HOST.match(part)
        if match is None:
            raise ValueError(_ENCODED)
        port = part[match.end() :]
        if port and not re.fullmatch(r":\d{1,5}", port):
            raise ValueError(_ENCODED)
        yield match[0].strip("[]"), int(port[1:]) if port else None


def _cut(text: str, mark: str) -> tuple[str, str]:
    before, _, after = text.partition(mark)
    return before, after


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    for item in query.split("&"):
        if item:
            name, _, value = item.partition("=")
            if not _NAME.fullmatch(decoded := _decoded(name, plus=True)):
                raise ValueError("an option after the ? has an invalid name: write & and = in values as %26 and %3D")
            yield decoded, _decoded(value, plus=True)


def _raw_password(query: str) -> str:
    return next((item[len("password=") :] for item in query.split("&") if item.startswith("password=")), "")


def _decoded(text: str, *, plus: bool = False) -> str:
    try:
        found = unquote_plus(text, errors="strict") if plus else unquote(text, errors="strict")
    except UnicodeDecodeError:
        # The error quotes the text, which may be the password: it is not chained.
        raise ValueError("part of it is not UTF-8 after percent-decoding") from None
    if _OUT_OF_PLACE.search(found):
        raise ValueError("a part of it contains a control character after percent decoding")
    return found


def _options(driver: Driver, allowed: Allowed, given: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, value in given:
        try:
            found |= driver.translate(name, value, allowed.options)
        except KeyError as error:
            raise ValueError(
                f"the option {name} of {driver.name} is not allowed, because options may load code, run SQL or name "
                f"files of the worker: remove it, or add it to {ALLOWED_OPTIONS_KEY} in the worker's configuration"
            ) from error
        except ValueError as error:
            raise ValueError(f"the option {name} of {driver.name} {error}") from error
    return MappingProxyType(found)
