"""The options that say where a store is and how to reach it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from connect.config import HIGH, LOW, MEDIUM, Config, Password, between, matches, option
from connect.config.errors import ConfigRuleError
from connect.config.url import shown_url
from connect.errors import ConfigError
from connect.extras import missing_extra
from connectors.spark.stores.azure_account import AzureAccount, account_of_connection_string, checked_account_key
from connectors.spark.stores.google_key import parse_google_key, read_google_key
from connectors.spark.stores.location import Location, parse_location

__all__ = ["StoreOptions"]

_STORE = "Store"
_MIB = 1 << 20
_HADOOP_SIGNS_IN = "spark.hadoop.fs.azure.account."


class StoreOptions(Config):
    """The options of a store, with those of S3 under the names of the S3 sink."""

    store_url: str | None = option(
        default=None,
        importance=HIGH,
        group=_STORE,
        doc=(
            "Where the tables and the ledger are: a folder, as a path or a file: URL; "
            "hdfs://HOST:PORT/FOLDER; s3://BUCKET/FOLDER; gs://BUCKET/FOLDER; or "
            "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER. A relative path starts at the worker's "
            "working directory. If s3.bucket.name is set, this may be omitted, or be the endpoint of the "
            "service as in s3.endpoint."
        ),
    )
    topics_dir: str = option(
        default="topics",
        importance=HIGH,
        validator=matches(r"([^_./][^/]*(/[^_./][^/]*)*)?", "relative path whose parts do not begin with _ or ."),
        group=_STORE,
        doc=(
            "The folder in the store for the tables, each in a folder named after its topic. If empty, the "
            "tables are at the top of the store."
        ),
    )
    hadoop_conf_dir: str | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc=(
            "The folder with the core-site.xml and hdfs-site.xml of a Hadoop cluster, which say for instance "
            "where the name nodes of hdfs://NAMESERVICE are."
        ),
    )
    s3_bucket_name: str | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc="The bucket, if store.url does not name it.",
    )
    s3_region: str = option(
        default="us-west-2",
        importance=MEDIUM,
        group=_STORE,
        doc="The region of the bucket.",
    )
    s3_endpoint: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=matches(r"https?://([^/]+/?|.*@.*)", "URL such as http://minio:9000"),
        group=_STORE,
        doc="The URL of an S3-compatible service other than Amazon's, such as http://minio:9000.",
    )
    s3_path_style_access_enabled: bool = option(
        default=True,
        importance=LOW,
        group=_STORE,
        doc=(
            "Whether requests name the bucket in the path instead of the host name. Most S3-compatible "
            "services need it."
        ),
    )
    aws_access_key_id: str | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc=(
            "The access key for S3. Without it, credentials are looked up where Amazon's clients do: "
            "environment, profile, the role of the machine or container."
        ),
    )
    aws_secret_access_key: Password | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc="The secret that belongs to aws.access.key.id.",
    )
    s3_part_size: int = option(
        default=25 * _MIB,
        importance=LOW,
        validator=between(5 * _MIB, 2048 * _MIB - 1),
        group=_STORE,
        doc=(
            "The size of one part of a multipart upload, in bytes. Spark buffers parts on disk, the "
            "executors' Python in memory. A file has at most 10,000 parts."
        ),
    )

    gcs_credentials_path: str | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc=(
            "The JSON file with the key of a Google service account. Without it and gcs.credentials.json, "
            "credentials are looked up where Google's clients do: GOOGLE_APPLICATION_CREDENTIALS, then the "
            "account of the machine."
        ),
    )
    gcs_credentials_json: Password | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc="The key itself, as JSON, instead of gcs.credentials.path.",
    )
    gcs_endpoint: str | None = option(
        default=None,
        importance=LOW,
        validator=matches(r"https?://([^/]+/?|.*@.*)", "URL such as http://localhost:4443"),
        group=_STORE,
        doc=(
            "The URL of a service other than Google's that speaks the protocol of Google Cloud Storage, such "
            "as an emulator. Without a key, requests to it are not signed."
        ),
    )

    azblob_account_key: Password | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc=(
            "The key of the Azure storage account. Without a key, token or connection string, an identity is "
            "looked up where Azure's clients do: environment, managed identity, the login of the command az."
        ),
    )
    azblob_sas_token: Password | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc="A shared access signature for the account or the container, instead of azblob.account.key.",
    )
    azblob_connection_string: Password | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc="The connection string of the account, instead of azblob.account.key and azblob.endpoint.",
    )
    azblob_endpoint: str | None = option(
        default=None,
        importance=LOW,
        validator=matches(r"https?://([^?#]+|.*@.*)", "URL such as http://localhost:10000/devstoreaccount1"),
        group=_STORE,
        doc=(
            "The URL of the account's Blob service if it is not https://ACCOUNT.blob.core.windows.net, such "
            "as http://localhost:10000/devstoreaccount1 for the emulator Azurite."
        ),
    )

    @property
    def has_store(self) -> bool:
        """Whether a store is configured."""
        return self.store_url is not None or self.s3_bucket_name is not None

    @property
    def location(self) -> Location:
        """The location of the store; raises :class:`~connect.errors.ConfigError` if its keys do not name a
        valid one.
        """
        return parse_location(self.store_url, self.s3_bucket_name)

    @property
    def google_key(self) -> Mapping[str, Any] | None:
        """The key for Google Cloud Storage, if given; raises :class:`~connect.errors.ConfigError` if it is
        not a key.
        """
        if self.gcs_credentials_json is not None:
            return parse_google_key(self.gcs_credentials_json.value, "gcs.credentials.json")
        return None if self.gcs_credentials_path is None else read_google_key(self.gcs_credentials_path)

    @property
    def azure_account(self) -> AzureAccount:
        """The account of a store in Azure; raises :class:`~connect.errors.ConfigError` if its keys cannot be used."""
        name, _, domain = self.location.authority.partition("@")[2].partition(".dfs.")
        endpoint = (self.azblob_endpoint or f"https://{name}.blob.{domain}").rstrip("/")
        if self.azblob_connection_string is not None:
            return account_of_connection_string(self.azblob_connection_string.value, name, endpoint)
        if self.azblob_account_key is not None:
            return AzureAccount(name, endpoint, checked_account_key(self.azblob_account_key.value))
        token = self.azblob_sas_token
        return AzureAccount(name, endpoint, token=None if token is None else token.value.lstrip("?"))

    @property
    def needs_identity(self) -> bool:
        """Whether the store is in Azure and nothing says how Spark's Java signs in there."""
        if self.location.kind != "azure" or any(key.startswith(_HADOOP_SIGNS_IN) for key in self.originals):
            return False
        return self.azure_account.key is None and self.azure_account.token is None

    @property
    def endpoint(self) -> str | None:
        """The URL of the S3-compatible service, if it is not Amazon's."""
        if self.store_url is not None and self.store_url.startswith(("http:", "https:")):
            return self.store_url
        return self.s3_endpoint

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about these options."""
        try:
            location = self.location
        except ConfigError as error:
            yield error
            return
        for key, url in self._endpoints().items():
            if url is not None and "@" in url:
                # The option's own rule accepts it, because its error would reveal the key.
                told = "It must not contain a user or a key: give them by their keys."
                yield ConfigError(key, shown_url(url), told)
        if location.kind == "s3" and (reason := missing_extra("s3", "boto3")):
            yield ConfigRuleError(f"The store in S3 cannot be reached. {reason}", "store.url")
        if location.kind == "gcs":
            yield from self._google_mistakes()
        if location.kind == "azure":
            yield from self._azure_mistakes()
        if (self.aws_access_key_id is None) != (self.aws_secret_access_key is None):
            missing = "aws.access.key.id" if self.aws_access_key_id is None else "aws.secret.access.key"
            yield ConfigError(
                missing, None, "aws.access.key.id and aws.secret.access.key belong together: set both or neither."
            )

    def _google_mistakes(self) -> Iterable[ConfigError]:
        if reason := missing_extra("gcs", "google.cloud.storage"):
            yield ConfigRuleError(f"A store in Google Cloud Storage cannot be reached from here. {reason}", "store.url")
        if self.gcs_credentials_json is not None and self.gcs_credentials_path is not None:
            told = "gcs.credentials.json is the key as well: give one of the two."
            yield ConfigError("gcs.credentials.path", self.gcs_credentials_path, told)
        try:
            _ = self.google_key
        except ConfigError as error:
            yield error

    def _azure_mistakes(self) -> Iterable[ConfigError]:
        if reason := missing_extra("azure", "azure.storage.blob", "azure.identity"):
            yield ConfigRuleError(f"A store in Azure cannot be reached from here. {reason}", "store.url")
        given = [key for key, value in self._azure_keys().items() if value is not None]
        for key in given[1:]:
            yield ConfigError(key, None, f"{given[0]} signs requests as well: give one of the two.")
        if self.azblob_connection_string is not None and self.azblob_endpoint is not None:
            told = "azblob.connection.string has it as BlobEndpoint: give one of the two."
            yield ConfigError("azblob.endpoint", self.azblob_endpoint, told)
        try:
            account = self.azure_account
        except ConfigError as error:
            yield error
            return
        if self.location.secure and not account.endpoint.startswith("https:"):
            told = f"abfss: is reached by https: alone, and {account.endpoint} is not: write abfs: in its place."
            yield ConfigError("store.url", self.store_url, told)
        if account.key is None and account.token is None and not account.endpoint.startswith("https:"):
            told = "An identity is only sent to an https: URL: set a key (azblob.account.key) or a token instead."
            yield ConfigError("azblob.endpoint", self.azblob_endpoint, told)

    def _endpoints(self) -> Mapping[str, str | None]:
        return {
            "s3.endpoint": self.s3_endpoint,
            "gcs.endpoint": self.gcs_endpoint,
            "azblob.endpoint": self.azblob_endpoint,
        }

    def _azure_keys(self) -> Mapping[str, Password | None]:
        return {
            "azblob.connection.string": self.azblob_connection_string,
            "azblob.account.key": self.azblob_account_key,
            "azblob.sas.token": self.azblob_sas_token,
        }
