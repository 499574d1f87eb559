"""The location of a store, from ``store.url`` and the keys that complement it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from connect.config.url import shown_url
from connect.errors import ConfigError

__all__ = ["LONGEST_FOLDER", "Location", "parse_location", "scheme_remedy"]

LONGEST_FOLDER: Final = 255
"""The most bytes in the name of a folder of a file system."""

_S3: Final = ("s3", "s3a", "s3n")
_AZURE: Final = ("abfs", "abfss")
_CONTAINER: Final = re.compile(r"([a-z0-9](?:-?[a-z0-9]){2,62})@([a-z0-9]{3,24})\.dfs\.([a-z0-9-]+(?:\.[a-z0-9-]+)+)")
"""A container, its account, and the domain of the services."""
_AZURE_URL: Final = "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
_REMEDIES: Final = {
    **dict.fromkeys(_S3, "It has no bucket: write s3://BUCKET/FOLDER."),
    "gs": "It has no bucket: write gs://BUCKET/FOLDER.",
    "gcs": "Write gs://BUCKET/FOLDER.",
    **dict.fromkeys(("http", "https"), "An endpoint of S3 needs s3.bucket.name beside it."),
    **dict.fromkeys(_AZURE, f"Write {_AZURE_URL}, with the names of a container and of its account in small letters."),
    "az": f"Write {_AZURE_URL}.",
    **dict.fromkeys(("wasb", "wasbs", "adl"), f"It is an old way to Azure: write {_AZURE_URL}."),
}
"""What to write instead of a URL whose scheme names no store."""


@dataclass(frozen=True, slots=True)
class Location:
    """A folder of a file system or an object store: ``authority`` is its name node or its bucket.

    For Azure it is ``CONTAINER@ACCOUNT.dfs.DOMAIN``.
    """

    kind: Literal["local", "hdfs", "s3", "gcs", "azure"]
    path: str
    """The path, without leading or trailing slashes unless it is local."""
    authority: str = ""
    secure: bool = False
    """Whether the scheme allows only TLS: ``abfss:``."""

    @property
    def container(self) -> str:
        """The container in Azure."""
        return self.authority.partition("@")[0]

    @property
    def uri(self) -> str:
        """The URI, as Spark needs it, without a trailing slash."""
        if self.kind == "local":
            return Path(self.path).as_uri()
        scheme = {"hdfs": "hdfs", "s3": "s3a", "gcs": "gs", "azure": "abfss" if self.secure else "abfs"}[self.kind]
        return f"{scheme}://{self.authority}/{self.path}".rstrip("/")

    @property
    def longest_folder(self) -> int | None:
        """The most bytes in the name of a folder, if limited: object stores have no folders."""
        return LONGEST_FOLDER if self.kind in ("local", "hdfs") else None


def parse_location(url: str | None, bucket: str | None = None, *, key: str = "store.url") -> Location:
    """Return the location that ``store.url`` names, or another ``key``; or the bucket ``s3.bucket.name``, if given.

    Together with a bucket, ``store.url`` may be the endpoint of its service, as in Confluent's S3 sink.
    """
    if bucket is not None and (url is None or url.startswith(("http:", "https:"))):
        return Location("s3", "", bucket)
    if not url:
        raise ConfigError(
            key,
            url,
            "It must name the location of the tables: a path, hdfs://..., s3://..., gs://... or abfss://...",
        )
    try:
        parts = urlsplit(url)
    except ValueError:
        # The reason quotes the text it does not understand, which may be a key, so it is not chained.
        raise ConfigError(key, shown_url(url), "Its host is not valid: use a path.") from None
    scheme, path = parts.scheme.lower(), unquote(parts.path).strip("/")
    if scheme in ("", "file") and parts.netloc in ("", "localhost"):
        return Location("local", str(Path(unquote(parts.path) if scheme else url).absolute()))
    if scheme in _AZURE and _CONTAINER.fullmatch(parts.netloc.lower()):
        return Location("azure", path, parts.netloc.lower(), scheme == "abfss")
    if "@" in parts.netloc and (scheme not in _AZURE or ":" in parts.netloc):
        raise ConfigError(key, shown_url(url), "It must not contain a user or a key: set them by their own keys.")
    if scheme == "hdfs":
        return Location("hdfs", path, parts.netloc)
    if scheme == "gs" and parts.netloc:
        return Location("gcs", path, parts.netloc)
    if scheme in _S3 and parts.netloc and bucket in (None, parts.netloc):
        return Location("s3", path, parts.netloc)
    raise ConfigError(key, shown_url(url), _refusal(scheme, parts.netloc, bucket))


def scheme_remedy(scheme: str) -> str | None:
    """Return what to write instead of a URL of a store, if it is known."""
    return _REMEDIES.get(scheme)


def _refusal(scheme: str, authority: str, bucket: str | None) -> str:
    if scheme in _S3 and authority:
        return f"s3.bucket.name={bucket} is another bucket: remove one of the two."
    return _REMEDIES.get(
        scheme,
        f"Use a path or a file: URL, hdfs://HOST:PORT/FOLDER, s3://BUCKET/FOLDER, gs://BUCKET/FOLDER, or {_AZURE_URL}.",
    )
