"""The options that say where a store is and how to reach it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from connect.config import HIGH, LOW, MEDIUM, ConfigRuleError, between, matches, option
from connect.errors import ConfigError
from connect.hosts import HostsConfig
from connect.kits.objects.azure_account import AzureAccount
from connect.kits.objects.location import Location, parse_location
from connect.kits.objects.options import ObjectOptions, S3Options
from connect.kits.objects.store import open_store, store_problem

__all__ = ["StoreOptions"]

_STORE = "Store"
_MIB = 1 << 20
_HADOOP_SIGNS_IN = "spark.hadoop.fs.azure.account."


class _PlaceOptions(HostsConfig):
    """What comes first in the reference."""

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


class _PartOptions(S3Options):
    """What Spark's writers add to the options of S3."""

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


class StoreOptions(ObjectOptions, _PartOptions, _PlaceOptions):
    """The options of a store, with those of S3 under the names of the S3 sink."""

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
    def azure_account(self) -> AzureAccount:
        """The account of a store in Azure; raises :class:`~connect.errors.ConfigError` if its keys cannot be used."""
        return self.azure_account_of(self.location)

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
        return super().endpoint

    def can_check_system(self) -> bool:
        """Return whether the store is one that is reached without Spark's Java, if there is one."""
        return self.has_store and self.location.kind != "hdfs"

    def check_system(self) -> Iterable[ConfigError]:
        """Look into the store, and yield why it cannot be used."""
        if problem := store_problem(open_store(self.location, self), self.topics_dir, writes=self.writes):
            yield ConfigRuleError(problem, "store.url" if self.store_url is not None else "s3.bucket.name")

    writes: ClassVar[bool] = True
    """Whether the store is written to."""

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about these options."""
        try:
            location = self.location
        except ConfigError as error:
            yield error
            return
        if self.endpoint is not None and self.endpoint == self.store_url and "@" not in self.endpoint:
            yield from self.host_mistakes("store.url", self.endpoint)
        yield from self.object_mistakes(location, self.store_url)
