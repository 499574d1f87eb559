"""The settings of a client, and the TLS options that make some of them, with the names and meanings of Java's."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from inspect import get_annotations
from typing import Any, ClassVar, Final

from connect.config import LOW, Config, Password, option
from connect.errors import ConfigError
from connect.hosts import HostRules
from connect.internals.tls.client import TLS_NAMES, client_context, has_trust_store, tls_option, unusable_stores

__all__ = ["ClientSettings", "Remedies", "TlsConfig"]

_SECRET_ENDS: Final = (".password", ".key", ".certificates", ".certificate.chain")


@dataclass(frozen=True, slots=True)
class Remedies:
    """The ends of errors: what to do, with the names of the options."""

    untrusted: str = "Check the TLS options, and that the host of the URL matches its certificate."
    too_large: str = "request less at a time."
    unreadable: str = "Correct the server."


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a client connects, what it waits for, and how much it takes."""

    rules: HostRules
    tls: ssl.SSLContext
    proxy: Password | None = None
    """The URL of the proxy, with its user and password; none from the environment is used."""
    timeouts: tuple[float, float] = (10.0, 30.0)
    """The seconds to wait for a connection, and for the next part of an answer."""
    body_seconds: float = float("inf")
    """How long a server may take to send a complete answer."""
    max_bytes: int = 64 << 20
    """The largest body, after decompression."""
    max_connections: int = 1
    follows_redirects: bool = True
    user_agent: str = "sluice"
    remedies: Remedies = field(default_factory=Remedies)


class TlsConfig(Config):
    """The base of configs with TLS options: ``class HttpsConfig(TlsConfig, tls_prefix="https.")`` has ``https.ssl.*``.

    ``tls_aliases`` has other keys for them, which count where those with the prefix are absent. With ``empty_is_unset``
    an empty value is none, save for ``ssl.endpoint.identification.algorithm``.
    """

    _tls_prefix: ClassVar[str] = ""
    _tls_names: ClassVar[Mapping[str, str]] = {}
    """The name of each key; the later ones take precedence."""
    _empty_is_unset: ClassVar[bool] = False

    def __init_subclass__(
        cls,
        *,
        tls_prefix: str | None = None,
        tls_aliases: Mapping[str, str] | None = None,
        alias_doc: str = "Alias of {key}.",
        empty_is_unset: bool = False,
        **kwargs: Any,
    ) -> None:
        if tls_prefix is not None:
            aliases = tls_aliases or {}
            own = {tls_prefix + name: name for name in TLS_NAMES}
            docs = {key: alias_doc.format(key=tls_prefix + name) for key, name in aliases.items()}
            cls._tls_prefix, cls._empty_is_unset, cls._tls_names = tls_prefix, empty_is_unset, {**aliases, **own}
            others = {key: option(default=None, importance=LOW, doc=doc) for key, doc in docs.items()}
            _declare(cls, {**{key: tls_option(name) for key, name in own.items()}, **others})
        super().__init_subclass__(**kwargs)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each store that cannot be read."""
        yield from super().check()
        yield from unusable_stores(self.tls_props(), self._tls_prefix)

    def tls_props(self) -> dict[str, str]:
        """Return the TLS options that are set, all below the prefix."""
        props = {}
        for key, name in self._tls_names.items():
            found = getattr(self, _attribute(key))
            text = found.value if isinstance(found, Password) else found
            if text or (text is not None and (name.endswith(".algorithm") or not self._empty_is_unset)):
                props[self._tls_prefix + name] = text
        return props

    def tls_context(self, *, trusts_all: bool = False, trusts_bundle: bool = False) -> ssl.SSLContext:
        """Create the client's context. Raises :class:`~connect.errors.ConfigError` for an unusable option.

        With ``trusts_all`` neither the issuer nor the host of certificates is checked. With ``trusts_bundle`` the
        authorities bundled with requests are trusted beside the system's, unless the options name others.
        """
        props = self.tls_props()
        context = client_context(props, self._tls_prefix, trusts_all=trusts_all)
        if trusts_bundle and not has_trust_store(props, self._tls_prefix):
            # Imported here, so that only processes that send requests load the library.
            from requests.utils import DEFAULT_CA_BUNDLE_PATH  # noqa: PLC0415

            context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
        return context


def _declare(cls: type[TlsConfig], options: Mapping[str, Any]) -> None:
    """Declare options before those in the body of the class."""
    for key, declared in options.items():
        setattr(cls, _attribute(key), declared)
    types = {_attribute(key): Password | None if key.endswith(_SECRET_ENDS) else str | None for key in options}
    cls.__annotations__ = {**types, **get_annotations(cls)}


def _attribute(key: str) -> str:
    return key.replace(".", "_")
