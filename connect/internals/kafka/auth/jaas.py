"""Parsing of ``sasl.jaas.config`` (a Java login module, a control flag, options, a semicolon), and its secrets.

The secrets are those of all settings of Kafka clients, under any prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from connect.config.password import HIDDEN
from connect.errors import ConfigError

__all__ = ["JAAS_CONFIG", "LoginModule", "client_secrets", "parse_jaas_config"]

JAAS_CONFIG = "sasl.jaas.config"

_FLAGS = frozenset(("required", "requisite", "sufficient", "optional"))

_TOKEN = re.compile(
    r"""
    (?P<skipped> \s+ | /\*.*?\*/ | /[^\n]* )
  | " (?P<double> (?: \\. | [^"\\\r\n] )* ) "
  | ' (?P<single> (?: \\. | [^'\\\r\n] )* ) '
  | (?P<word> [^\s=;"'/]+ )
  | (?P<sign> [=;] )
    """,
    re.VERBOSE | re.DOTALL,
)

_ESCAPE = re.compile(r"\\(?P<octal>[0-3]?[0-7]{1,2})|\\(?P<character>.)", re.DOTALL)

_CONTROL_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    """The Java class that would log in, and its options, which contain secrets."""

    class_name: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def simple_name(self) -> str:
        """The class name without its package."""
        return self.class_name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_sign: bool
    position: int


def parse_jaas_config(value: str) -> LoginModule:
    """Parse the single login module in ``value``. Errors never repeat any part of it, because it contains secrets."""
    tokens = list(_tokens(value))
    if not tokens:
        raise _malformed("Login module not specified in JAAS config", 0)
    module = tokens[0]
    if len(tokens) < 2 or tokens[1].text.lower() not in _FLAGS:
        raise _malformed("Login module control flag not specified in JAAS config", module.position)
    options, following = _options(tokens, 2, len(value))
    if following < len(tokens):
        raise _malformed(
            "JAAS config property contains more than one login module, should be 1 module",
            tokens[following].position,
        )
    return LoginModule(module.text, options)


def _options(tokens: list[_Token], start: int, end_of_value: int) -> tuple[dict[str, str], int]:
    options: dict[str, str] = {}
    at = start
    while at < len(tokens) and not (tokens[at].is_sign and tokens[at].text == ";"):
        option = tokens[at : at + 3]
        if len(option) < 3 or [token.is_sign for token in option] != [False, True, False]:
            raise _malformed("Value not specified for an option in JAAS config", tokens[at].position)
        options[option[0].text] = option[2].text
        at += 3
    if at == len(tokens):
        raise _malformed("JAAS config entry not terminated by semi-colon", end_of_value)
    return options, at + 1


def _tokens(value: str) -> Iterator[_Token]:
    position = 0
    while position < len(value):
        match = _TOKEN.match(value, position)
        if match is None:
            raise _malformed("A quoted value in the JAAS config is not closed", position)
        if match.lastgroup in ("double", "single"):
            yield _Token(_ESCAPE.sub(_unescaped, match[match.lastgroup]), False, position)
        elif match.lastgroup in ("word", "sign"):
            yield _Token(match[0], match.lastgroup == "sign", position)
        position = match.end()


def _unescaped(match: re.Match[str]) -> str:
    if match["octal"] is not None:
        return chr(int(match["octal"], 8))
    return _CONTROL_CHARACTERS.get(match["character"], match["character"])


def _malformed(what: str, position: int) -> ConfigError:
    return ConfigError(
        JAAS_CONFIG,
        HIDDEN,
        f"{what} (at character {position + 1}). Write it as "
        '<login module class> required username="<user>" password="<password>";',
    )


_SECRET_KEYS: Final = (
    JAAS_CONFIG,
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.password",
)
_SECRET_OPTIONS: Final = ("password", "secret", "key", "token")


def client_secrets(props: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets in the client settings of a worker or connector, whose keys may have prefixes."""
    for key, value in props.items():
        if key.endswith(_SECRET_KEYS):
            yield value
            if key.endswith(JAAS_CONFIG):
                yield from _option_secrets(value)


def _option_secrets(jaas_config: str) -> Iterator[str]:
    """Yield the secrets in a login module's options, which could also appear on their own."""
    try:
        options = parse_jaas_config(jaas_config).options
    except ConfigError:
        return
    yield from (value for name, value in options.items() if name.lower().endswith(_SECRET_OPTIONS))
