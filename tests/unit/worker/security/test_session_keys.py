"""What comes from a worker of the cluster is told from what does not."""

from __future__ import annotations

import base64

import pytest

from connect.errors import ConfigError, ConnectError
from worker.errors import BadRequestError, ForbiddenError, UnavailableError
from worker.security.request_signatures import Nonces
from worker.security.session_keys import ALGORITHM_HEADER, SIGNATURE_HEADER, SignedRequest, new_key, sign, verify
from worker.stores.config.store import SessionKey

KEY = SessionKey(b"key", "HmacSHA256", 0)
BODY = b"The quick brown fox jumps over the lazy dog"
ACCEPTED = ("HmacSHA256", "HmacSHA1")


def signed(body: bytes = BODY, key: SessionKey = KEY, algorithm: str = "HmacSHA256") -> SignedRequest:
    headers = sign(key, algorithm, body)
    return SignedRequest(body, headers[SIGNATURE_HEADER], headers[ALGORITHM_HEADER])


def test_a_signature_is_the_hmac_of_the_body() -> None:
    known = "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"
    assert sign(KEY, "HmacSHA256", BODY) == {
        SIGNATURE_HEADER: base64.b64encode(bytes.fromhex(known)).decode(),
        ALGORITHM_HEADER: "HmacSHA256",
    }


@pytest.mark.parametrize("algorithm", ACCEPTED)
@pytest.mark.parametrize("body", [b"", BODY, b"\x00" * 100_000])
def test_what_is_signed_by_the_key_is_accepted(algorithm: str, body: bytes) -> None:
    verify(signed(body, algorithm=algorithm), KEY, ACCEPTED, Nonces(), 0)


@pytest.mark.parametrize(
    ("request_", "key", "kind", "text"),
    [
        (SignedRequest(BODY, None, None), KEY, BadRequestError, "Internal request missing required signature"),
        (SignedRequest(BODY, None, "HmacSHA256"), KEY, BadRequestError, "Internal request missing required signature"),
        (SignedRequest(BODY, "AAAA", None), None, BadRequestError, "Internal request missing required signature"),
        (
            signed(algorithm="HmacSHA512"),
            KEY,
            BadRequestError,
            "does not support the 'HmacSHA512' key signing algorithm",
        ),
        (SignedRequest(BODY, "no base64!", "HmacSHA1"), KEY, BadRequestError, "is not base64"),
        (SignedRequest(BODY, "ümlaut", "HmacSHA1"), KEY, BadRequestError, "is not base64"),
        (signed(), None, UnavailableError, "has not been able to read a session key from the config topic yet"),
        (signed(b"another body"), KEY, ForbiddenError, "invalid signature"),
        (signed(key=SessionKey(b"old", "HmacSHA256", 0)), KEY, ForbiddenError, "Internal request contained invalid"),
        (SignedRequest(BODY, "", "HmacSHA256"), KEY, ForbiddenError, "invalid signature"),
    ],
)
def test_anything_else_is_refused(
    request_: SignedRequest, key: SessionKey | None, kind: type[ConnectError], text: str
) -> None:
    request_ = SignedRequest(BODY, request_.signature, request_.algorithm)
    with pytest.raises(kind, match=text):
        verify(request_, key, ACCEPTED, Nonces(), 0)


@pytest.mark.parametrize(
    ("algorithm", "bits", "size"),
    [("HmacSHA256", None, 32), ("HmacSHA384", None, 48), ("HmacSHA1", None, 64), ("HmacSHA256", 129, 17)],
)
def test_a_key_is_as_long_as_javas(algorithm: str, bits: int | None, size: int) -> None:
    key, other = new_key(algorithm, bits, 7), new_key(algorithm, bits, 7)
    assert (len(key.key), key.algorithm, key.created) == (size, algorithm, 7)
    assert key.key != other.key


@pytest.mark.parametrize(("algorithm", "bits"), [("HmacCRC", None), ("HmacSHA256", 8)])
def test_no_key_is_made_of_what_is_no_key(algorithm: str, bits: int | None) -> None:
    with pytest.raises(ConfigError, match=r"inter\.worker\.key\."):
        new_key(algorithm, bits, 0)


def test_neither_key_nor_signature_shows_itself() -> None:
    assert "f7bc" not in repr(signed())
    assert SIGNATURE_HEADER not in repr(signed())
    assert repr(signed()) == "SignedRequest(algorithm='HmacSHA256')"
