"""Download of jars from a Maven repository, several at a time, by coordinates and without dependencies."""

from __future__ import annotations

import logging
import shutil
import ssl
import time
from collections.abc import Collection, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from http import HTTPStatus
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter

from connect.errors import ConnectError, os_reason
from connect.internals.jvm.lock import Jar
from connect.internals.jvm.repository import Repository, redact
from connect.internals.status_line import IN_PLACE, bar, on_terminal, time_left

__all__ = ["download", "so_far"]

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 8
_TRIES: Final = 3
_PAUSE_SECONDS: Final = 0.5
_TIMEOUTS: Final = (15.0, 60.0)
_CHUNK_BYTES: Final = 1 << 16
_REPORT_SECONDS: Final = 1.0
_RARE_REPORT_SECONDS: Final = 60.0
"""Seconds between lines where nobody watches a terminal."""
_SERVER_ERRORS: Final = 500
_PASSING: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_REMEDY: Final = (
    "If this machine can reach another repository, name it: set SLUICE_MAVEN_REPOSITORY to its URL, or add a mirror "
    "of central to ~/.m2/settings.xml, with its user and password under servers."
)

_Told: TypeAlias = "SimpleQueue[tuple[Path, int]]"
"""Where those that fetch tell the sizes of their files."""


def download(jars: Sequence[Jar], repository: Repository, folder: Path) -> None:
    """Fetch ``jars`` into ``folder`` under their file names; a ``ConnectError`` names one that cannot be fetched.

    The caller must check their content. Progress is logged: as a bar on a terminal, by a line a minute elsewhere.
    """
    what = f"{len(jars)} jars" if len(jars) > 1 else jars[0].coordinates
    logger.info("Fetching %s from %s; this is done once.", what, repository)
    started = time.monotonic()
    given_up = Event()
    told: _Told = SimpleQueue()
    sizes: dict[Path, int] = {}
    watched = on_terminal()
    extra, pause = (IN_PLACE, _REPORT_SECONDS) if watched else (None, _RARE_REPORT_SECONDS)
    with ThreadPoolExecutor(_AT_ONCE, "download") as pool:
        waiting = {pool.submit(_fetch, jar, repository, folder / jar.file_name, given_up, told) for jar in jars}
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=pause, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
                if waiting:
                    while not told.empty():
                        sizes.update([told.get()])
                    text = so_far(_megabytes(folder), time.monotonic() - started, sizes.values(), len(jars))
                    logger.info("Fetching: %s", text, extra=extra)
        finally:
            if watched:
                logger.info("", extra=extra)
            given_up.set()
            pool.shutdown(cancel_futures=True)
    logger.info("Fetched %s, %.0f MB, in %.0f s.", what, _megabytes(folder), time.monotonic() - started)


def so_far(megabytes: float, seconds: float, sizes: Collection[int], jars: int) -> str:
    """Return how far a download is. The whole is guessed from those jars whose size the repository has told."""
    rate = f"{megabytes / seconds:.1f} MB/s"
    if not sizes or not megabytes:
        return f"{megabytes:.0f} MB, {rate}"
    whole = sum(sizes) / 1e6 / len(sizes) * jars
    about = "" if len(sizes) == jars else "about "
    left = max(0.0, whole / megabytes - 1) * seconds
    return f"{bar(min(1.0, megabytes / whole))} {megabytes:.0f} of {about}{whole:.0f} MB, {rate}, {time_left(left)}"


def _fetch(jar: Jar, repository: Repository, path: Path, given_up: Event, told: _Told) -> None:
    url = repository.url + jar.maven_path.as_posix()
    reason = ""
    for attempt in range(_TRIES):
        if given_up.wait(attempt * _PAUSE_SECONDS):
            return
        try:
            _copy(url, repository, path, given_up, told)
        except requests.HTTPError as error:
            reason = f"HTTP status {error.response.status_code}"
            if error.response.status_code not in _PASSING and error.response.status_code < _SERVER_ERRORS:
                break
        except requests.RequestException as error:
            reason = os_reason(error)
        except OSError as error:
            reason = os_reason(error)
            break
        else:
            return
    raise ConnectError(f"Cannot fetch {jar.coordinates} from {repository}: {redact(reason)}. {_REMEDY}")


def _copy(url: str, repository: Repository, path: Path, given_up: Event, told: _Told) -> None:
    parts = urlsplit(url)
    if parts.scheme == "file":
        shutil.copyfile(unquote(parts.path), path)
        return
    with requests.Session() as session, path.open("wb") as file:
        session.mount("https://", _TrustOfPython())
        with session.get(url, auth=repository.auth, stream=True, timeout=_TIMEOUTS) as answer:
            answer.raise_for_status()
            if (size := answer.headers.get("Content-Length", "")).isdigit():
                told.put((path, int(size)))
            for part in answer.iter_content(_CHUNK_BYTES):
                if given_up.is_set():
                    return
                file.write(part)


class _TrustOfPython(HTTPAdapter):
    """Trusts Python's certificate authorities (the system's, ``SSL_CERT_FILE``) in addition to those of requests."""

    def init_poolmanager(self, *args: Any, **keywords: Any) -> None:
        super().init_poolmanager(*args, ssl_context=ssl.create_default_context(), **keywords)


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6
