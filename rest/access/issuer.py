"""Bearer tokens of an OIDC issuer: JWTs, verified with the keys that the issuer publishes."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import requests
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from connect.errors import ConnectError, os_reason
from worker.security.principals import Principal

__all__ = ["Issuer", "IssuerSettings", "JsonFetcher"]

logger = logging.getLogger(__name__)
_MECHANISM: Final = "oidc"
_LONGEST_TOKEN: Final = 16 * 1024
_LEAST_REFETCH_SECONDS: Final = 60.0
_REFETCH_SECONDS: Final = 3600.0
_MOST_GROUPS: Final = 1000


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    """The claims that a token must have. ``principal_claim`` and ``groups_claim`` may be dotted paths."""

    issuer: str
    audience: Sequence[str]
    jwks_url: str | None = None
    algorithms: Sequence[str] = ("RS256", "ES256")
    principal_claim: str = "sub"
    groups_claim: str = "groups"
    clock_skew: float = 60.0


class JsonFetcher:
    """Fetches small JSON documents over HTTP; does not follow redirects, and gives up after a few seconds."""

    _TIMEOUT: Final = 5.0
    _MOST_BYTES: Final = 1024 * 1024

    def __call__(self, url: str) -> Any:
        """Return the JSON at ``url``. Raises :class:`~connect.errors.ConnectError`."""
        try:
            with requests.get(url, timeout=self._TIMEOUT, allow_redirects=False, stream=True) as answer:
                answer.raise_for_status()
                if answer.is_redirect:
                    raise ConnectError(f"{url} redirects to another URL")
                content = answer.raw.read(self._MOST_BYTES + 1, decode_content=True)
                if len(content) > self._MOST_BYTES:
                    raise ConnectError(f"{url} is larger than {self._MOST_BYTES} bytes")
                return json.loads(content)
        except (requests.RequestException, OSError, ValueError) as error:
            raise ConnectError(f"{url} cannot be read: {os_reason(error)}") from error


class Issuer:
    """Verifies the tokens of one issuer. Thread-safe.

    Keys are cached for an hour. A token with an unknown key triggers a new fetch, at most once a minute however many
    such tokens arrive; meanwhile other requests continue with the cached keys.
    """

    def __init__(
        self,
        settings: IssuerSettings,
        fetch: Callable[[str], Any] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._fetch = fetch or JsonFetcher()
        self._clock = clock
        self._keys: KeySet | None = None
        self._fetched = -_REFETCH_SECONDS
        self._tried = -_REFETCH_SECONDS
        self._fetching = threading.Lock()

    def principal(self, token: str) -> Principal | None:
        """Return the principal of a token; ``None`` if the token is not valid."""
        if len(token) > _LONGEST_TOKEN or token.count(".") != 2:
            return None
        if self._clock() - self._fetched >= _REFETCH_SECONDS:
            self._refresh()
        claims = self._claims(token)
        if claims is None and self._refresh():
            claims = self._claims(token)
        return None if claims is None else self._principal(claims)

    def _claims(self, token: str) -> Mapping[str, Any] | None:
        """Return the claims of a token if its signature and its claims are valid now."""
        settings, keys = self._settings, self._keys
        if keys is None:
            return None
        rules = jwt.JWTClaimsRegistry(
            now=int(self._clock()),
            leeway=int(settings.clock_skew),
            iss={"essential": True, "value": settings.issuer},
            aud={"essential": True, "values": list(settings.audience)},
            exp={"essential": True},
        )
        try:
            claims = jwt.decode(token, keys, algorithms=list(settings.algorithms)).claims
            rules.validate(claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            logger.debug("A bearer token is not valid: %s", type(error).__name__)
            return None
        return claims

    def _principal(self, claims: Mapping[str, Any]) -> Principal | None:
        name = _member(claims, self._settings.principal_claim)
        if not isinstance(name, str) or not name:
            logger.warning(
                "A bearer token was refused: its claim %s is missing or not a string. Set "
                "rest.authentication.oidc.principal.claim to a claim that the issuer's tokens have.",
                self._settings.principal_claim,
            )
            return None
        groups = _member(claims, self._settings.groups_claim)
        listed = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
        return Principal(name, _MECHANISM, tuple(item for item in listed[:_MOST_GROUPS] if isinstance(item, str)))

    def _refresh(self) -> bool:
        """Fetch the keys unless that was tried a moment ago; return whether they were fetched."""
        if not self._fetching.acquire(blocking=self._keys is None):
            return False
        try:
            now = self._clock()
            if now - self._tried < _LEAST_REFETCH_SECONDS:
                return False
            self._tried = now
            self._keys = _key_set(self._fetch(self._jwks_url()))
            self._fetched = now
        except ConnectError as error:
            logger.warning(
                "Could not fetch the keys of the OIDC issuer, so its bearer tokens may be refused: %s. "
                "Check rest.authentication.oidc.* and the issuer.",
                error,
            )
            return False
        finally:
            self._fetching.release()
        return True

    def _jwks_url(self) -> str:
        """Return the URL of the keys; it never comes from a token."""
        if self._settings.jwks_url:
            return self._settings.jwks_url
        found = self._fetch(f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
        url = found.get("jwks_uri") if isinstance(found, dict) else None
        if not isinstance(url, str) or found.get("issuer") != self._settings.issuer:
            raise ConnectError("its openid-configuration has no jwks_uri, or names another issuer")
        if self._settings.issuer.startswith("https://") and not url.startswith("https://"):
            raise ConnectError("its openid-configuration has a jwks_uri that is not https://")
        return url


def _key_set(document: Any) -> KeySet:
    """Return the keys that can verify signatures; symmetric keys and unknown kinds are left out."""
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise ConnectError("the answer is not a JSON Web Key Set")
    usable = [
        key
        for key in document["keys"]
        if isinstance(key, dict) and key.get("kty") in ("RSA", "EC", "OKP") and key.get("use", "sig") == "sig"
    ]
    try:
        return KeySet.import_key_set({"keys": usable})
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise ConnectError("a key in the JSON Web Key Set is malformed") from error


def _member(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim by its name, or by a dotted path to it."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found
