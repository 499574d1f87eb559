"""Finds the file of users for basic authentication as Kafka Connect does: through a JAAS file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError, os_reason
from connect.internals.kafka.auth.jaas import LoginModule, parse_jaas_config

__all__ = ["EXTENSIONS_KEY", "LOGIN_CONFIG_KEY", "asks_for_password", "users_file"]

EXTENSIONS_KEY: Final = "rest.extension.classes"
LOGIN_CONFIG_KEY: Final = "java.security.auth.login.config"

_EXTENSION: Final = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
_MODULE: Final = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
_ENTRY: Final = "KafkaConnect"
_OPTIONS_VARIABLE: Final = "KAFKA_OPTS"
_PART: Final = re.compile(
    r"""\s+ | /\*.*?\*/ | //[^\n]* | \#[^\n]* | (?P<name>[^\s{};"'/]+) | (?P<open>\{) | (?P<close>\}\s*;)
    | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | .""",
    re.VERBOSE | re.DOTALL,
)


def asks_for_password(extensions: Sequence[str]) -> bool:
    """Return whether ``rest.extension.classes`` names basic authentication. Any other extension is an error.

    Ignoring an extension could open the API to callers whom it was meant to keep out.
    """
    for extension in extensions:
        if extension.strip() not in (_EXTENSION, _EXTENSION.rpartition(".")[2]):
            raise ConfigError(
                EXTENSIONS_KEY,
                extension,
                f"The only supported extension is {_EXTENSION}. For other ways to sign in, set the keys that begin "
                "with rest.authentication.",
            )
    return bool(extensions)


def users_file(login_config: str | None, environ: Mapping[str, str]) -> Path:
    """Return the properties file of users that the JAAS file names for ``KafkaConnect``.

    The JAAS file is ``java.security.auth.login.config`` in the worker's file, or the one that ``KAFKA_OPTS`` names with
    ``-D``. Raises :class:`~connect.errors.ConfigError` if there is none.
    """
    path = login_config or _from_options(environ)
    if not path:
        raise ConfigRuleError(
            f"{EXTENSIONS_KEY} asks for basic authentication, but no file of users is named: set {LOGIN_CONFIG_KEY} to "
            f"a JAAS file, here or in {_OPTIONS_VARIABLE}=-D{LOGIN_CONFIG_KEY}=... .",
            LOGIN_CONFIG_KEY,
        )
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = os_reason(error) if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(LOGIN_CONFIG_KEY, path, f"This JAAS file cannot be read: {reason}") from error
    module = _module(path, text)
    if module.class_name != _MODULE:
        raise ConfigError(LOGIN_CONFIG_KEY, path, f"Its entry {_ENTRY} names a login module other than {_MODULE}")
    if not (file := module.options.get("file")):
        raise ConfigError(LOGIN_CONFIG_KEY, path, f'Its entry {_ENTRY} lacks the option file="/path/of/users"')
    return Path(file)


def _from_options(environ: Mapping[str, str]) -> str | None:
    """Return the value of the last ``-Djava.security.auth.login.config`` in Java's options."""
    try:
        options = shlex.split(environ.get(_OPTIONS_VARIABLE, ""))
    except ValueError:
        return None
    prefix = f"-D{LOGIN_CONFIG_KEY}="
    return next((option.removeprefix(prefix) for option in reversed(options) if option.startswith(prefix)), None)


def _module(path: str, text: str) -> LoginModule:
    entries = _entries(text)
    if _ENTRY not in entries:
        raise ConfigError(LOGIN_CONFIG_KEY, path, f"This JAAS file has no entry {_ENTRY} {{ ... }};")
    try:
        return parse_jaas_config(entries[_ENTRY])
    except ConfigError as error:
        raise ConfigError(LOGIN_CONFIG_KEY, path, f"Its entry {_ENTRY} cannot be read: {error.reason}") from None


def _entries(text: str) -> dict[str, str]:
    """Return the text between the braces of each entry of a JAAS file, by the name before them."""
    found: dict[str, str] = {}
    name, begin = "", None
    for part in _PART.finditer(text):
        if begin is None and part["name"]:
            name = part["name"]
        elif begin is None and part["open"]:
            begin = part.end()
        elif begin is not None and part["close"]:
            found.setdefault(name, text[begin : part.start()])
            name, begin = "", None
    return found
