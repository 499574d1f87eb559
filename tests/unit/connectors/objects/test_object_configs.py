"""Configurations of Java's sinks, as people have them, and mistakes in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from connect.config.errors import InvalidConfigError
from connect.errors import ConfigError
from connect.internals.plugins import PluginKind, PluginRegistry
from connect.kits.objects.s3 import S3Attributes, S3Role
from connect.kits.objects.s3_login import S3LoginOptions
from connectors.objects.sink_config import (
    AzureBlobSinkConfig,
    FolderSinkConfig,
    GcsSinkConfig,
    ObjectSinkConfig,
    S3SinkConfig,
)
from connectors.objects.source.config import S3SourceConfig

S3_TUTORIAL: Final = {
    "name": "s3-sink",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "tasks.max": "1",
    "topics": "s3_topic",
    "s3.region": "us-west-2",
    "s3.bucket.name": "confluent-kafka-connect-s3-testing",
    "s3.part.size": "5242880",
    "flush.size": "3",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "io.confluent.connect.s3.format.avro.AvroFormat",
    "schema.generator.class": "io.confluent.connect.storage.hive.schema.DefaultSchemaGenerator",
    "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
    "schema.compatibility": "NONE",
}
GCS: Final = {
    "name": "gcs",
    "connector.class": "io.confluent.connect.gcs.GcsSinkConnector",
    "topics": "gcs_topic",
    "gcs.bucket.name": "bucket",
    "gcs.part.size": "5242880",
    "flush.size": "3",
    "storage.class": "io.confluent.connect.gcs.storage.GcsStorage",
    "format.class": "io.confluent.connect.gcs.format.avro.AvroFormat",
    "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
    "confluent.topic.bootstrap.servers": "localhost:9092",
}
AZURE: Final = {
    "name": "blob",
    "connector.class": "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector",
    "topics": "blob_topic",
    "flush.size": "3",
    "azblob.account.name": "account",
    "azblob.account.key": "a2V5",
    "azblob.container.name": "container",
    "format.class": "io.confluent.connect.azure.blob.format.avro.AvroFormat",
}
AIVEN_S3: Final = {
    "name": "aiven",
    "connector.class": "io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector",
    "topics": "test",
    "aws.access.key.id": "k",
    "aws.secret.access.key": "s",
    "aws.s3.bucket.name": "my-bucket",
    "aws.s3.region": "us-east-1",
    "format.output.type": "jsonl",
    "format.output.fields": "key,value,offset,timestamp",
    "file.compression.type": "gzip",
    "file.max.records": "5000",
    "aws.sts.role.arn": "arn:aws:iam::1:role/writer",
    "aws.sts.role.external.id": "outside",
}
AIVEN_OLD: Final = {
    "name": "old",
    "connector.class": "AivenKafkaConnectS3SinkConnector",
    "topics": "test",
    "aws_access_key_id": "k",
    "aws_secret_access_key": "s",
    "aws_s3_bucket": "b",
    "aws_s3_region": "eu-west-1",
    "aws_s3_prefix": "logs/{{ utc_date }}/",
    "output_fields": "key,offset,timestamp,value",
    "output_compression": "GZIP",
}
AIVEN_AZURE: Final = {
    "name": "azure",
    "connector.class": "io.aiven.kafka.connect.azure.sink.AzureBlobSinkConnector",
    "topics": "t",
    "azure.storage.connection.string": "AccountName=acc;AccountKey=a2V5;EndpointSuffix=core.windows.net",
    "azure.storage.container.name": "container",
    "file.name.template": "{{topic}}/{{partition}}-{{start_offset:padding=true}}-{{timestamp:unit=yyyy}}.gz",
    "file.compression.type": "gzip",
}
KNOWN: Final = [
    (S3_TUTORIAL, S3SinkConfig, "S3"),
    (GCS, GcsSinkConfig, "Gcs"),
    (AZURE, AzureBlobSinkConfig, "AzureBlob"),
    (AIVEN_S3, S3SinkConfig, "S3"),
    (AIVEN_OLD, S3SinkConfig, "S3"),
    (AIVEN_AZURE, AzureBlobSinkConfig, "AzureBlob"),
]


def errors(config_class: type[ObjectSinkConfig], config: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {value.name: value.errors for value in config_class.validate(config) if value.errors}


def test_java_s_storages_are_known_keys_and_others_are_told() -> None:
    assert "storage.class" in S3SinkConfig.passed_keys
    assert list(S3SinkConfig.parse(S3_TUTORIAL).warnings()) == []
    (warning,) = S3SinkConfig.parse({**S3_TUTORIAL, "storage.class": "com.example.Own"}).warnings()
    assert "storage.class" in warning


def test_keys_of_java_s_classes_that_sign_in_are_taken() -> None:
    """As Aiven's documentation has them for Confluent's sink, and as Confluent's has them for roles."""
    signs = {
        "s3.credentials.provider.class": "io.aiven.kafka.connect.util.AivenAWSCredentialsProvider",
        "s3.credentials.provider.access_key_id": "AKIA",
        "s3.credentials.provider.secret_access_key": "s3cret",
    }
    assumes = {
        "s3.credentials.provider.class": "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider",
        "s3.credentials.provider.sts.role.arn": "arn:aws:iam::1:role/writer",
        "s3.credentials.provider.sts.role.session.name": "session-name",
        "s3.credentials.provider.sts.role.external.id": "123",
    }
    reads = {"s3.bucket.name": "b", "topic": "t", "format": "text"}
    cases: Sequence[tuple[type[S3LoginOptions], Mapping[str, str]]] = [
        (S3SinkConfig, S3_TUTORIAL),
        (S3SourceConfig, reads),
    ]
    for config_class, given in cases:
        account = config_class.parse({**given, **signs}).s3_account
        assert (account.key, account.secret) == ("AKIA", "s3cret")
        role = config_class.parse({**given, **assumes}).s3_account.role
        assert role is not None
        assert (role.arn, role.session_name, role.external_id) == ("arn:aws:iam::1:role/writer", "session-name", "123")
    lacks = {**S3_TUTORIAL, **signs, "flush.size": ""}
    assert "s3cret" not in str(errors(S3SinkConfig, lacks))


@pytest.mark.parametrize(("config", "config_class", "kind"), KNOWN)
def test_what_people_have_is_taken_as_it_is(
    config: Mapping[str, str], config_class: type[ObjectSinkConfig], kind: str
) -> None:
    assert errors(config_class, config) == {}
    once = config_class.parse(config)
    assert list(once.warnings()) == []
    given = {key: value for key, value in once.originals.items() if value is not None}
    assert config_class.parse(given) == once, "a task reads what the connector has read"
    entry = PluginRegistry.discover().find(PluginKind.CONNECTOR, config["connector.class"])
    assert entry.class_name == f"connectors.objects.{kind}SinkConnector"


def test_the_keys_of_aiven_s_sinks() -> None:
    new, old, azure = (
        S3SinkConfig.parse(AIVEN_S3),
        S3SinkConfig.parse(AIVEN_OLD),
        AzureBlobSinkConfig.parse(AIVEN_AZURE),
    )
    assert new.s3_account.role == S3Role("arn:aws:iam::1:role/writer", external_id="outside")
    assert (new.s3_bucket_name, new.s3_account.region) == ("my-bucket", "us-east-1")
    assert new.template.text == "{{topic}}-{{partition}}-{{start_offset}}.gz"
    assert new.rotation_rules().records == 5000
    assert new.rotates_on_commit(has_output_type=new.has_output_type)
    assert (old.s3_account.key, old.s3_account.region, old.compression) == ("k", "eu-west-1", "gzip")
    assert old.format_output_fields == ("key", "offset", "timestamp", "value")
    (place,) = old.template.places("t", 3, [1_700_000_000_000], [None], None)
    assert old.template.path(place, 7) == "logs/2023-11-14/t-3-7.gz"
    assert (azure.account.name, azure.azblob_container_name) == ("acc", "container")
    assert azure.format_output_type == "csv"


def test_what_objects_are_given() -> None:
    more = {
        "s3.ssea.name": "aws:kms",
        "s3.sse.kms.key.id": "key",
        "s3.acl.canned": "bucket-owner-full-control",
        "s3.object.tagging": "true",
        "s3.object.tagging.key.value.pairs": "team:data,cost : 7",
        "s3.object.behavior.on.tagging.error": "fail",
        "s3.proxy.url": "http://proxy:8080",
        "s3.proxy.user": "me",
        "s3.proxy.password": "p@ss",
    }
    config = S3SinkConfig.parse({**S3_TUTORIAL, **more})
    settings = config.upload_settings("x")
    assert settings.s3 == S3Attributes("bucket-owner-full-control", "aws:kms", "key")
    assert settings.on_tagging_error == "fail"
    assert config.tags == {"team": "data", "cost": "7"}
    assert config.s3_account.proxy == "http://me:p%40ss@proxy:8080"
    assert "p@ss" not in repr(config)
    assert "p%40ss" not in repr(config.s3_account)


@pytest.mark.parametrize(
    ("config_class", "config", "changes", "key", "told"),
    [
        (S3SinkConfig, S3_TUTORIAL, {"flush.size": ""}, "flush.size", "rotate.schedule.interval.ms"),
        (S3SinkConfig, S3_TUTORIAL, {"format.class": ""}, "format.class", "JsonFormat"),
        (S3SinkConfig, S3_TUTORIAL, {"format.class": "com.example.Own"}, "format.class", "AvroFormat, JsonFormat"),
        (
            S3SinkConfig,
            S3_TUTORIAL,
            {"s3.credentials.provider.class": "com.example.Own"},
            "s3.credentials.provider.class",
            "role",
        ),
        (S3SinkConfig, S3_TUTORIAL, {"hive.integration": "true"}, "hive.integration", "engine=spark"),
        (S3SinkConfig, S3_TUTORIAL, {"partitioner.class": "com.example.Own"}, "partitioner.class", "HourlyPartitioner"),
        (
            S3SinkConfig,
            S3_TUTORIAL,
            {"behavior.on.null.values": "write"},
            "behavior.on.null.values",
            "store.kafka.keys",
        ),
        (S3SinkConfig, S3_TUTORIAL, {"store.url": "http://user:secret@minio"}, "store.url", "must not contain a user"),
        (S3SinkConfig, AIVEN_S3, {"file.name.template": "{{topic}}"}, "file.name.template", "groups records by topic"),
        (S3SinkConfig, AIVEN_S3, {"file.name.template": "{{key}}"}, "file.max.records", "set 1"),
        (S3SinkConfig, AIVEN_S3, {"format.output.envelope": "false"}, "format.output.envelope", "envelope"),
        (GcsSinkConfig, GCS, {"gcs.credentials.path": "/no"}, "gcs.credentials.path", "/no"),
        (AzureBlobSinkConfig, AZURE, {"azblob.account.key": "%%"}, "azblob.account.key", "base64"),
        (AzureBlobSinkConfig, AZURE, {"azblob.account.name": ""}, "azblob.account.name", "storage account"),
        (
            FolderSinkConfig,
            {"format.class": "JsonFormat", "flush.size": "1"},
            {"store.url": "s3://b"},
            "store.url",
            "S3Sink",
        ),
    ],
)
def test_a_mistake_says_what_to_do(
    config_class: type[ObjectSinkConfig], config: Mapping[str, str], changes: Mapping[str, str], key: str, told: str
) -> None:
    given = {name: value for name, value in {**config, **changes}.items() if value}
    found = errors(config_class, given)
    assert told in found[key][0]
    assert "secret" not in str(found)
    with pytest.raises((ConfigError, InvalidConfigError), match=key.replace(".", r"\.")):
        config_class.parse(given)


def test_keys_without_effect_are_warned_about() -> None:
    config = S3SinkConfig.parse(
        {**S3_TUTORIAL, "s3.elastic.buffer.enable": "true", "enable.conditional.writes": "true"}
    )
    (warning,) = config.warnings()
    assert warning.startswith("The key s3.elastic.buffer.enable has no effect")
