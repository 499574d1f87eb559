"""What Spark needs besides its own to reach a store: jars, settings of Hadoop, Hadoop's configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from connectors.spark.options.store import StoreOptions

__all__ = ["Access", "store_access"]

_HERE: Final = Path(__file__).parent
_STATIC_KEYS: Final = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_DEFAULT_KEYS: Final = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"


@dataclass(frozen=True, slots=True)
class Access:
    """How Spark reaches a store.

    ``settings`` are set in its Hadoop configuration after it has started: as settings of Spark they would be seen in
    the command line of its Java (invariant I8).
    """

    lock: Path | None = None
    """The list of the jars to fetch."""
    jars: tuple[Path, ...] = ()
    """Jars that come with Sluice."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    hadoop_conf_dir: str | None = None


def store_access(config: StoreOptions) -> Access:
    """How Spark reaches the store of a connector."""
    if not config.has_store or config.location.kind != "s3":
        return Access(hadoop_conf_dir=config.hadoop_conf_dir)
    settings = {
        "fs.s3a.endpoint.region": config.s3_region,
        "fs.s3a.path.style.access": str(config.s3_path_style_access_enabled).lower(),
        "fs.s3a.multipart.size": str(config.s3_part_size),
        "fs.s3a.aws.credentials.provider": _DEFAULT_KEYS,
        # Loads find out by themselves what they have left; nothing may remove what a manifest is about to name.
        "fs.s3a.multipart.purge": "false",
        "fs.s3a.directory.operations.purge.uploads": "false",
        "fs.s3a.committer.magic.enabled": "true",
    }
    if config.endpoint is not None:
        settings["fs.s3a.endpoint"] = config.endpoint
        settings["fs.s3a.connection.ssl.enabled"] = str(config.endpoint.startswith("https:")).lower()
    if config.aws_access_key_id is not None and config.aws_secret_access_key is not None:
        settings["fs.s3a.aws.credentials.provider"] = _STATIC_KEYS
        settings["fs.s3a.access.key"] = config.aws_access_key_id
        settings["fs.s3a.secret.key"] = config.aws_secret_access_key.value
    return Access(_HERE / "s3.jars", (_HERE / "staging.jar",), settings, config.hadoop_conf_dir)
