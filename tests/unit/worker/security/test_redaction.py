"""What is hidden of a secret, and where."""

from __future__ import annotations

import html
import json
from urllib.parse import quote, quote_plus, urlencode

import pytest

from equipment.growth import assert_grows_evenly
from worker.security.redaction import Redaction

SECRET = "zq p&w\"'\\ü/+"
KEY = "-----BEGIN KEY-----\nzqMIIEvQIBADAN\n  zqBgkqhkiG9w0B\n-----END KEY-----\n"


def hidden(text: str, *secrets: str) -> str:
    redaction = Redaction()
    redaction.add(secrets)
    return redaction.redacted(text)


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        repr(SECRET),
        repr({"a": [SECRET]}),
        repr(SECRET.encode()),
        json.dumps({"a": SECRET}),
        json.dumps({"a": SECRET}, ensure_ascii=False),
        json.dumps(json.dumps(SECRET)),
        repr(json.dumps(SECRET)),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET).lower(),
        urlencode({"a": repr(SECRET)}),
        html.escape(SECRET),
    ],
)
def test_a_secret_is_hidden_in_every_form(form: str) -> None:
    assert "zq" not in hidden(f"before {form} after", SECRET)


def test_a_secret_is_hidden_without_the_line_end_of_its_file() -> None:
    assert hidden("login as hunter22 failed", "hunter22\n") == "login as [hidden] failed"


@pytest.mark.parametrize("form", [KEY, repr(KEY), "\n> ".join(KEY.splitlines()), "bad line: zqMIIEvQIBADAN"])
def test_a_secret_of_several_lines_is_hidden_line_by_line(form: str) -> None:
    assert "zq" not in hidden(form, KEY)


@pytest.mark.parametrize("secret", ["alice:zqhunter", "https://alice:zqhunter@vault:9/x", "jdbc:x://:zqhunter@h/"])
def test_the_password_of_a_user_is_hidden_alone(secret: str) -> None:
    assert hidden("password zqhunter is wrong", secret) == "password [hidden] is wrong"


def test_a_short_secret_is_hidden_where_it_stands_alone() -> None:
    text = 'user sa, "sa": say nothing of Lisa or sa1 (sa)'
    assert hidden(text, "sa") == 'user [hidden], "[hidden]": say nothing of Lisa or sa1 ([hidden])'


def test_nothing_is_hidden_for_an_empty_secret() -> None:
    assert hidden("a b", "", " ", "\n") == "a b"


def test_of_two_secrets_the_longer_is_hidden_whole() -> None:
    assert hidden("secret-and-more", "secret", "secret-and-more") == "[hidden]"


def test_a_secret_at_the_cut_of_a_long_text_is_hidden() -> None:
    for before in range(32_760, 32_769):
        assert "zq" not in hidden("a" * before + "zqsecret" + "b" * 70_000, "zqsecret")


def test_a_secret_that_is_not_utf8_is_hidden() -> None:
    assert hidden("caf\udce9-zq", "caf\udce9-zq") == "[hidden]"


def test_hiding_takes_a_time_in_proportion_to_the_text() -> None:
    redaction = Redaction()
    redaction.add([f"{SECRET}{number}" for number in range(20)])

    assert_grows_evenly(redaction.hide, lambda length: SECRET[:-1] * (length // len(SECRET)), 50_000)
