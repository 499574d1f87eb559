"""A password keeps to itself."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass

import pytest

from connect.config import Password


@dataclass
class Login:
    user: str
    password: Password


def test_it_is_hidden_wherever_it_is_shown() -> None:
    password = Password("s3cret")
    shown = [
        str(password),
        repr(password),
        f"{password:>12}",
        f"{password!r}",
        repr([password]),
    ]
    shown.append(repr(Login("u", password)))
    assert all("[hidden]" in text and "s3cret" not in text for text in shown)
    with pytest.raises(TypeError):
        json.dumps(password)


def test_its_value_is_asked_for_by_name() -> None:
    assert Password("s3cret").value == "s3cret"


def test_it_compares_and_hashes_by_value() -> None:
    assert Password("a") == Password("a")
    assert Password("a") != Password("b")
    assert Password("a") != "a"
    assert len({Password("a"), Password("a"), "a"}) == 2


def test_it_travels_to_another_process() -> None:
    assert pickle.loads(pickle.dumps(Password("a"))) == Password("a")


def test_it_cannot_be_changed() -> None:
    password = Password("a")
    with pytest.raises(AttributeError):
        password.value = "b"
    with pytest.raises(AttributeError):
        del password.value
