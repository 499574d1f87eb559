"""Signatures with a shared key, which show that a request comes from a worker of the cluster (KIP-507). Pure functions.

The leader creates the key and writes it to the config topic, which only workers can read. Nothing that is stored is
signed with it, so a crash loses nothing: a worker that returns reads the key again, and a new leader creates another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from worker.errors import BadRequestError, ForbiddenError, UnavailableError
from worker.security.request_signatures import MAC_HASHES, Nonces, WholeRequest, split_signature, verify_whole
from worker.stores.config.store import SessionKey

__all__ = ["ALGORITHM_HEADER", "MISSING_SIGNATURE", "SIGNATURE_HEADER", "SignedRequest", "new_key", "sign", "verify"]

SIGNATURE_HEADER: Final = "X-Connect-Authorization"
"""Carries the signature of a request's body, in base64."""

ALGORITHM_HEADER: Final = "X-Connect-Request-Signature-Algorithm"
"""Carries Java's name of the algorithm that made the signature."""

# Java creates keys for these two as long as the hash's block, and for the others as long as the hash.
_KEY_BYTES: Final = {"HmacSHA1": 64, "HmacMD5": 64}
_LEAST_BITS: Final = 40

MISSING_SIGNATURE: Final = "Internal request missing required signature"
"""The error text, the same as Kafka Connect's, for a request without a signature of its body."""


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The body of another worker's request as received, and the signature from its headers."""

    body: bytes = field(repr=False)
    signature: str | None = field(repr=False)
    algorithm: str | None
    whole: WholeRequest | None = field(default=None, repr=False)
    whole_signature: str | None = field(default=None, repr=False)
    """Set if the other worker is a Sluice worker and has signed the whole request instead of its body."""


def new_key(algorithm: str, bits: int | None, now_ms: int) -> SessionKey:
    """Create a key from ``inter.worker.key.generation.algorithm`` and ``inter.worker.key.size`` (by default Java's).

    Raises :class:`~connect.errors.ConfigError` if they are invalid.
    """
    name = MAC_HASHES.get(algorithm)
    if name is None:
        raise ConfigError("inter.worker.key.generation.algorithm", algorithm, f"Use one of {', '.join(MAC_HASHES)}")
    if bits is not None and bits < _LEAST_BITS:
        raise ConfigRuleError(
            f"inter.worker.key.size is {bits} bits, which is too few: set it to at least {_LEAST_BITS}, or remove it "
            f"to use the usual size for {algorithm}.",
            "inter.worker.key.size",
        )
    usual = _KEY_BYTES.get(algorithm, hashlib.new(name, usedforsecurity=False).digest_size)
    size = usual if bits is None else (bits + 7) // 8
    return SessionKey(secrets.token_bytes(size), algorithm, now_ms)


def sign(key: SessionKey, algorithm: str, body: bytes) -> dict[str, str]:
    """Return the headers with the signature of a body, using ``inter.worker.signature.algorithm``."""
    return {SIGNATURE_HEADER: base64.b64encode(_mac(key, algorithm, body)).decode(), ALGORITHM_HEADER: algorithm}


def verify(
    request: SignedRequest, key: SessionKey | None, accepted: Sequence[str], nonces: Nonces, now_ms: int
) -> None:
    """Refuse a request not signed with ``key`` and one of ``inter.worker.verification.algorithms``.

    A request that is signed as a whole must have been signed shortly before ``now_ms``, with an unused nonce.

    Raises :class:`~worker.errors.BadRequestError` without a signature or with an algorithm that is not accepted,
    :class:`~worker.errors.UnavailableError` while this worker knows no key, and :class:`~worker.errors.ForbiddenError`
    for a wrong signature.
    """
    if request.whole is not None and request.whole_signature is not None:
        _check_algorithm(split_signature(request.whole_signature)[0], accepted)
        verify_whole(request.whole, request.whole_signature, _known(key), nonces, now_ms)
        return
    if request.signature is None or request.algorithm is None:
        raise BadRequestError(MISSING_SIGNATURE)
    _check_algorithm(request.algorithm, accepted)
    try:
        signature = base64.b64decode(request.signature, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequestError(f"The signature of an internal request is not base64: {error}") from error
    if not hmac.compare_digest(signature, _mac(_known(key), request.algorithm, request.body)):
        raise ForbiddenError("Internal request contained invalid signature.")


def _check_algorithm(algorithm: str, accepted: Sequence[str]) -> None:
    if algorithm not in accepted or algorithm not in MAC_HASHES:
        raise BadRequestError(
            f"This worker does not support the '{algorithm}' key signing algorithm used by other workers. This worker "
            f"is currently configured to use: [{', '.join(accepted)}]. Check that all workers' configuration files "
            "permit the same set of signature algorithms, and correct any misconfigured worker and restart it."
        )


def _known(key: SessionKey | None) -> SessionKey:
    if key is None:
        raise UnavailableError(
            "This worker is still starting up and has not been able to read a session key from the config topic yet"
        )
    return key


def _mac(key: SessionKey, algorithm: str, body: bytes) -> bytes:
    return hmac.digest(key.key, body, MAC_HASHES[algorithm])
