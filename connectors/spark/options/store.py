"""The options that say where a store is and how it is reached."""

from __future__ import annotations

from collections.abc import Iterable

from connect.config import HIGH, LOW, MEDIUM, Config, Password, between, matches, option
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.extras import missing_extra
from connectors.spark.stores.location import Location, parse_location

__all__ = ["StoreOptions"]

_STORE = "Store"
_MIB = 1 << 20


class StoreOptions(Config):
    """The options of a store, those of S3 under the names of the S3 sink."""

    store_url: str | None = option(
        default=None,
        importance=HIGH,
        group=_STORE,
        doc="Where the tables and the ledger are: a folder, as a path or a file: URL; hdfs://HOST:PORT/FOLDER; or "
        "s3://BUCKET/FOLDER. A relative path starts at the worker's working directory. With s3.bucket.name it "
        "may be missing, or be the endpoint of the service as for s3.endpoint.",
    )
    topics_dir: str = option(
        default="topics",
        importance=HIGH,
        validator=matches(r"([^_./][^/]*(/[^_./][^/]*)*)?", "relative path whose parts do not begin with _ or ."),
        group=_STORE,
        doc="Folder in the store that contains the tables, each in a folder with the name of its topic; if empty, the "
        "store itself.",
    )
    hadoop_conf_dir: str | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc="Folder with the core-site.xml and hdfs-site.xml of a Hadoop cluster, which for instance say where the "
        "name nodes of hdfs://NAMESERVICE are.",
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
        validator=matches(r"https?://[^/@]+/?", "URL such as http://minio:9000"),
        group=_STORE,
        doc="The URL of a service other than Amazon's that speaks S3, such as http://minio:9000.",
    )
    s3_path_style_access_enabled: bool = option(
        default=True,
        importance=LOW,
        group=_STORE,
        doc="Whether requests name the bucket in the path instead of the host name. Most services other than Amazon's "
        "need it.",
    )
    aws_access_key_id: str | None = option(
        default=None,
        importance=MEDIUM,
        group=_STORE,
        doc="The access key of S3. Without it, keys are looked for where Amazon's clients do: environment, profile, "
        "the role of the machine or container.",
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
        doc="Bytes of a part of an upload. Spark buffers parts on disk, the Python of executors in memory. A file has "
        "at most 10,000 of them.",
    )

    @property
    def has_store(self) -> bool:
        """Whether a place is named."""
        return self.store_url is not None or self.s3_bucket_name is not None

    @property
    def location(self) -> Location:
        """Where the store is; :class:`~connect.errors.ConfigError` if the keys for it name nothing that there is."""
        return parse_location(self.store_url, self.s3_bucket_name)

    @property
    def endpoint(self) -> str | None:
        """The URL of the service that speaks S3, if it is not Amazon's."""
        if self.store_url is not None and self.store_url.startswith(("http:", "https:")):
            return self.store_url
        return self.s3_endpoint

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each of these rules that is broken."""
        try:
            location = self.location
        except ConfigError as error:
            yield error
            return
        if location.kind == "s3" and (reason := missing_extra("s3", "boto3")):
            yield ConfigRuleError(f"A store in S3 cannot be reached from here. {reason}", "store.url")
        if (self.aws_access_key_id is None) != (self.aws_secret_access_key is None):
            missing = "aws.access.key.id" if self.aws_access_key_id is None else "aws.secret.access.key"
            yield ConfigError(missing, None, "A key and its secret belong together: give both of them or neither.")
