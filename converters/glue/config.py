"""The options of the converter for AWS Glue's schema registry, under the names of Amazon's converter."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from connect.config import HIGH, LOW, MEDIUM, Password, at_least, invalid_value, matches, option, validator
from connect.errors import ConfigError
from connect.hosts import HostDeniedError, HostsConfig
from connect.kits.avro.config import AvroDataConfig
from connect.kits.objects.s3 import S3Account, S3Role
from converters.universal import ConverterConfig

__all__ = ["Compatibility", "Compression", "GlueAvroConverterConfig"]

_DEFAULT_NAMING: Final = "AWSSchemaNamingStrategyDefaultImpl"
_NAMING_PACKAGE: Final = "com.amazonaws.services.schemaregistry.common"


class Compression(StrEnum):
    """The values of ``compression``."""

    NONE = "NONE"
    ZLIB = "ZLIB"


class Compatibility(StrEnum):
    """The values of ``compatibility``: what Glue checks when a version is added to a schema."""

    NONE = "NONE"
    DISABLED = "DISABLED"
    BACKWARD = "BACKWARD"
    BACKWARD_ALL = "BACKWARD_ALL"
    FORWARD = "FORWARD"
    FORWARD_ALL = "FORWARD_ALL"
    FULL = "FULL"
    FULL_ALL = "FULL_ALL"


@validator(f"{_DEFAULT_NAMING}, which names schemas after topics")
def _naming(key: str, value: str) -> None:
    package, _, simple = value.rpartition(".")
    if simple != _DEFAULT_NAMING or package not in ("", _NAMING_PACKAGE):
        raise invalid_value(key, value, "classes of your own are not supported: set schemaName, or leave it out")


@validator("nothing: other formats on the topic are not read")
def _unsupported(key: str, value: str) -> None:
    raise invalid_value(key, value, "other formats on the topic are not read: give them a converter of their own")


class GlueAvroConverterConfig(ConverterConfig, AvroDataConfig, HostsConfig):
    """The options of the converter for AWS Glue's schema registry."""

    region: str = option(importance=HIGH, doc="The region of the registry, such as eu-central-1.")
    endpoint: str | None = option(
        default=None,
        importance=MEDIUM,
        validator=matches(r"https?://([^/]+/?|.*@.*)", "URL such as https://glue.internal:443"),
        doc="The URL of the service, if it is not Amazon's for the region.",
    )
    registry_name: str = option(
        default="default-registry", importance=MEDIUM, doc="The registry in which schemas are found and registered."
    )
    schema_name: str | None = option(
        name="schemaName",
        default=None,
        importance=MEDIUM,
        doc="The name of the schema in the registry. By default it is the name of the topic.",
    )
    schema_name_generation_class: str | None = option(
        name="schemaNameGenerationClass",
        default=None,
        importance=LOW,
        validator=_naming,
        doc="The strategy that names schemas: only the default one, by topics.",
    )
    schema_auto_registration_enabled: bool = option(
        name="schemaAutoRegistrationEnabled",
        default=False,
        importance=MEDIUM,
        doc="Whether schemas are registered when they are first used. Otherwise they must be registered already.",
    )
    compatibility: Compatibility = option(
        default=Compatibility.BACKWARD,
        importance=MEDIUM,
        ignore_case=True,
        doc="The compatibility that Glue keeps between the versions of schemas that the converter creates.",
    )
    description: str | None = option(
        default=None, importance=LOW, doc="The description of schemas that the converter creates."
    )
    compression: Compression = option(
        default=Compression.NONE,
        importance=MEDIUM,
        ignore_case=True,
        doc="Whether what is written is compressed: NONE or ZLIB. Both are read.",
    )
    cache_size: int = option(
        name="cacheSize",
        default=200,
        importance=LOW,
        validator=at_least(1),
        doc="How many schemas of the registry to cache in each direction.",
    )
    time_to_live_millis: int = option(
        name="timeToLiveMillis",
        default=86_400_000,
        importance=LOW,
        doc="Has no effect: a version of a schema never changes, so it is kept as long as the cache has room.",
    )
    avro_record_type: str | None = option(
        name="avroRecordType",
        default=None,
        importance=LOW,
        doc="Has no effect: it chooses between classes of Java.",
    )
    secondary_deserializer: str | None = option(
        name="secondaryDeserializer",
        default=None,
        importance=LOW,
        validator=_unsupported,
        doc="Not supported: the class that reads messages of other formats.",
    )
    assume_role_arn: str | None = option(
        name="assumeRoleArn", default=None, importance=MEDIUM, doc="The role with which the registry is reached."
    )
    assume_role_session_name: str = option(
        name="assumeRoleSessionName",
        default="kafka-connect-session",
        importance=LOW,
        doc="The name of the session of that role.",
    )
    aws_access_key_id: str | None = option(
        default=None,
        importance=MEDIUM,
        doc="The access key. Without it, credentials are looked up where Amazon's clients do: environment, profile, "
        "the role of the machine or container.",
    )
    aws_secret_access_key: Password | None = option(
        default=None, importance=MEDIUM, doc="The secret that belongs to aws.access.key.id."
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield the mistakes in how the options go together, and an endpoint that the worker forbids."""
        yield from super().check()
        if (self.aws_access_key_id is None) != (self.aws_secret_access_key is None):
            missing = "aws.access.key.id" if self.aws_access_key_id is None else "aws.secret.access.key"
            yield ConfigError(missing, None, "aws.access.key.id and aws.secret.access.key belong together")
        if self.endpoint is not None:
            try:
                self.host_rules.check_name(urlsplit(self.endpoint).hostname or "")
            except HostDeniedError as error:
                yield ConfigError("endpoint", self.endpoint, str(error))

    @property
    def account(self) -> S3Account:
        """The account for the registry."""
        secret = self.aws_secret_access_key
        role = None
        if self.assume_role_arn:
            role = S3Role(self.assume_role_arn, self.assume_role_session_name)
        return S3Account(
            self.region,
            self.endpoint,
            key=self.aws_access_key_id,
            secret=None if secret is None else secret.value,
            role=role,
        )
