"""Where a store is: what ``store.url`` and the keys beside it name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote, urlsplit

from connect.config.url import shown_url
from connect.errors import ConfigError

__all__ = ["Location", "parse_location"]

_S3: Final = ("s3", "s3a", "s3n")
_NOT_PROVEN: Final = {
    "gs": "Google Cloud Storage",
    "abfs": "Azure Data Lake Storage",
    "abfss": "Azure Data Lake Storage",
    "wasb": "Azure Blob Storage",
    "wasbs": "Azure Blob Storage",
    "adl": "Azure Data Lake Storage",
}


@dataclass(frozen=True, slots=True)
class Location:
    """A folder of a file system or an object store: ``authority`` is its name node or its bucket."""

    kind: Literal["local", "hdfs", "s3"]
    path: str
    """Without slashes around it, unless it is local."""
    authority: str = ""

    @property
    def uri(self) -> str:
        """What Spark calls it, without a slash at its end."""
        if self.kind == "local":
            return Path(self.path).as_uri()
        scheme = {"hdfs": "hdfs", "s3": "s3a"}[self.kind]
        return f"{scheme}://{self.authority}/{self.path}".rstrip("/")


def parse_location(url: str | None, bucket: str | None = None) -> Location:
    """The place that ``store.url`` names, or with ``s3.bucket.name`` that bucket.

    Beside a bucket, ``store.url`` may be the endpoint of its service, as in the S3 sink of Confluent.
    """
    if bucket is not None and (url is None or url.startswith(("http:", "https:"))):
        return Location("s3", "", bucket)
    if not url:
        raise ConfigError("store.url", url, "It names where the tables are to be: a path, hdfs://... or s3://...")
    try:
        parts = urlsplit(url)
    except ValueError:
        # The reason quotes what it does not understand, which may be a key: it is not chained.
        raise ConfigError("store.url", shown_url(url), "Its host is not valid: use a path.") from None
    scheme, path = parts.scheme.lower(), unquote(parts.path).strip("/")
    if scheme in ("", "file") and parts.netloc in ("", "localhost"):
        return Location("local", str(Path(unquote(parts.path) if scheme else url).absolute()))
    if "@" in parts.netloc:
        raise ConfigError("store.url", shown_url(url), "It must not contain a user or a key: give them by their keys.")
    if scheme == "hdfs":
        return Location("hdfs", path, parts.netloc)
    if scheme in _S3 and parts.netloc and bucket in (None, parts.netloc):
        return Location("s3", path, parts.netloc)
    raise ConfigError("store.url", shown_url(url), _refusal(scheme, parts.netloc, bucket))


def _refusal(scheme: str, authority: str, bucket: str | None) -> str:
    if name := _NOT_PROVEN.get(scheme):
        return (
            f"{name} is not supported: exactly-once has not been proven on it. Use a folder, hdfs:// or s3://, which "
            "many services speak."
        )
    if scheme in _S3 and authority:
        return f"s3.bucket.name={bucket} is another bucket: remove one of the two."
    if scheme in _S3:
        return "It has no bucket: write s3://BUCKET/FOLDER."
    if scheme in ("http", "https"):
        return "An endpoint of S3 needs s3.bucket.name beside it."
    return "Use a path or a file: URL, hdfs://HOST:PORT/FOLDER, or s3://BUCKET/FOLDER."
