"""Signatures of whole requests between workers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connect.errors import ConnectError
from worker.errors import BadRequestError, ForbiddenError, UnavailableError
from worker.security.principals import Principal
from worker.security.request_signatures import (
    IDENTITY_HEADER,
    REQUEST_SIGNATURE_HEADER,
    InName,
    Nonces,
    WholeRequest,
    sign_whole,
)
from worker.security.session_keys import SignedRequest, new_key, verify

NOW = 1_800_000_000_000
KEY = new_key("HmacSHA256", None, 0)
NAME = InName(Principal("älice", "basic", ("ops",)), "10.0.0.1", "host:8083")
ASKED = WholeRequest("PUT", "http://host:8083/connectors/a%2fb/stop?forward=true", b"", NAME.text())
RECEIVED = replace(ASKED, url="/connectors/a%2Fb/stop/?forward=true")


def signed(whole: WholeRequest, headers: dict[str, str]) -> SignedRequest:
    return SignedRequest(whole.body, None, None, whole, headers[REQUEST_SIGNATURE_HEADER])


def test_a_request_is_known_by_its_signature_once() -> None:
    headers, nonces = sign_whole(KEY, "HmacSHA256", ASKED, NOW), Nonces()
    assert InName.parse(headers[IDENTITY_HEADER]) == NAME
    verify(signed(RECEIVED, headers), KEY, ["HmacSHA256"], nonces, NOW + 1000)
    with pytest.raises(ForbiddenError, match="was sent before"):
        verify(signed(RECEIVED, headers), KEY, ["HmacSHA256"], nonces, NOW + 2000)


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "POST"},
        {"url": "/connectors/b/stop?forward=true"},
        {"url": "/connectors/a/b/stop?forward=true"},
        {"url": "/connectors/a%2Fb/stop"},
        {"body": b"{}"},
        {"identity": InName(Principal("root", "basic"), "10.0.0.1", "host:8083").text()},
    ],
)
def test_nothing_of_it_can_be_changed(changed: dict[str, str]) -> None:
    headers = sign_whole(KEY, "HmacSHA256", ASKED, NOW)
    with pytest.raises(ForbiddenError, match="invalid signature"):
        verify(signed(replace(RECEIVED, **changed), headers), KEY, ["HmacSHA256"], Nonces(), NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize("away", [-300_001, 300_001])
def test_an_old_request_is_refused(away: int) -> None:
    headers = sign_whole(KEY, "HmacSHA256", ASKED, NOW)
    with pytest.raises(ForbiddenError, match="300 s away"):
        verify(signed(RECEIVED, headers), KEY, ["HmacSHA256"], Nonces(), NOW + away)


@pytest.mark.parametrize(
    ("signature", "error"),
    [
        ("", BadRequestError),
        ("HmacSHA256", BadRequestError),
        ("HmacSHA256:x:n:AA==", BadRequestError),
        ("HmacSHA256:1:n:no base64", BadRequestError),
        ("HmacSHA1:1:n:AA==", BadRequestError),
        (f"HmacSHA256:{NOW}:n:AA==", ForbiddenError),
        ("HmacSHA256:\ud800:n:\xff", BadRequestError),
    ],
)
def test_another_signature_is_refused(signature: str, error: type[ConnectError]) -> None:
    with pytest.raises(error):
        verify(SignedRequest(b"", None, None, RECEIVED, signature), KEY, ["HmacSHA256"], Nonces(), NOW)


def test_without_a_key_nothing_is_known() -> None:
    headers = sign_whole(KEY, "HmacSHA256", ASKED, NOW)
    with pytest.raises(UnavailableError):
        verify(signed(RECEIVED, headers), None, ["HmacSHA256"], Nonces(), NOW)


def test_nonces_are_forgotten_when_they_are_too_old_to_be_used() -> None:
    nonces = Nonces()
    assert nonces.use("a", NOW, NOW)
    assert not nonces.use("a", NOW, NOW + 300_000)
    assert nonces.use("a", NOW, NOW + 600_001)


@pytest.mark.parametrize("text", ["", "!", "bnVsbA==", "e30=", "eyJwcmluY2lwYWwiOiAxfQ=="])
def test_another_identity_is_refused(text: str) -> None:
    with pytest.raises(BadRequestError):
        InName.parse(text)
