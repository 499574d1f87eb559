"""PEM certificates and keys, as written in properties files and as read by OpenSSL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from connect.config.password import HIDDEN
from connect.errors import ConfigError

__all__ = ["file_in_memory", "normalized_pem"]

_BLOCK = re.compile(r"-+BEGIN (?P<label>[A-Z0-9 ]+?)-+(?P<body>[A-Za-z0-9+/=\s]+)-+END (?P=label)-+")

_LINE_LENGTH = 64


def normalized_pem(key: str, value: str) -> str:
    """Return the PEM blocks in ``value`` with the line breaks that OpenSSL requires.

    Properties files often contain a certificate on one line, with blanks for line breaks, which Java accepts. If there
    is no block, the error names ``key`` and never shows the value.
    """
    blocks = [_written_out(match["label"], match["body"]) for match in _BLOCK.finditer(value)]
    if not blocks:
        raise ConfigError(
            key,
            HIDDEN,
            "No PEM block found: give the text from -----BEGIN ...----- to -----END ...----- (a private key as PKCS#8)",
        )
    return "".join(blocks)


@contextmanager
def file_in_memory(pem: str) -> Iterator[str]:
    """Provide a path at which this process can read a text that is not on disk. OpenSSL reads keys only from files."""
    with os.fdopen(os.memfd_create("pem"), "w") as file:
        file.write(pem)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def _written_out(label: str, body: str) -> str:
    base64 = "".join(body.split())
    lines = [base64[start : start + _LINE_LENGTH] for start in range(0, len(base64), _LINE_LENGTH)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))
