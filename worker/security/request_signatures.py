"""Signatures of whole requests between Sluice workers: method, path, body, caller, time and a nonce. Pure functions.

Kafka Connect signs only the body (KIP-507), so an intercepted request can be replayed, also to another path, while the
key is valid. Sluice workers sign whole requests to each other with the same key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from worker.errors import BadRequestError, ForbiddenError
from worker.security.principals import WORKER_MECHANISM, Principal
from worker.stores.config.store import SessionKey

__all__ = [
    "IDENTITY_HEADER",
    "MAC_HASHES",
    "REQUEST_SIGNATURE_HEADER",
    "InName",
    "Nonces",
    "WholeRequest",
    "now_ms",
    "sign_whole",
    "split_signature",
    "verify_whole",
    "worker_headers",
]

REQUEST_SIGNATURE_HEADER: Final = "X-Sluice-Signature"
"""Carries the algorithm, the time in milliseconds, a nonce and the signature in base64, separated by colons."""

IDENTITY_HEADER: Final = "X-Sluice-Identity"
"""Carries the identity on whose behalf a worker sends a request: JSON in base64."""

MAC_HASHES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "HmacSHA256": "sha256",
        "HmacSHA384": "sha384",
        "HmacSHA512": "sha512",
        "HmacSHA1": "sha1",
        "HmacMD5": "md5",
        "HmacSHA224": "sha224",
    }
)
"""The hash of each MAC algorithm, by its Java name."""

_WINDOW_MS: Final = 300_000
"""The permitted difference between the clocks of workers. A nonce is kept for as long."""
_MOST_NONCES: Final = 100_000


@dataclass(frozen=True, slots=True)
class InName:
    """The identity on whose behalf a worker sends a request: a principal at an ``address``, or the worker itself."""

    principal: Principal | None
    address: str
    worker: str

    def text(self) -> str:
        """Return the value of the header."""
        who = self.principal
        document = {
            "principal": None
            if who is None
            else {"name": who.name, "mechanism": who.mechanism, "groups": list(who.groups)},
            "address": self.address,
            "worker": self.worker,
        }
        return base64.b64encode(json.dumps(document).encode()).decode()

    @classmethod
    def parse(cls, text: str) -> InName:
        """Parse the header. Raises :class:`~worker.errors.BadRequestError` if it is invalid."""
        try:
            document = json.loads(base64.b64decode(text, validate=True))
            who = document["principal"]
            principal = (
                None
                if who is None
                else Principal(str(who["name"]), str(who["mechanism"]), tuple(map(str, who["groups"])))
            )
            return cls(principal, str(document["address"]), str(document["worker"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadRequestError("The identity in a request of another worker cannot be read.") from error


@dataclass(frozen=True, slots=True)
class WholeRequest:
    """A request to sign; ``url`` counts without scheme and host, ``identity`` is the text of its header."""

    method: str
    url: str
    body: bytes = field(repr=False)
    identity: str = ""

    def signed_bytes(self, algorithm: str, time_ms: int, nonce: str) -> bytes:
        """Return the bytes to sign."""
        parts = (
            "sluice-1",
            algorithm,
            str(time_ms),
            nonce,
            self.method,
            _canonical(self.url),
            self.identity,
            hashlib.sha256(self.body).hexdigest(),
        )
        return "\n".join(parts).encode("utf-8", "backslashreplace")


class Nonces:
    """The nonces used within the window. Used by one thread."""

    def __init__(self) -> None:
        self._used: OrderedDict[str, int] = OrderedDict()

    def use(self, nonce: str, time_ms: int, now_ms: int) -> bool:
        """Use a nonce of a verified request. Return whether it was unused."""
        while self._used and (len(self._used) > _MOST_NONCES or next(iter(self._used.values())) < now_ms):
            self._used.popitem(last=False)
        if nonce in self._used:
            return False
        # I9: only workers of this cluster, with a valid signature, add nonces.
        self._used[nonce] = max(time_ms, now_ms) + 2 * _WINDOW_MS
        return True


def sign_whole(key: SessionKey, algorithm: str, request: WholeRequest, now_ms: int) -> dict[str, str]:
    """Return the headers with the signature of a request and the identity on whose behalf it is sent."""
    nonce = secrets.token_urlsafe(16)
    mac = base64.b64encode(_mac(key, algorithm, request, now_ms, nonce)).decode()
    signature = {REQUEST_SIGNATURE_HEADER: f"{algorithm}:{now_ms}:{nonce}:{mac}"}
    return {**signature, **({IDENTITY_HEADER: request.identity} if request.identity else {})}


def worker_headers(
    key: SessionKey, algorithm: str, worker_id: str, method: str, url: str, body: bytes
) -> dict[str, str]:
    """Return the headers for a request that a worker makes on its own behalf."""
    name = InName(Principal(worker_id, WORKER_MECHANISM), "", worker_id)
    return sign_whole(key, algorithm, WholeRequest(method, url, body, name.text()), now_ms())


def verify_whole(request: WholeRequest, signature: str, key: SessionKey, nonces: Nonces, now_ms: int) -> None:
    """Refuse a request whose signature is wrong, old or used before; the algorithm is known to be accepted.

    Raises :class:`~worker.errors.ForbiddenError`, or :class:`~worker.errors.BadRequestError` for a malformed one.
    """
    algorithm, time_ms, nonce, mac = split_signature(signature)
    if not hmac.compare_digest(mac, _mac(key, algorithm, request, time_ms, nonce)):
        raise ForbiddenError("Internal request contained invalid signature.")
    if abs(now_ms - time_ms) > _WINDOW_MS:
        raise ForbiddenError(
            f"Internal request was signed {abs(now_ms - time_ms) // 1000} s away from this worker's time. Synchronise "
            "the workers' clocks."
        )
    if not nonces.use(nonce, time_ms, now_ms):
        raise ForbiddenError("Internal request was sent before.")


def now_ms() -> int:
    """Return the time that a signature carries, in ms since 1970."""
    return int(time.time() * 1000)


def split_signature(signature: str) -> tuple[str, int, str, bytes]:
    """Return the algorithm, time, nonce and code in a signature header."""
    try:
        algorithm, time_ms, nonce, mac = signature.split(":")
        return algorithm, int(time_ms), nonce, base64.b64decode(mac, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequestError("The signature of an internal request is malformed.") from error


def _canonical(url: str) -> str:
    """Return a canonical form of path and query, because clients and proxies escape characters differently."""
    split = urlsplit(url)
    path = "/".join(quote(unquote(segment), safe="") for segment in split.path.rstrip("/").split("/"))
    return f"{path}?{urlencode(parse_qsl(split.query, keep_blank_values=True))}"


def _mac(key: SessionKey, algorithm: str, request: WholeRequest, time_ms: int, nonce: str) -> bytes:
    return hmac.digest(key.key, request.signed_bytes(algorithm, time_ms, nonce), MAC_HASHES[algorithm])
