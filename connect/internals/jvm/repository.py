"""The repository that jars are fetched from: Maven Central, or the mirror that the user's settings name.

The first of these that is set decides:

1. ``SLUICE_MAVEN_REPOSITORY``: the URL of a Maven repository;
2. the mirror of ``central`` in ``~/.m2/settings.xml``, with the user and password of its server there;
3. Maven Central.

A user and password can also be given in the URL (``https://user:password@host/``) or in ``~/.netrc``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from connect.errors import ConfigError, ConnectError

__all__ = ["Repository", "find_repository", "local_repository", "redact"]

CENTRAL = "https://repo1.maven.org/maven2/"

_EXTERNAL_WILDCARDS = frozenset({"*", "external:*"})
_ENVIRONMENT = re.compile(r"\$\{env\.(\w+)\}")
_ENCRYPTED = re.compile(r"\{.+\}")
_USER_INFO = re.compile(r"//[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class Repository:
    """A Maven repository: its ``url``, which ends with a slash, and the user and password that it requires."""

    url: str
    origin: str
    auth: tuple[str, str] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{redact(self.url)} ({self.origin})"


def find_repository(environ: Mapping[str, str] = os.environ) -> Repository:
    """Return the repository selected by the user's environment and Maven settings."""
    if url := environ.get("SLUICE_MAVEN_REPOSITORY"):
        if "://" not in url and not url.startswith("file:"):
            raise ConfigError(
                "SLUICE_MAVEN_REPOSITORY", redact(url), "not a URL; give one such as https://host/maven2/"
            )
        return Repository(_folder(url), "SLUICE_MAVEN_REPOSITORY")
    if mirror := _mirror_of_central(environ):
        return mirror
    return Repository(CENTRAL, "Maven Central")


def local_repository(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the user's local Maven repository: ``localRepository`` in the settings, else ``~/.m2/repository``."""
    settings = _maven_settings(environ)
    named = None if settings is None else settings.findtext("{*}localRepository")
    if named and named.strip():
        text = _interpolate(named.strip(), environ).replace("${user.home}", str(_home(environ)))
        return Path(text)
    return _home(environ) / ".m2" / "repository"


def redact(text: str) -> str:
    """Return ``text`` with the user and password in every URL hidden."""
    return _USER_INFO.sub("//[hidden]@", text)


def _mirror_of_central(environ: Mapping[str, str]) -> Repository | None:
    settings = _maven_settings(environ)
    if settings is None:
        return None
    mirrors = [
        (_text(mirror, "mirrorOf"), _text(mirror, "url"), _text(mirror, "id"))
        for mirror in settings.findall("{*}mirrors/{*}mirror")
        if _text(mirror, "blocked") != "true"
    ]
    by_name = [(url, name) for pattern, url, name in mirrors if pattern == "central" and url]
    by_pattern = [(url, name) for pattern, url, name in mirrors if _covers_central(pattern) and url]
    for url, name in by_name + by_pattern:
        return Repository(_folder(_interpolate(url, environ)), "~/.m2/settings.xml", _server(settings, name, environ))
    return None


def _server(settings: ET.Element, name: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the user and password of the server with that name."""
    for server in settings.findall("{*}servers/{*}server"):
        if _text(server, "id") == name and (user := _text(server, "username")):
            password = _text(server, "password")
            if _ENCRYPTED.fullmatch(password):
                raise ConnectError(
                    f"The password of server {name} in ~/.m2/settings.xml is encrypted, and only Maven can read it. "
                    "Give it as ${env.SOME_VARIABLE} there, or set SLUICE_MAVEN_REPOSITORY to "
                    "https://user:password@host/path/."
                )
            return _interpolate(user, environ), _interpolate(password, environ)
    return None


def _text(element: ET.Element, tag: str) -> str:
    return element.findtext(f"{{*}}{tag}", "").strip()


def _covers_central(pattern: str) -> bool:
    parts = {part.strip() for part in pattern.split(",")}
    return "!central" not in parts and ("central" in parts or not parts.isdisjoint(_EXTERNAL_WILDCARDS))


def _maven_settings(environ: Mapping[str, str]) -> ET.Element | None:
    path = _home(environ) / ".m2" / "settings.xml"
    if not path.is_file():
        return None
    try:
        return ET.parse(path).getroot()  # noqa: S314  the user's own file
    except ET.ParseError as error:
        raise ConnectError(f"{path} is not well-formed XML ({error}); correct it or move it away.") from error


def _interpolate(text: str, environ: Mapping[str, str]) -> str:
    return _ENVIRONMENT.sub(lambda match: environ.get(match[1], match[0]), text)


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ["HOME"]) if "HOME" in environ else Path.home()


def _folder(url: str) -> str:
    return url if url.endswith("/") else url + "/"
