"""What the keys of a store mean, and how Spark gets to know it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect.errors import ConfigError
from connect.internals.jvm.lock import read_lock
from connect.kits.objects.azure_account import AzureAccount
from connect.kits.objects.location import Location
from connectors.spark.options.store import StoreOptions
from connectors.spark.sink.config import SparkSinkConfig
from connectors.spark.stores.access import Access, store_access

AZURE = "abfss://lake@account.dfs.core.windows.net/a"
KEYS = {"aws.access.key.id": "id", "aws.secret.access.key": "hush"}


def options(**props: str) -> StoreOptions:
    return StoreOptions.parse({key.replace("_", "."): value for key, value in props.items()})


def test_the_keys_of_the_s3_sink_name_a_store() -> None:
    bucket = options(**{"s3.bucket.name": "lake"})
    assert (bucket.location, bucket.endpoint) == (Location("s3", "", "lake"), None)
    minio = options(store_url="http://minio:9000", **{"s3.bucket.name": "lake"})
    assert (minio.location, minio.endpoint) == (Location("s3", "", "lake"), "http://minio:9000")
    both = options(store_url="s3://lake/a", **{"s3.bucket.name": "lake"})
    assert both.location == Location("s3", "a", "lake")


@pytest.mark.parametrize(
    ("props", "reason"),
    [
        ({}, "It must name the location of the tables"),
        ({"store.url": "gs:///a"}, "has no bucket: write gs"),
        ({"store.url": "gs://lake", "gcs.credentials.json": "hush"}, "This is not JSON"),
        ({"store.url": "gs://lake", "gcs.credentials.json": '{"type": "hush"}'}, "not the key of a service account"),
        (
            {"store.url": "gs://lake", "gcs.credentials.json": '{"type": "service_account"}'},
            "lacks client_email",
        ),
        ({"store.url": "gs://lake", "gcs.credentials.path": "/none/key"}, "cannot be read"),
        ({"store.url": "gs://lake", "gcs.credentials.path": "/k", "gcs.credentials.json": "{}"}, "give one of the two"),
        ({"store.url": "abfs://container/x"}, "Write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"),
        ({"store.url": "abfss://lake@account/x"}, "Write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"),
        ({"store.url": "abfss://lake:hush@account.dfs.core.windows.net/x"}, "must not contain a user or a key"),
        ({"store.url": "wasbs://lake@account.blob.core.windows.net/x"}, "must not contain a user"),
        ({"store.url": "adl://lake/x"}, "an old way to Azure: write abfss"),
        ({"store.url": AZURE, "azblob.account.key": "hush!"}, "This is not an account key"),
        ({"store.url": AZURE, "azblob.connection.string": "hush"}, "This is not a connection string"),
        (
            {"store.url": AZURE, "azblob.connection.string": "AccountName=account"},
            "It needs exactly one of AccountKey and",
        ),
        (
            {"store.url": AZURE, "azblob.connection.string": "AccountName=b;AccountKey=aHVzaA=="},
            "It belongs to account b,",
        ),
        ({"store.url": AZURE, "azblob.account.key": "aHVzaA==", "azblob.sas.token": "sig=hush"}, "give one of the two"),
        (
            {
                "store.url": AZURE,
                "azblob.connection.string": "AccountName=account;AccountKey=aHVzaA==",
                "azblob.endpoint": "http://localhost/account",
            },
            "has it as BlobEndpoint",
        ),
        ({"store.url": AZURE.replace("ss:", "s:"), "azblob.endpoint": "http://localhost/a"}, "only sent to an https:"),
        (
            {"store.url": AZURE, "azblob.sas.token": "sig=hush", "azblob.endpoint": "http://localhost/account"},
            "reached by https: alone",
        ),
        ({"store.url": AZURE, "azblob.endpoint": "https://id:hush@host/account"}, "must not contain a user or a key"),
        ({"store.url": "gs://lake", "gcs.endpoint": "https://id:hush@host"}, "must not contain a user or a key"),
        ({"store.url": "s3://lake", "s3.endpoint": "https://id:hu/sh@host"}, "must not contain a user or a key"),
        ({"store.url": "s3://lake", "s3.endpoint": "https://host/a"}, "URL such as"),
        ({"store.url": "s3://id:hush@lake/a"}, "must not contain a user or a key"),
        ({"store.url": "s3:///a"}, "has no bucket"),
        ({"store.url": "s3://lake/a", "s3.bucket.name": "other"}, "is another bucket"),
        ({"store.url": "http://minio:9000"}, "needs s3.bucket.name"),
        ({"store.url": "ftp://host/a"}, "Use a path"),
        ({"store.url": "s3://lake", "aws.access.key.id": "id"}, "set both or neither"),
        ({"store.url": "s3://lake", "s3.endpoint": "minio:9000"}, "http"),
        ({"store.url": "s3://lake", "s3.part.size": "1"}, "5242880"),
    ],
)
def test_what_names_no_store_is_refused(props: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        SparkSinkConfig.parse(props)
    assert "hush" not in str(caught.value)


def test_a_folder_needs_nothing_of_spark_and_hdfs_its_configuration() -> None:
    assert store_access(options(store_url="/lake")) == Access()
    hdfs = options(store_url="hdfs://nodes/lake", hadoop_conf_dir="/etc/hadoop")
    assert store_access(hdfs) == Access(hadoop_conf_dir="/etc/hadoop")


def test_spark_reaches_s3_as_the_driver_does() -> None:
    keys = {"s3.endpoint": "http://minio:9000", "s3.region": "eu-central-1", **KEYS}
    access = store_access(options(store_url="s3://lake/a", **keys))
    expected = {
        "fs.s3a.endpoint": "http://minio:9000",
        "fs.s3a.endpoint.region": "eu-central-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.multipart.size": "26214400",
        "fs.s3a.access.key": "id",
        "fs.s3a.secret.key": "hush",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    assert expected.items() <= access.settings.items()
    assert "hush" not in repr(access)
    amazon = store_access(options(store_url="s3://lake/a"))
    assert "fs.s3a.endpoint" not in amazon.settings
    assert amazon.settings["fs.s3a.aws.credentials.provider"].endswith("DefaultCredentialsProvider")


def test_the_jars_of_s3_are_pinned_and_there() -> None:
    access = store_access(options(store_url="s3://lake"))
    assert access.lock is not None
    jars = read_lock(access.lock)
    assert jars[0].coordinates == "org.apache.hadoop:hadoop-aws:3.4.2"
    assert all(isinstance(jar, Path) and jar.is_file() for jar in access.jars)


def test_spark_reaches_google_cloud_storage_as_the_driver_does(tmp_path: Path) -> None:
    key = {"client_email": "a@b", "private_key_id": "1", "private_key": "hush", "token_uri": "https://token"}
    path = tmp_path / "key.json"
    path.write_text(json.dumps({"type": "service_account", **key}))
    by_path = options(store_url="gs://lake/a", **{"gcs.credentials.path": str(path)})
    access = store_access(by_path)
    assert {
        "fs.gs.auth.service.account.email": "a@b",
        "fs.gs.auth.service.account.private.key.id": "1",
        "fs.gs.auth.service.account.private.key": "hush",
        "fs.gs.token.server.url": "https://token",
    }.items() <= access.settings.items()
    by_text = options(store_url="gs://lake/a", **{"gcs.credentials.json": path.read_text()})
    assert store_access(by_text) == access
    assert "hush" not in repr(access) + repr(by_text) + repr(by_text.google_account)
    assert [key for key in store_access(options(store_url="gs://lake")).settings if ".auth." in key] == []
    emulator = store_access(options(store_url="gs://lake", **{"gcs.endpoint": "http://localhost:4443"})).settings
    assert emulator["fs.gs.storage.root.url"] == "http://localhost:4443"
    assert emulator["fs.gs.auth.null.enable"] == "true"


def test_the_jar_of_google_cloud_storage_is_pinned() -> None:
    access = store_access(options(store_url="gs://lake"))
    assert access.lock is not None
    assert [jar.coordinates for jar in read_lock(access.lock)] == [
        "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26:shaded"
    ]


@pytest.mark.parametrize(
    ("keys", "account"),
    [
        ({}, AzureAccount("account", "https://account.blob.core.windows.net")),
        (
            {"azblob.account.key": "aHVzaA=="},
            AzureAccount("account", "https://account.blob.core.windows.net", "aHVzaA=="),
        ),
        (
            {"azblob.sas.token": "?sv=1&sig=hush", "azblob.endpoint": "http://localhost:1/account/"},
            AzureAccount("account", "http://localhost:1/account", token="sv=1&sig=hush"),
        ),
        (
            {"azblob.connection.string": "DefaultEndpointsProtocol=https;AccountName=account;AccountKey=aHVzaA==;"},
            AzureAccount("account", "https://account.blob.core.windows.net", "aHVzaA=="),
        ),
        (
            {"azblob.connection.string": "AccountName=account;AccountKey=aHVzaA==;EndpointSuffix=core.other.cn"},
            AzureAccount("account", "https://account.blob.core.other.cn", "aHVzaA=="),
        ),
        (
            {
                "azblob.connection.string": "BlobEndpoint=http://localhost:1/account/;SharedAccessSignature=sv=1&sig=hush"
            },
            AzureAccount("account", "http://localhost:1/account", token="sv=1&sig=hush"),
        ),
    ],
)
def test_the_keys_of_azure_name_an_account(keys: dict[str, str], account: AzureAccount) -> None:
    config = options(store_url=AZURE, **keys)
    assert config.azure_account == account
    shown = repr(config) + repr(account) + repr(store_access(config))
    assert "hush" not in shown and "aHVzaA==" not in shown


def test_spark_reaches_azure_as_the_driver_does() -> None:
    dfs, blob = "account.dfs.core.windows.net", "account.blob.core.windows.net"
    service = {"fs.azure.fns.account.service.type": "BLOB", "fs.azure.io.retry.max.retries": "6"}
    assert store_access(options(store_url=AZURE)).settings == service
    by_key = store_access(options(store_url=AZURE, **{"azblob.account.key": "aHVzaA=="})).settings
    assert by_key == service | {
        **dict.fromkeys((f"fs.azure.account.auth.type.{dfs}", f"fs.azure.account.auth.type.{blob}"), "SharedKey"),
        **dict.fromkeys((f"fs.azure.account.key.{dfs}", f"fs.azure.account.key.{blob}"), "aHVzaA=="),
    }
    emulator = {"azblob.sas.token": "sig=hush", "azblob.endpoint": "http://127.0.0.1:10000/account"}
    by_token = store_access(options(store_url=AZURE, **emulator)).settings
    assert by_token == service | {
        **dict.fromkeys((f"fs.azure.account.auth.type.{dfs}", f"fs.azure.account.auth.type.{blob}"), "SAS"),
        **dict.fromkeys((f"fs.azure.sas.fixed.token.{dfs}", f"fs.azure.sas.fixed.token.{blob}"), "sig=hush"),
        "fs.azure.abfs.endpoint": "127.0.0.1:10000",
        "fs.azure.account.hns.enabled": "false",
        "fs.azure.always.use.https": "false",
    }


def test_the_jars_of_azure_are_pinned() -> None:
    access = store_access(options(store_url=AZURE))
    assert access.lock is not None
    assert [jar.artifact for jar in read_lock(access.lock)] == [
        "hadoop-azure",
        "hadoop-shaded-guava",
        "wildfly-openssl",
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format.class", "OrcFormat"),
        ("partitioner.class", "DailyPartitioner"),
        ("compact.interval.ms", "60000"),
        ("schema.conflict", "rewrite"),
        ("sql", "SELECT 1 FROM records"),
    ],
)
def test_an_identity_of_azure_is_for_what_python_writes(key: str, value: str) -> None:
    java = {"spark.hadoop.fs.azure.account.auth.type": "OAuth"}
    props = {"store.url": AZURE, "locale": "en-US", "timezone": "UTC", key: value}
    with pytest.raises(ConfigError, match="Spark's Java has to write that") as caught:
        SparkSinkConfig.parse(props)
    assert key in str(caught.value)
    for more in ({"azblob.account.key": "aHVzaA=="}, java):
        assert SparkSinkConfig.parse({**props, **more}).location.kind == "azure"
    assert SparkSinkConfig.parse({"store.url": AZURE}).needs_identity


def test_delta_is_refused_in_azure() -> None:
    with pytest.raises(ConfigError, match="Delta's log in Azure is not supported"):
        SparkSinkConfig.parse({"store.url": AZURE, "azblob.account.key": "aHVzaA==", "table.format": "delta"})
