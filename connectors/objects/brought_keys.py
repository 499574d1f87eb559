"""Keys that users of Java's sinks bring along: which mean what, which are refused, and which have no effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from connect.config import ConfigRuleError
from connect.config.unsupported_keys import UnsupportedKey, given_keys, without_effect
from connect.errors import ConfigError
from connect.kits.files.formats.compression import COMPRESSION_EXTENSIONS
from connect.kits.objects.s3_login import PROVIDERS

__all__ = ["JAVA_KEYS", "refused_keys", "translated", "warned_keys"]

_CREDENTIALS: Final = (
    "Java classes cannot run here. Without aws.access.key.id, keys are found where Amazon's clients look: environment, "
    "profile (aws.profile), web identity, the role of the machine; aws.sts.role.arn assumes a role. Remove the key."
)
_DEFAULT_CHAINS: Final = (
    "",
    "com.amazonaws.auth.defaultawscredentialsproviderchain",
    "software.amazon.awssdk.auth.credentials.defaultcredentialsprovider",
)
_HIVE: Final = "Tables of Hive are written through Spark: set engine=spark, or remove the key."
_REFUSED: Final[Mapping[str, UnsupportedKey]] = {
    "s3.credentials.provider.class": UnsupportedKey(_CREDENTIALS, (*_DEFAULT_CHAINS, *PROVIDERS)),
    "aws.credentials.provider": UnsupportedKey(_CREDENTIALS, _DEFAULT_CHAINS),
    "hive.integration": UnsupportedKey(_HIVE, ("", "false")),
    "topic.capture.groups.regex": UnsupportedKey("topics.dir is one folder for all topics: remove the key."),
    "gcs.object.content.encoding": UnsupportedKey("Objects have no content encoding: remove the key."),
    "gcs.credentials.default": UnsupportedKey(
        "Without gcs.credentials.path and gcs.credentials.json, credentials are looked up where Google's clients do: "
        "set true, or remove the key.",
        ("", "true"),
    ),
}
_BY_CLIENTS: Final = "requests are made again after waits that grow, as the service's own client does it"
_STORAGES: Final = (
    "",
    "io.confluent.connect.s3.storage.s3storage",
    "io.confluent.connect.gcs.storage.gcsstorage",
    "io.confluent.connect.azure.blob.storage.azureblobstorage",
    "io.confluent.connect.sftp.sink.storage.sftpsinkstorage",
)
_CUTS: Final = "files that end by the clock are exactly once by objects below _sluice, and need no free name"
_WITHOUT_EFFECT: Final[Mapping[str, UnsupportedKey]] = {
    "s3.retry.backoff.ms": UnsupportedKey(_BY_CLIENTS, ("", "200")),
    "aws.s3.backoff.delay.ms": UnsupportedKey(_BY_CLIENTS, ("", "100")),
    "aws.s3.backoff.max.delay.ms": UnsupportedKey(_BY_CLIENTS, ("", "20000")),
    "gcs.retry.backoff.initial.delay.ms": UnsupportedKey(_BY_CLIENTS, ("", "1000")),
    "gcs.retry.backoff.max.delay.ms": UnsupportedKey(_BY_CLIENTS, ("", "32000")),
    "gcs.retry.backoff.delay.multiplier": UnsupportedKey(_BY_CLIENTS, ("", "2.0")),
    "gcs.retry.backoff.max.attempts": UnsupportedKey(_BY_CLIENTS, ("", "6")),
    "gcs.retry.backoff.total.timeout.ms": UnsupportedKey(_BY_CLIENTS, ("", "50000")),
    "gcs.user.agent": UnsupportedKey("requests name Google's client"),
    "s3.http.send.expect.continue": UnsupportedKey("Amazon's client decides", ("", "true")),
    "s3.send.digest": UnsupportedKey("requests are signed with their content", ("", "false")),
    "s3.elastic.buffer.enable": UnsupportedKey("a file takes as much memory as it holds", ("", "false")),
    "s3.elastic.buffer.init.capacity": UnsupportedKey("a file takes as much memory as it holds", ("", "131072")),
    "enable.conditional.writes": UnsupportedKey(_CUTS, ("", "true")),
    "max.files.scan.limit": UnsupportedKey(_CUTS, ("", "100")),
    "shutdown.timeout.ms": UnsupportedKey("task.shutdown.graceful.timeout.ms of the worker says it", ("", "3000")),
    "storage.class": UnsupportedKey("connector.class says where files go", _STORAGES),
    "schema.generator.class": UnsupportedKey(
        "partitioners need none", ("", "io.confluent.connect.storage.hive.schema.defaultschemagenerator")
    ),
    "aws.s3.fetch.page.size": UnsupportedKey("it is of the source", ("", "10")),
    "aws.s3.fetch.buffer.size": UnsupportedKey("it is of the source", ("", "1000")),
}
JAVA_KEYS: Final = (*_REFUSED, *_WITHOUT_EFFECT)
"""Keys of which these functions tell what they mean here, where they mean anything else."""
_OF_AIVEN: Final = (
    "aws.s3.bucket.name",
    "aws_s3_bucket",
    "azure.storage.container.name",
    "azure.storage.connection.string",
    "file.max.records",
    "file.name.template",
    "format.output.fields",
    "output_fields",
)


def translated(props: Mapping[str, object]) -> Mapping[str, object]:
    """Return the properties of one of Aiven's sinks with its defaults; those of others as they are."""
    if not _is_aivens(props):
        return props
    found = dict(props)
    if (old := found.get("output_compression")) is not None:
        found["output_compression"] = str(old).lower()
    kind = str(found.setdefault("format.output.type", "csv"))
    if not found.get("file.name.template") and str(found.get("combine.partitions")).lower() != "true":
        compression = str(found.get("file.compression.type") or found.get("output_compression") or "none").lower()
        ending = (".avro" if kind == "avro" else "") + COMPRESSION_EXTENSIONS.get(compression, "")
        found["file.name.template"] = "{{topic}}-{{partition}}-{{start_offset}}" + ending
    return found


def _is_aivens(props: Mapping[str, object]) -> bool:
    if props.get("format.class"):
        return False
    name = str(props.get("connector.class") or "")
    by_name = name.startswith(("io.aiven.", "AivenKafkaConnect"))
    return by_name or bool(props.get("format.output.type")) or any(props.get(key) for key in _OF_AIVEN)


def refused_keys(props: Mapping[str, str | None]) -> Iterator[ConfigError]:
    """Yield an error for each key whose effect is not supported."""
    for key, value, told in given_keys(_REFUSED, props):
        yield ConfigRuleError(f"Invalid value {value} for configuration {key}: {told}", key)


def warned_keys(props: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a warning for each key that has no effect."""
    return without_effect(_WITHOUT_EFFECT, props)
