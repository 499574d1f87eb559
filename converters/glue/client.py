"""The schemas of AWS Glue's registry: found by their text or by the ids of their versions, and registered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from connect.errors import ConnectError, DataError, RetriableError
from connect.kits.objects.s3 import client_of
from converters.glue.config import GlueAvroConverterConfig

__all__ = ["GlueRegistry"]

_FORMAT: Final = "AVRO"
_CHECKS: Final = 20
_PAUSE_SECONDS: Final = 0.5
"""Glue checks the compatibility of a new version for a moment, in which its status is PENDING."""
_OF_SCHEMA: Final = frozenset(
    {"EntityNotFoundException", "InvalidInputException", "ResourceNumberLimitExceededException"}
)
_REFUSED: Final = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "UnrecognizedClientException",
    }
)
_PASSING: Final = frozenset(
    {
        "ConcurrentModificationException",
        "InternalServiceException",
        "OperationTimeoutException",
        "RequestLimitExceeded",
        "ThrottlingException",
    }
)


class GlueRegistry:
    """A registry in AWS Glue. Nothing is asked before it is needed."""

    def __init__(self, config: GlueAvroConverterConfig, pause: Callable[[float], None] = time.sleep) -> None:
        self._config = config
        self._pause = pause
        self._made: Any = None

    def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            self._made.close()

    def text(self, version: UUID) -> str:
        """Return the schema of a version; raise :class:`~connect.errors.DataError` if it is none of Avro."""
        with self._errors(f"get the schema version {version}"):
            found = self._client.get_schema_version(SchemaVersionId=str(version))
        kind = found.get("DataFormat")
        if kind != _FORMAT:
            raise DataError(
                f"The schema version {version} that the message names is for {kind}, not for Avro: use the converter "
                "with which the message was written."
            )
        text: str = found["SchemaDefinition"]
        return text

    def version(self, name: str, text: str) -> UUID:
        """Return the id of the version of a schema that has this text, registering it if that is allowed."""
        found = self._found(name, text)
        if found is None:
            if not self._config.schema_auto_registration_enabled:
                raise DataError(
                    f"The schema {name} in the registry {self._config.registry_name} has no such version: {text} "
                    "Register it, or set schemaAutoRegistrationEnabled=true."
                )
            found = self._registered(name, text)
        return self._available(name, found)

    def _found(self, name: str, text: str) -> Any:
        with self._errors(f"look for a version of the schema {name}"):
            try:
                return self._client.get_schema_by_definition(SchemaId=self._id(name), SchemaDefinition=text)
            except self._client.exceptions.EntityNotFoundException:
                return None

    def _registered(self, name: str, text: str) -> Any:
        client = self._client
        with self._errors(f"register a version of the schema {name}"):
            try:
                return client.register_schema_version(SchemaId=self._id(name), SchemaDefinition=text)
            except client.exceptions.EntityNotFoundException:
                pass
        with self._errors(f"create the schema {name}"):
            try:
                made = client.create_schema(
                    RegistryId={"RegistryName": self._config.registry_name},
                    SchemaName=name,
                    DataFormat=_FORMAT,
                    Compatibility=self._config.compatibility.value,
                    SchemaDefinition=text,
                    **({"Description": self._config.description} if self._config.description else {}),
                )
                return {"SchemaVersionId": made["SchemaVersionId"], "Status": made["SchemaVersionStatus"]}
            except client.exceptions.AlreadyExistsException:
                # Another worker was first.
                return client.register_schema_version(SchemaId=self._id(name), SchemaDefinition=text)

    def _available(self, name: str, found: Any) -> UUID:
        number, status = UUID(found["SchemaVersionId"]), found["Status"]
        for _ in range(_CHECKS):
            if status != "PENDING":
                break
            self._pause(_PAUSE_SECONDS)
            with self._errors(f"get the schema version {number}"):
                status = self._client.get_schema_version(SchemaVersionId=str(number))["Status"]
        if status == "PENDING":
            raise RetriableError(f"Glue still checks the version {number} of the schema {name}.")
        if status != "AVAILABLE":
            raise DataError(
                f"The version {number} of the schema {name} cannot be used, its status is {status}: it is not "
                "compatible with the earlier ones. Change the schema compatibly, or the compatibility of the schema."
            )
        return number

    def _id(self, name: str) -> dict[str, str]:
        return {"RegistryName": self._config.registry_name, "SchemaName": name}

    @property
    def _client(self) -> Any:
        if self._made is None:
            self._made = client_of(self._config.account, "glue")
        return self._made

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Translate the errors of requests. ``what`` completes "Cannot ..."."""
        # The client first: it says how to install its library, from which the errors are.
        _ = self._client
        from botocore import exceptions as boto  # noqa: PLC0415 - an extra

        try:
            yield
        except boto.ClientError as error:
            raise self._meaning(error, what) from error
        except (boto.HTTPClientError, boto.ConnectionError) as error:
            raise RetriableError(f"Cannot {what}: AWS Glue cannot be reached: {error}") from error
        except boto.BotoCoreError as error:
            raise ConnectError(
                f"Cannot {what}: {error} Check region, endpoint, aws.access.key.id and aws.secret.access.key."
            ) from error

    def _meaning(self, error: Any, what: str) -> Exception:
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        message = f"Cannot {what} in the registry {self._config.registry_name}: {error}"
        if code in _REFUSED or status in (401, 403):
            return ConnectError(f"{message} Check the credentials and what they permit.")
        if code in _PASSING or status in (408, 429) or status >= 500:
            return RetriableError(message)
        if code in _OF_SCHEMA:
            return DataError(message)
        return ConnectError(message)
