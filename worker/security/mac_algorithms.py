"""The algorithms of message authentication codes, as Java calls them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["MAC_HASHES"]

MAC_HASHES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "HmacSHA256": "sha256",
        "HmacSHA384": "sha384",
        "HmacSHA512": "sha512",
        "HmacSHA1": "sha1",
        "HmacMD5": "md5",
        "HmacSHA224": "sha224",
    }
)
"""The hash of each."""
