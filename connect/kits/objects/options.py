"""The options that say how a service for objects is reached, and who signs in there, with the key of an account."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from connect.config import LOW, MEDIUM, Password, matches, option
from connect.config.errors import ConfigRuleError
from connect.config.url import shown_url
from connect.errors import ConfigError
from connect.hosts import HostDeniedError, HostsConfig
from connect.internals.extras import missing_extra
from connect.kits.objects.azure_account import AzureAccount, account_of_connection_string, checked_account_key
from connect.kits.objects.gcs import GoogleAccount
from connect.kits.objects.location import Location
from connect.kits.objects.s3 import S3Account

__all__ = ["AzureOptions", "GcsOptions", "ObjectOptions", "S3Options", "parse_google_key", "read_google_key"]

_STORE = "Store"


class S3Options(HostsConfig):
    """The options of S3, under the names of Confluent's S3 sink."""

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

    @property
    def endpoint(self) -> str | None:
        """The URL of the S3-compatible service, if it is not Amazon's."""
        return self.s3_endpoint

    @property
    def s3_account(self) -> S3Account:
        """The account for the bucket."""
        secret = self.aws_secret_access_key
        return S3Account(
            self.s3_region,
            self.endpoint,
            self.s3_path_style_access_enabled,
            self.aws_access_key_id,
            None if secret is None else secret.value,
        )

    def s3_mistakes(self) -> Iterable[ConfigError]:
        """Yield an error for each violated rule about these options."""
        if (self.aws_access_key_id is None) != (self.aws_secret_access_key is None):
            missing = "aws.access.key.id" if self.aws_access_key_id is None else "aws.secret.access.key"
            yield ConfigError(
                missing, None, "aws.access.key.id and aws.secret.access.key belong together: set both or neither."
            )


class GcsOptions(HostsConfig):
    """The options of Google Cloud Storage, under the names of Confluent's GCS sink."""

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

    @property
    def google_key(self) -> Mapping[str, Any] | None:
        """The key for Google Cloud Storage, if given; raises :class:`~connect.errors.ConfigError` if it is
        not a key.
        """
        if self.gcs_credentials_json is not None:
            return parse_google_key(self.gcs_credentials_json.value, "gcs.credentials.json")
        return None if self.gcs_credentials_path is None else read_google_key(self.gcs_credentials_path)

    @property
    def google_account(self) -> GoogleAccount:
        """The account for the bucket."""
        key = self.google_key
        return GoogleAccount(self.gcs_endpoint, None if key is None else json.dumps(key))

    def google_mistakes(self, place_key: str = "store.url") -> Iterable[ConfigError]:
        """Yield an error for each violated rule about a store there, which ``place_key`` names."""
        if reason := missing_extra("gcs", "google.cloud.storage"):
            yield ConfigRuleError(f"A store in Google Cloud Storage cannot be reached from here. {reason}", place_key)
        if self.gcs_credentials_json is not None and self.gcs_credentials_path is not None:
            message = "gcs.credentials.json is the key as well: give one of the two."
            yield ConfigError("gcs.credentials.path", self.gcs_credentials_path, message)
        try:
            _ = self.google_key
        except ConfigError as error:
            yield error


class AzureOptions(HostsConfig):
    """The options of Azure Blob Storage, under the names of Confluent's Azure Blob sink."""

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

    def azure_account_of(self, place: Location) -> AzureAccount:
        """Return the account that has a place; raises :class:`~connect.errors.ConfigError` if its keys cannot
        be used.
        """
        name, _, domain = place.authority.partition("@")[2].partition(".dfs.")
        endpoint = (self.azblob_endpoint or f"https://{name}.blob.{domain}").rstrip("/")
        if self.azblob_connection_string is not None:
            return account_of_connection_string(self.azblob_connection_string.value, name, endpoint)
        if self.azblob_account_key is not None:
            return AzureAccount(name, endpoint, checked_account_key(self.azblob_account_key.value))
        token = self.azblob_sas_token
        return AzureAccount(name, endpoint, token=None if token is None else token.value.lstrip("?"))

    def azure_mistakes(self, place: Location, url: str | None, place_key: str = "store.url") -> Iterable[ConfigError]:
        """Yield an error for each violated rule about a store there, which ``place_key`` names."""
        if reason := missing_extra("azure", "azure.storage.blob", "azure.identity"):
            yield ConfigRuleError(f"A store in Azure cannot be reached from here. {reason}", place_key)
        given = [key for key, value in self._azure_keys().items() if value is not None]
        for key in given[1:]:
            yield ConfigError(key, None, f"{given[0]} signs requests as well: give one of the two.")
        if self.azblob_connection_string is not None and self.azblob_endpoint is not None:
            message = "azblob.connection.string has it as BlobEndpoint: give one of the two."
            yield ConfigError("azblob.endpoint", self.azblob_endpoint, message)
        try:
            account = self.azure_account_of(place)
        except ConfigError as error:
            yield error
            return
        if place.secure and not account.endpoint.startswith("https:"):
            message = f"abfss: is reached by https: alone, and {account.endpoint} is not: write abfs: in its place."
            yield ConfigError(place_key, url, message)
        if account.key is None and account.token is None and not account.endpoint.startswith("https:"):
            message = "An identity is only sent to an https: URL: set a key (azblob.account.key) or a token instead."
            yield ConfigError("azblob.endpoint", self.azblob_endpoint, message)

    def _azure_keys(self) -> Mapping[str, Password | None]:
        return {
            "azblob.connection.string": self.azblob_connection_string,
            "azblob.account.key": self.azblob_account_key,
            "azblob.sas.token": self.azblob_sas_token,
        }


class ObjectOptions(AzureOptions, GcsOptions, S3Options):
    """The options of all services."""

    def object_mistakes(self, place: Location, url: str | None, place_key: str = "store.url") -> Iterable[ConfigError]:
        """Yield an error for each violated rule about these options, for a place that ``place_key`` names."""
        for key, endpoint in self._endpoints().items():
            if endpoint is not None and "@" in endpoint:
                # The option's own rule accepts it, because its error would reveal the key.
                message = "It must not contain a user or a key: give them by their keys."
                yield ConfigError(key, shown_url(endpoint), message)
            elif endpoint is not None:
                yield from self.host_mistakes(key, endpoint)
        if place.kind == "s3" and (reason := missing_extra("s3", "boto3")):
            yield ConfigRuleError(f"The store in S3 cannot be reached. {reason}", place_key)
        if place.kind == "gcs":
            yield from self.google_mistakes(place_key)
        if place.kind == "azure":
            yield from self.azure_mistakes(place, url, place_key)
        yield from self.s3_mistakes()

    def host_mistakes(self, key: str, url: str) -> Iterable[ConfigError]:
        """Yield an error if the host of a URL may not be reached."""
        try:
            self.host_rules.check_name(urlsplit(url).hostname or "")
        except HostDeniedError as error:
            yield ConfigRuleError(f"{key}: {error}", key)
        except ValueError:
            yield ConfigError(key, shown_url(url), "It is not a URL: give one such as http://minio:9000.")

    def _endpoints(self) -> Mapping[str, str | None]:
        return {
            "s3.endpoint": self.s3_endpoint,
            "gcs.endpoint": self.gcs_endpoint,
            "azblob.endpoint": self.azblob_endpoint,
        }


_NEEDED: Final = ("client_email", "private_key", "private_key_id", "token_uri")
_PATH: Final = "gcs.credentials.path"


def read_google_key(path: str) -> Mapping[str, Any]:
    """Read the key in a file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            _PATH, path, f"It cannot be read ({error}): name the JSON file of a service account."
        ) from None
    return parse_google_key(text, _PATH)


def parse_google_key(text: str, option: str) -> Mapping[str, Any]:
    """Parse a key; errors name the option it came from, and reveal nothing of it."""
    try:
        key = json.loads(text)
    except ValueError:
        # The reason quotes the text it does not understand, so it is not chained.
        raise ConfigError(option, None, "This is not JSON: use the file that Google created for the account.") from None
    if not isinstance(key, dict) or key.get("type") != "service_account":
        raise ConfigError(
            option,
            None,
            "This is not the key of a service account. To sign in any other way, leave the key out: "
            "credentials are then looked up where Google's clients do.",
        )
    missing = [name for name in _NEEDED if not isinstance(key.get(name), str)]
    if missing:
        raise ConfigError(option, None, f"The key lacks {', '.join(missing)}: download it again.")
    return key
