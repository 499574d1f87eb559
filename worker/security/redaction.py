"""Hides secrets in every text that leaves a process, in one place (invariant I8).

Whatever reports an error, or may repeat one, goes through it: the log, traces of statuses, the headers of dead
letters, the answers to inquiries.
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

_LONGEST: Final = 64 * 1024
_SHORT: Final = 4
_LEAST_LINE: Final = 8
# A whole "user:password", or the one within a URL.
_WITH_USER: Final = re.compile(r"(?:^[^\s:/@]+:|://[^\s:/@]*:)([^\s:/@]{4,})(?:$|@)")
_PERCENT: Final = re.compile("%[0-9A-F]{2}")
_SECRET_NAME: Final = re.compile(
    r"(?:password|passwd|pwd|secret|passphrase|token|credentials?|user\.?info|private\.?key|api\.?key|access\.?key|"
    r"account\.?key|key\.pem|keystore\.key|sas)(?:\.value)?$"
)


def sounds_secret(name: str) -> bool:
    """Whether what has this name is likely to be secret: one who does not know better has to hide it."""
    return bool(_SECRET_NAME.search(name.lower().replace("_", ".")))


class Redaction:
    """Hides the secrets that a process knows. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: tuple[str, ...] = ()
        self._short: re.Pattern[str] | None = None

    def add(self, secrets: Iterable[str]) -> None:
        """Hide these texts from now on; the longest first, so that none is left in a part of another.

        One of fewer than four characters is hidden only where it stands alone, without a letter or digit beside it:
        to hide every ``a`` would leave no log, and tell by what is missing.
        """
        forms = {form for secret in secrets for form in _forms(secret)}
        with self._lock:
            self._secrets = tuple(sorted(forms.union(self._secrets), key=lambda form: (-len(form), form)))
            short = "|".join(re.escape(form) for form in self._secrets if len(form) < _SHORT)
            self._short = re.compile(rf"(?<![^\W_])(?:{short})(?![^\W_])") if short else None

    def hide(self, text: str) -> str:
        """The text with every secret in it hidden."""
        for secret in self._secrets:
            if len(secret) < _SHORT:
                break
            text = text.replace(secret, HIDDEN)
        return text if self._short is None else self._short.sub(HIDDEN, text)

    def told(self, text: str) -> str:
        """The text as it may leave the process: without secrets, as UTF-8 can say it, and not longer than 64 KiB."""
        hidden = self.hide(text)
        if len(hidden) > _LONGEST:
            left_out = len(hidden) - _LONGEST
            half = _LONGEST // 2
            hidden = f"{hidden[:half]}\n... {left_out} characters are left out here ...\n{hidden[-half:]}"
        return hidden.encode("utf-8", "backslashreplace").decode()


def _forms(secret: str) -> Iterator[str]:
    """The forms in which a secret may appear.

    These are the whole, without the line end of its file, line by line and without the user in front of it, and each of
    them as it is written in Python, JSON, URLs and HTML, also twice over.
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
    """A text between the quotes of a programming language."""
    yield repr(text)[1:-1]
    yield repr(text.encode("utf-8", "surrogateescape"))[2:-1]
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
