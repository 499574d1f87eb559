"""A check of a connector's system: within a time, with what was found until then."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from connect.config import HIGH, Config, ConfigRuleError, Password, option
from connect.errors import ConfigError, ConnectError
from worker.runtime.inquiries.system_check import check_system


class Checked(Config):
    password: Password = option(importance=HIGH, doc="Password.")
    released = threading.Event()

    def check_system(self) -> Iterator[ConfigError]:
        yield ConfigRuleError("It refuses the password.", "password")
        self.released.wait()


class Broken(Checked):
    def check_system(self) -> Iterator[ConfigError]:
        raise ConnectError("no route")


class Careful(Checked):
    always_checks_system = True

    def check_system(self) -> Iterator[ConfigError]:
        yield ConfigRuleError("It refuses the password.", "password")


PROPS = {"password": "hunter2"}


def test_a_check_that_hangs_is_given_up_and_what_it_found_is_told() -> None:
    try:
        check = check_system(Checked.parse(PROPS), most_seconds=0.2)
    finally:
        Checked.released.set()
    refused, overdue = map(str, check.errors)
    assert refused == "It refuses the password."
    assert overdue.startswith("The connector's system did not answer within 0.2 s")
    assert check.document == {"checked": True}


def test_a_check_that_fails_is_an_error() -> None:
    (error,) = check_system(Broken.parse(PROPS)).errors
    assert str(error) == "The connector's system could not be checked: no route"


def test_a_config_without_a_check_says_so() -> None:
    class Plain(Config):
        pass

    assert check_system(Plain.parse({})).document["checked"] is False


def test_a_config_that_always_checks_does_so_once_its_keys_are_right() -> None:
    (value,) = Careful.validate(PROPS)
    assert value.errors == ("It refuses the password.",)
    (value,) = Careful.validate({})
    assert value.errors == ('Missing required configuration "password" which has no default value.',)
