"""Credentials: what is added to a request, how long a token is used, and what errors hide."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect.config import Password
from connect.kits.http.credentials import (
    ClientCredentials,
    Credentials,
    Sender,
    TokenEndpoint,
    basic,
    bearer,
    header,
    parameter,
)
from connect.kits.http.messages import HttpError, NoAnswerError, Request, Response, TokenError
from connect.kits.http.retries import Backoff

SECRET = "wh4t? it is/secret"


def no_request(request: Request) -> Response:
    raise AssertionError(request)


def issuing(*answers: Any, status: int = 200, asked: list[Request] | None = None) -> Sender:
    waiting = list(answers)

    def send(request: Request) -> Response:
        if asked is not None:
            asked.append(request)
        return Response(status, {}, json.dumps(waiting.pop(0)).encode(), request.url)

    return send


@pytest.mark.parametrize(
    ("credentials", "headers", "url"),
    [
        (Credentials(), {}, "http://h/?a=1"),
        (basic("me", "it"), {"Authorization": "Basic bWU6aXQ="}, "http://h/?a=1"),
        (bearer("abc"), {"Authorization": "Bearer abc"}, "http://h/?a=1"),
        (header("X-Key", "abc"), {"X-Key": "abc"}, "http://h/?a=1"),
        (parameter("k", "a b&c"), {}, "http://h/?a=1&k=a%20b%26c"),
        (bearer("abc").beside({"Authorization": "x", "X": "y"}), {"Authorization": "Bearer abc", "X": "y"}, None),
    ],
)
def test_what_is_added_to_a_request(credentials: Credentials, headers: dict[str, str], url: str | None) -> None:
    assert credentials.headers(no_request) == headers
    assert url is None or credentials.url("http://h/?a=1") == url
    assert not credentials.is_refreshed(401, headers)


@pytest.mark.parametrize(
    "credentials",
    [
        basic("me", SECRET),
        bearer(SECRET),
        header("X", SECRET),
        parameter("k", SECRET),
        Credentials().beside({"X": SECRET}),
    ],
)
def test_a_secret_is_hidden_in_every_form(credentials: Credentials) -> None:
    text = f"{SECRET} wh4t%3F%20it%20is%2Fsecret {json.dumps(SECRET)}"
    assert credentials.hide(text) == '[hidden] [hidden] "[hidden]"'
    sent = credentials.headers(no_request).get("Authorization", "").removeprefix("Basic ").removeprefix("Bearer ")
    assert not sent or sent not in credentials.hide(f"{sent}!")


def endpoint(**more: Any) -> TokenEndpoint:
    return TokenEndpoint(url="https://h/token?k=s3cr", client_id="me", client_secret=Password(SECRET), **more)


def test_the_client_may_be_part_of_the_form() -> None:
    asked: list[Request] = []
    names = {"grant_type_field": "g", "client_id_field": "i", "client_secret_field": "s", "token_field": "t"}
    tokens = ClientCredentials(endpoint(client_in_form=True, scope="all", grant_type="x", **names))
    assert tokens.headers(issuing({"t": "abc"}, asked=asked)) == {"Authorization": "Bearer abc"}
    (request,) = asked
    assert request.body == b"g=x&scope=all&i=me&s=wh4t%3F+it+is%2Fsecret"
    assert "Authorization" not in request.headers
    assert request.url == "https://h/token?k=s3cr"


@pytest.mark.parametrize("expires_in", [3600, "3600", 0, None, True, "soon", 1e9])
def test_a_token_is_used_again(expires_in: object) -> None:
    tokens = ClientCredentials(endpoint())
    send = issuing({"access_token": "abc", "expires_in": expires_in})
    assert tokens.headers(send) == tokens.headers(no_request) == {"Authorization": "Bearer abc"}


def test_a_token_that_has_expired_is_replaced_once() -> None:
    tokens = ClientCredentials(endpoint())
    send = issuing({"access_token": "first"}, {"access_token": "second"})
    first = tokens.headers(send)
    assert not tokens.is_refreshed(403, first)
    assert tokens.is_refreshed(401, first)
    second = tokens.headers(send)
    assert second == {"Authorization": "Bearer second"}
    # Another thread, whose request was refused with the first, keeps the second.
    assert tokens.is_refreshed(401, first)
    assert tokens.headers(no_request) == second
    assert tokens.hide("first second") == "[hidden] [hidden]"


@pytest.mark.parametrize(
    ("answer", "status", "kind"),
    [
        ({}, 503, NoAnswerError),
        ({}, 429, NoAnswerError),
        ({}, 400, TokenError),
        ({}, 302, TokenError),
        ({}, 200, TokenError),
        ([], 200, TokenError),
        ({"access_token": "a b"}, 200, TokenError),
        ({"access_token": "\u00e4"}, 200, TokenError),
        ({"access_token": 7}, 200, TokenError),
        ({"access_token": "abc", "expires_in": "never"}, 200, TokenError),
    ],
)
def test_no_token(answer: object, status: int, kind: type[HttpError]) -> None:
    refusing = endpoint(use_seconds=lambda expires_in: None if expires_in == "never" else 1.0)
    with pytest.raises(kind) as caught:
        ClientCredentials(refusing).headers(issuing(answer, status=status))
    assert caught.value.is_of_token
    assert caught.value.status == (None if status == 200 else status)
    assert "s3cr" not in str(caught.value)
    assert "https://h/token" in str(caught.value)


def test_an_endpoint_that_does_not_answer_is_told_from_the_server() -> None:
    def silent(_: Request) -> Response:
        raise NoAnswerError("nobody there", "no connection")

    with pytest.raises(NoAnswerError, match="nobody there") as caught:
        ClientCredentials(endpoint()).headers(silent)
    assert caught.value.is_of_token
    assert not NoAnswerError("nobody there").is_of_token


def test_waits_are_as_random_as_they_are_said_to_be() -> None:
    half, whole = Backoff(2.0, 10.0), Backoff(2.0, 10.0, jitter=1.0)
    assert [half.seconds(2, share) for share in (0.0, 1.0)] == [2.0, 4.0]
    assert [whole.seconds(2, share) for share in (0.0, 0.5, 1.0)] == [0.0, 2.0, 4.0]
    assert whole.seconds(9, 1.0) == 10.0
