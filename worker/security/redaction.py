"""Hides secrets in every text that leaves a process, in one place (invariant I8).

It is used wherever errors are reported or may be repeated: the log, traces in statuses, headers of dead letters,
answers to inquiries.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from connect.config import HIDDEN

__all__ = ["Redaction", "sounds_secret"]

_MOST_CHARACTERS: Final = 64 * 1024
_SHORT: Final = 4
_LEAST_LINE: Final = 8
# A complete "user:password", or one within a URL.
_WITH_USER: Final = re.compile(r"(?:^[^\s:/@]+:|://[^\s:/@]*:)([^\s:/@]{4,})(?:$|@)")
_PERCENT: Final = re.compile("%[0-9A-F]{2}")
_SECRET_NAME: Final = re.compile(
    r"(?:password|passwd|pwd|secret|passphrase|token|credentials?|user\.?info|private\.?key|api\.?key|access\.?key|"
    r"account\.?key|key\.pem|keystore\.key|sas)(?:\.value)?$"
)


def sounds_secret(name: str) -> bool:
    """Return whether a name suggests a secret value, for callers without a definition of the key."""
    return bool(_SECRET_NAME.search(name.lower().replace("_", ".")))


class Redaction:
    """Hides the secrets that a process knows. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: tuple[str, ...] = ()
        self._short: re.Pattern[str] | None = None

    def add(self, secrets: Iterable[str]) -> None:
        """Hide these texts from now on; longer ones first, so that no part of one remains.

        A secret of fewer than four characters is hidden only where no letter or digit stands beside it: hiding every
        ``a`` would make the log unreadable, and reveal the secret by what is missing.
        """
        forms = {form for secret in secrets for form in _forms(secret)}
        with self._lock:
            self._secrets = tuple(sorted(forms.union(self._secrets), key=lambda form: (-len(form), form)))
            short = "|".join(re.escape(form) for form in self._secrets if len(form) < _SHORT)
            self._short = re.compile(rf"(?<![^\W_])(?:{short})(?![^\W_])") if short else None

    def hide(self, text: str) -> str:
        """Return the text with every secret in it hidden."""
        for secret in self._secrets:
            if len(secret) < _SHORT:
                break
            text = text.replace(secret, HIDDEN)
        return text if self._short is None else self._short.sub(HIDDEN, text)

    def redacted(self, text: str) -> str:
        """Return the text in a form that may leave the process: without secrets, in valid UTF-8, and at most 64 KiB."""
        hidden = self.hide(text)
        if len(hidden) > _MOST_CHARACTERS:
            left_out = len(hidden) - _MOST_CHARACTERS
            half = _MOST_CHARACTERS // 2
            hidden = f"{hidden[:half]}\n... {left_out} characters are left out here ...\n{hidden[-half:]}"
        return hidden.encode("utf-8", "backslashreplace").decode()


def _forms(secret: str) -> Iterator[str]:
    """Yield the forms in which a secret may appear.

    These are the whole secret, the secret without a trailing line break, its single lines, and the password in
    "user:password"; and each of them as written in Python, JSON, URLs and HTML, also escaped twice.
    """
    lines = secret.splitlines()
    texts = {secret, secret.strip(), *(match[1] for match in _WITH_USER.finditer(secret))}
    if len(lines) > 1:
        texts |= {line.strip() for line in lines if len(line.strip()) >= _LEAST_LINE}
    for text in texts:
        if text.strip():
            once = set(_written(text))
            yield from once.union(*map(_written, once))
            yield base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()


def _written(text: str) -> Iterator[str]:
    yield text
    yield from _quoted(text)
    for encode in (quote, quote_plus):
        encoded = encode(text, safe="", errors="surrogateescape")
        yield encoded
        yield encoded.replace("%2F", "/")
        yield _PERCENT.sub(lambda match: match[0].lower(), encoded)
    yield html.escape(text)


def _quoted(text: str) -> Iterator[str]:
    """Return a text as it appears between the quotes of a programming language."""
    yield repr(text)[1:-1]
    yield repr(text.encode("utf-8", "surrogateescape"))[2:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
