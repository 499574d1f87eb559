"""The configurations of the sinks: what all share, and what each kind of store adds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final, Literal, Self
from urllib.parse import quote, urlsplit, urlunsplit

from connect.config import HIGH, LOW, MEDIUM, ConfigValue, Long, Password, at_least, between, matches, option
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.hosts import HostDeniedError
from connect.internals.extras import missing_extra
from connect.kits.objects.azure import AzureBlobs
from connect.kits.objects.azure_account import AzureAccount
from connect.kits.objects.gcs import GoogleObjects
from connect.kits.objects.local import LocalFiles
from connect.kits.objects.location import Location, parse_location
from connect.kits.objects.options import AzureOptions, GcsOptions
from connect.kits.objects.s3 import S3Account, S3Attributes, S3Objects
from connect.kits.objects.s3_login import PROVIDER_KEYS, S3LoginOptions
from connect.kits.objects.store import ObjectStore, store_problem
from connect.kits.objects.uploads import UploadSettings
from connectors.objects.brought_keys import JAVA_KEYS, refused_keys, translated, warned_keys
from connectors.objects.format_config import FormatOptions
from connectors.objects.layout_config import LayoutOptions

__all__ = ["AzureBlobSinkConfig", "FolderSinkConfig", "GcsSinkConfig", "ObjectSinkConfig", "S3SinkConfig"]

_MIB: Final = 1 << 20
_STORE: Final = "Store"
_RECORD: Final = "Records"


class _RecordOptions(FormatOptions):
    """What is done with records that are special, and with errors."""

    behavior_on_null_values: str = option(
        default="fail",
        importance=LOW,
        ignore_case=True,
        validator=matches("(?i)ignore|fail|write", "one of ignore, fail, write (in any case)"),
        group=_RECORD,
        doc="What to do with a record without a value: ignore skips it, fail gives it up as errors.tolerance says, "
        "write writes its key (store.kafka.keys) to the folder tombstone.encoded.partition. With format.output.type, "
        "such records are written as all others.",
    )
    report_null_values_to_dlq: bool = option(
        default=True,
        importance=LOW,
        group=_RECORD,
        doc="Whether ignored records without a value go to the dead letter queue, if there is one.",
    )
    retry_backoff_ms: Long = option(
        default=5000,
        importance=LOW,
        validator=at_least(1),
        group=_RECORD,
        doc="How long to wait before records are read and written again, after the store could not be reached, unless "
        "it asks for another pause.",
    )
    kafka_retry_backoff_ms: Long | None = option(
        default=None,
        importance=MEDIUM,
        validator=between(0, 86_400_000),
        group=_RECORD,
        doc="The same as retry.backoff.ms, under the name of Aiven's sinks.",
    )
    max_write_duration_ms: Long = option(
        default=(1 << 63) - 1,
        importance=LOW,
        validator=at_least(1),
        group=_RECORD,
        doc="How long a put may wait for the store before the task polls again, so that it stays in its group; never "
        "more than half a minute.",
    )


class ObjectSinkConfig(LayoutOptions, _RecordOptions):
    """The options that all sinks of files have."""

    passed_keys: ClassVar[tuple[str, ...]] = JAVA_KEYS

    @classmethod
    def parse(cls, props: Mapping[str, object], *, secret_keys: Collection[str] = ()) -> Self:
        """Parse properties, including those of Aiven's sinks."""
        return super().parse(translated(props), secret_keys=secret_keys)

    @classmethod
    def validate(cls, props: Mapping[str, object], *, secret_keys: Collection[str] = ()) -> tuple[ConfigValue, ...]:
        """Validate properties, including those of Aiven's sinks."""
        return super().validate(translated(props), secret_keys=secret_keys)

    def warnings(self) -> Iterable[str]:
        """Warn about keys without effect."""
        yield from warned_keys(self.originals)
        if self.combine_partitions and (self.originals.get("tasks.max") or "1") != "1":
            yield "With combine.partitions=true there is one task, which reads all partitions: tasks.max has no effect."

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several options."""
        if self.format_class is None and not self.has_output_type:
            reason = "It says what the files look like: set JsonFormat, AvroFormat, ParquetFormat or another format."
            yield ConfigError("format.class", None, reason)
        yield from self.format_mistakes("The sink")
        yield from self.layout_mistakes(has_output_type=self.has_output_type)
        yield from refused_keys(self.originals)
        yield from self._arrow_mistakes()
        if self.on_null == "write" and not self.store_kafka_keys and not self.has_output_type:
            reason = "A record without a value is its key: set store.kafka.keys=true, or ignore them."
            yield ConfigError("behavior.on.null.values", self.behavior_on_null_values, reason)
        yield from self.store_mistakes()

    def _arrow_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for what needs a library that is not there."""
        missing = missing_extra("arrow", "pyarrow")
        if not missing:
            return
        formats = {
            "format.class": str(self.format_class),
            "format.output.type": str(self.format_output_type),
            "keys.format.class": self.keys_format_class if self.store_kafka_keys else "",
            "headers.format.class": self.headers_format_class if self.store_kafka_headers else "",
        }
        for key, name in formats.items():
            if any(part in name.lower() for part in ("parquet", "orc")):
                yield ConfigRuleError(f"Files of Parquet and ORC cannot be written. {missing}", key)
        codecs = {"file.compression.type": self.compression, "avro.codec": self.avro_codec}
        for key, codec in codecs.items():
            if codec in ("snappy", "zstd", "zstandard"):
                yield ConfigRuleError(f"{key}={codec} cannot be had. {missing}", key)

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about the store."""
        return ()

    place_key: ClassVar[str]
    """The key that names the bucket, or the folder."""

    def check_system(self) -> Iterable[ConfigError]:
        """Look into the store, and yield why it cannot be used."""
        if problem := store_problem(self.open_store(), self.topics_dir, writes=True):
            yield ConfigRuleError(problem, self.place_key)

    @property
    def on_null(self) -> str:
        """What to do with a record without a value."""
        return self.behavior_on_null_values.lower()

    @property
    def backoff_seconds(self) -> float:
        """How long to wait after an error that passes."""
        given = self.kafka_retry_backoff_ms
        return max((self.retry_backoff_ms if given is None else given) / 1000, 0.001)

    @property
    def part_bytes(self) -> int:
        """How many bytes of a file are sent at once."""
        return 8 * _MIB

    def open_store(self) -> ObjectStore:
        """Open the store."""
        raise NotImplementedError

    def upload_settings(self, staging: str) -> UploadSettings:
        """Return what objects are given."""
        return UploadSettings(staging=staging)


class _S3SinkOptions(S3LoginOptions):
    """What the sink adds to the options of S3."""

    s3_bucket_name: str = option(importance=HIGH, group=_STORE, doc="The bucket.")
    store_url: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=matches(r"https?://([^/]+/?|.*@.*)", "URL such as http://minio:9000"),
        group=_STORE,
        doc="The same as s3.endpoint, under the name of Confluent's sink.",
    )
    s3_part_size: int = option(
        default=25 * _MIB,
        importance=HIGH,
        validator=between(5 * _MIB, 2048 * _MIB - 1),
        group=_STORE,
        doc="From which size on a file is sent in parts, and how large these are. An object has at most 10,000.",
    )
    s3_ssea_name: str = option(
        default="",
        importance=LOW,
        validator=matches("|AES256|aws:kms|aws:kms:dsse", "one of AES256, aws:kms, aws:kms:dsse, or empty"),
        group=_STORE,
        doc="How the service encrypts objects.",
    )
    s3_sse_kms_key_id: str = option(
        default="", importance=LOW, group=_STORE, doc="The key with which aws:kms encrypts objects."
    )
    s3_sse_customer_key: Password | None = option(
        default=None,
        importance=LOW,
        group=_STORE,
        doc="A key of 32 bytes with which the service encrypts objects, and which readers need, too.",
    )
    s3_acl_canned: str | None = option(
        default=None,
        importance=LOW,
        validator=matches(
            "private|public-read|public-read-write|authenticated-read|aws-exec-read|bucket-owner-read|"
            "bucket-owner-full-control",
            "a canned ACL, such as bucket-owner-full-control",
        ),
        group=_STORE,
        doc="Who may read and change objects.",
    )
    s3_storage_class: str | None = option(
        default=None, importance=LOW, group=_STORE, doc="The storage class of objects, such as STANDARD_IA."
    )
    s3_object_tagging: bool = option(
        default=False,
        importance=LOW,
        group=_STORE,
        doc="Whether objects get the tags startOffset, endOffset and recordCount.",
    )
    s3_object_tagging_key_value_pairs: tuple[str, ...] = option(
        default=(), importance=LOW, group=_STORE, doc="More tags: name:value, divided by commas."
    )
    s3_object_behavior_on_tagging_error: str = option(
        default="IGNORE",
        importance=LOW,
        ignore_case=True,
        validator=matches("(?i)ignore|fail", "one of ignore, fail (in any case)"),
        group=_STORE,
        doc="What to do if an object cannot be tagged.",
    )
    s3_wan_mode: bool = option(
        default=False, importance=MEDIUM, group=_STORE, doc="Whether to use Amazon's accelerated endpoint."
    )
    s3_part_retries: int = option(
        default=3,
        importance=MEDIUM,
        validator=at_least(0),
        group=_STORE,
        doc="How often a failed request is made again at once, after waits that grow.",
    )
    s3_proxy_url: str = option(default="", importance=LOW, group=_STORE, doc="The URL of a proxy to S3.")
    s3_proxy_user: str | None = option(default=None, importance=LOW, group=_STORE, doc="The user of the proxy.")
    s3_proxy_password: Password | None = option(
        default=None, importance=LOW, group=_STORE, doc="The password of the user of the proxy."
    )


class S3SinkConfig(_S3SinkOptions, ObjectSinkConfig):
    """The options of the S3 sink: those of Confluent's, and under other names those of Aiven's."""

    place_key = "s3.bucket.name"

    old_keys: ClassVar[Mapping[str, str]] = {
        "aws.s3.bucket.name": "s3.bucket.name",
        "aws_s3_bucket": "s3.bucket.name",
        "aws.s3.region": "s3.region",
        "aws_s3_region": "s3.region",
        "aws.s3.endpoint": "s3.endpoint",
        "aws_s3_endpoint": "s3.endpoint",
        "aws_access_key_id": "aws.access.key.id",
        "aws_secret_access_key": "aws.secret.access.key",
        **PROVIDER_KEYS,
        "aws.s3.sse.algorithm": "s3.ssea.name",
        "aws.s3.part.size.bytes": "s3.part.size",
        "aws.s3.backoff.max.retries": "s3.part.retries",
        "aws.s3.prefix": "file.name.prefix",
        "aws_s3_prefix": "file.name.prefix",
        "file.prefix.template": "file.name.prefix",
        "output_fields": "format.output.fields",
        "output_compression": "file.compression.type",
        "timestamp.timezone": "file.name.timestamp.timezone",
        "timestamp.source": "file.name.timestamp.source",
    }

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about the store."""
        if reason := missing_extra("s3", "boto3"):
            yield ConfigRuleError(f"S3 cannot be reached. {reason}", "connector.class")
        yield from self.s3_mistakes()
        endpoints = {"s3.endpoint": self.s3_endpoint, "store.url": self.store_url, "s3.proxy.url": self.s3_proxy_url}
        endpoints["aws.sts.config.endpoint"] = self.aws_sts_config_endpoint
        yield from _endpoint_mistakes(self, endpoints)
        if self.s3_endpoint and self.store_url and self.s3_endpoint.rstrip("/") != self.store_url.rstrip("/"):
            yield ConfigError("store.url", self.store_url, "s3.endpoint is another one: remove one of the two.")
        yield from self.role_mistakes()
        if self.s3_sse_customer_key is not None and self.s3_ssea_name:
            yield ConfigError(
                "s3.ssea.name", self.s3_ssea_name, "s3.sse.customer.key encrypts, too: give one of the two."
            )
        if self.s3_object_tagging and self.combine_partitions:
            yield ConfigError("s3.object.tagging", True, "Files of several partitions get no tags: remove the key.")
        if any(":" not in pair for pair in self.s3_object_tagging_key_value_pairs):
            given = ",".join(self.s3_object_tagging_key_value_pairs)
            yield ConfigError("s3.object.tagging.key.value.pairs", given, "Write name:value, divided by commas.")

    @property
    def endpoint(self) -> str | None:
        """The URL of the service, if it is not Amazon's."""
        return self.s3_endpoint or self.store_url

    @property
    def s3_account(self) -> S3Account:
        """The account for the bucket."""
        return replace(
            super().s3_account,
            region=self.s3_region.lower().replace("_", "-"),
            proxy=self._proxy,
            accelerated=self.s3_wan_mode,
            tries=self.s3_part_retries + 1,
        )

    @property
    def part_bytes(self) -> int:
        """The size of parts."""
        return self.s3_part_size

    @property
    def tags(self) -> Mapping[str, str] | None:
        """The tags of all objects; ``None`` if objects are not tagged."""
        pairs = [pair.partition(":") for pair in self.s3_object_tagging_key_value_pairs]
        given = {name.strip(): value.strip() for name, _, value in pairs}
        return given if self.s3_object_tagging else None

    def open_store(self) -> ObjectStore:
        """Open the bucket."""
        return S3Objects(self.s3_account, self.s3_bucket_name, "")

    def upload_settings(self, staging: str) -> UploadSettings:
        """Return what objects are given."""
        key = self.s3_sse_customer_key
        attributes = S3Attributes(
            self.s3_acl_canned,
            self.s3_ssea_name or None,
            self.s3_sse_kms_key_id or None,
            None if key is None else key.value,
            storage_class=self.s3_storage_class,
        )
        on_error: Literal["ignore", "fail"] = (
            "fail" if self.s3_object_behavior_on_tagging_error.upper() == "FAIL" else "ignore"
        )
        return UploadSettings(attributes, on_error, staging)

    @property
    def _proxy(self) -> str | None:
        if not self.s3_proxy_url:
            return None
        if self.s3_proxy_user is None:
            return self.s3_proxy_url
        parts = urlsplit(self.s3_proxy_url)
        password = "" if self.s3_proxy_password is None else f":{quote(self.s3_proxy_password.value, safe='')}"
        user = quote(self.s3_proxy_user, safe="") + password
        return urlunsplit(parts._replace(netloc=f"{user}@{parts.netloc.rpartition('@')[2]}"))


class _GcsSinkOptions(GcsOptions):
    """What the sink adds to the options of Google Cloud Storage."""

    gcs_bucket_name: str = option(importance=HIGH, group=_STORE, doc="The bucket.")
    gcs_part_size: int = option(
        default=25 * _MIB,
        importance=HIGH,
        validator=between(5 * _MIB, 2048 * _MIB - 1),
        group=_STORE,
        doc="From which size on a file is sent in parts.",
    )


class GcsSinkConfig(_GcsSinkOptions, ObjectSinkConfig):
    """The options of the sink for Google Cloud Storage."""

    place_key = "gcs.bucket.name"

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about the store."""
        yield from self.google_mistakes(self.place_key)
        yield from _endpoint_mistakes(self, {"gcs.endpoint": self.gcs_endpoint})

    @property
    def part_bytes(self) -> int:
        """The size of parts."""
        return self.gcs_part_size

    def open_store(self) -> ObjectStore:
        """Open the bucket."""
        return GoogleObjects(self.google_account, self.gcs_bucket_name, "")


class _AzureSinkOptions(AzureOptions):
    """What the sink adds to the options of Azure."""

    azblob_account_name: str | None = option(
        default=None,
        importance=HIGH,
        group=_STORE,
        doc="The storage account, unless azblob.connection.string names it.",
    )
    azblob_container_name: str = option(default="default", importance=HIGH, group=_STORE, doc="The container.")
    azblob_block_size: int = option(
        default=25 * _MIB,
        importance=HIGH,
        validator=between(5 * _MIB, 2048 * _MIB - 1),
        group=_STORE,
        doc="From which size on a file is sent in blocks.",
    )


class AzureBlobSinkConfig(_AzureSinkOptions, ObjectSinkConfig):
    """The options of the sink for Azure Blob Storage."""

    place_key = "azblob.container.name"

    old_keys: ClassVar[Mapping[str, str]] = {
        "azure.storage.connection.string": "azblob.connection.string",
        "azure.storage.container.name": "azblob.container.name",
    }

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about the store."""
        if self._account_name is None:
            reason = "Set the name of the storage account, or azblob.connection.string, which has it."
            yield ConfigError("azblob.account.name", None, reason)
            return
        yield from self.azure_mistakes(self._location, None, "azblob.account.name")
        yield from _endpoint_mistakes(self, {"azblob.endpoint": self.azblob_endpoint})

    @property
    def part_bytes(self) -> int:
        """The size of blocks."""
        return self.azblob_block_size

    @property
    def account(self) -> AzureAccount:
        """The storage account."""
        return self.azure_account_of(self._location)

    def open_store(self) -> ObjectStore:
        """Open the container."""
        return AzureBlobs(self.account, self.azblob_container_name, "")

    @property
    def _location(self) -> Location:
        domain = f"{self._account_name}.dfs.core.windows.net"
        return Location("azure", "", f"{self.azblob_container_name}@{domain}", secure=False)

    @property
    def _account_name(self) -> str | None:
        if self.azblob_account_name is not None or self.azblob_connection_string is None:
            return self.azblob_account_name
        parts = [part.partition("=") for part in self.azblob_connection_string.value.split(";")]
        return next((value.strip() for name, _, value in parts if name.strip().lower() == "accountname"), None)


class FolderSinkConfig(ObjectSinkConfig):
    """The options of the sink for a local or mounted folder."""

    place_key = "store.url"

    store_url: str = option(
        importance=HIGH,
        group=_STORE,
        doc="The folder that has that of topics.dir: a path or a file: URL, of a local disk or a mounted file system. "
        "A relative path starts at the worker's working directory.",
    )

    def store_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about the store."""
        try:
            place = parse_location(self.store_url)
        except ConfigError as error:
            yield error
            return
        if place.kind != "local":
            reason = "It is no folder: use a path, or S3Sink, GcsSink, AzureBlobSink or SparkSink."
            yield ConfigError("store.url", self.store_url, reason)
        if self.directory_delim != "/":
            yield ConfigError(
                "directory.delim", self.directory_delim, "Folders are divided by a slash: remove the key."
            )

    def open_store(self) -> ObjectStore:
        """Open the folder."""
        return LocalFiles(Path(parse_location(self.store_url).path))


def _endpoint_mistakes(
    options: S3LoginOptions | GcsOptions | AzureOptions, endpoints: Mapping[str, str | None]
) -> Iterable[ConfigError]:
    for key, endpoint in endpoints.items():
        if endpoint and "@" in endpoint:
            # The option's own rule accepts it, because its error would reveal the key.
            yield ConfigRuleError(f"{key} must not contain a user or a key: give them by their keys.", key)
        elif endpoint:
            try:
                options.host_rules.check_name(urlsplit(endpoint).hostname or "")
            except (ValueError, HostDeniedError) as error:
                yield ConfigRuleError(f"{key}: {error}", key)
