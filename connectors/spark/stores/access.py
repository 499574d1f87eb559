"""What Spark needs to reach a store: jars, Hadoop settings, and Hadoop's configuration files."""

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
    """How Spark gets access to a store.

    ``settings`` are set in Spark's Hadoop configuration after it has started: as Spark settings they would be visible
    in the command line of its Java process (invariant I8).
    """

    lock: Path | None = None
    """The list of the jars to download."""
    jars: tuple[Path, ...] = ()
    """Jars that come with Sluice."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    hadoop_conf_dir: str | None = None


def store_access(config: StoreOptions) -> Access:
    """Return how Spark reaches the store of a connector."""
    kind = config.location.kind if config.has_store else None
    if kind == "s3":
        return _s3_access(config)
    if kind == "gcs":
        return Access(_HERE / "gcs.jars", (), _google_settings(config), config.hadoop_conf_dir)
    if kind == "azure":
        return Access(_HERE / "azure.jars", (), _azure_settings(config), config.hadoop_conf_dir)
    return Access(hadoop_conf_dir=config.hadoop_conf_dir)


def _azure_settings(config: StoreOptions) -> Mapping[str, str]:
    """Settings of Hadoop's connector: a key or a token; with neither, the user's keys have to say how it signs in."""
    account, host = config.azure_account, config.location.authority.partition("@")[2]
    # Without a hierarchical namespace, Hadoop is to use the Blob service; an account with one is detected by itself.
    settings = {"fs.azure.fns.account.service.type": "BLOB", "fs.azure.io.retry.max.retries": str(account.tries)}
    # Set under both names, because the connector replaces the name together with the service.
    for name in (host, host.replace(".dfs.", ".blob.", 1)):
        if account.key is not None:
            settings[f"fs.azure.account.auth.type.{name}"] = "SharedKey"
            settings[f"fs.azure.account.key.{name}"] = account.key
        elif account.token is not None:
            settings[f"fs.azure.account.auth.type.{name}"] = "SAS"
            settings[f"fs.azure.sas.fixed.token.{name}"] = account.token
    scheme, _, at = account.endpoint.partition("://")
    at, _, path = at.partition("/")
    if path == account.name:
        # An emulator's address, where the account is a folder.
        settings |= {"fs.azure.abfs.endpoint": at, "fs.azure.account.hns.enabled": "false"}
    if scheme == "http":
        settings["fs.azure.always.use.https"] = "false"
    return settings


def _google_settings(config: StoreOptions) -> Mapping[str, str]:
    """Settings of Google's Hadoop connector, which signs in the same way as the driver."""
    settings = {
        "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
        "fs.AbstractFileSystem.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFS",
    }
    if config.gcs_endpoint is not None:
        settings["fs.gs.storage.root.url"] = config.gcs_endpoint
    if (key := config.google_key) is not None:
        settings["fs.gs.auth.service.account.email"] = key["client_email"]
        settings["fs.gs.auth.service.account.private.key.id"] = key["private_key_id"]
        settings["fs.gs.auth.service.account.private.key"] = key["private_key"]
        settings["fs.gs.token.server.url"] = key["token_uri"]
    elif config.gcs_endpoint is not None:
        settings["fs.gs.auth.service.account.enable"] = "false"
        settings["fs.gs.auth.null.enable"] = "true"
    return settings


def _s3_access(config: StoreOptions) -> Access:
    settings = {
        "fs.s3a.endpoint.region": config.s3_region,
        "fs.s3a.path.style.access": str(config.s3_path_style_access_enabled).lower(),
        "fs.s3a.multipart.size": str(config.s3_part_size),
        "fs.s3a.aws.credentials.provider": _DEFAULT_KEYS,
        # Loads find out for themselves what they have left behind; nothing may remove what a manifest is about to name.
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
