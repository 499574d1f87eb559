"""Schemas in the responses of a registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from connect.errors import ConnectError

__all__ = ["RegisteredSchema", "SchemaReference", "registered_schema", "request_body", "whole_member"]


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A reference to a schema that another one uses by ``name``."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as the registry stores it.

    ``version`` is ``None`` if the schema was fetched by its id or its GUID; in the latter case ``id`` is 0 if unknown.
    """

    id: int
    text: str
    kind: str = "AVRO"
    references: tuple[SchemaReference, ...] = ()
    version: int | None = None
    guid: str | None = None
    """The id that the schema has in every registry, if this one tells it."""


def request_body(text: str, kind: str, references: tuple[SchemaReference, ...]) -> dict[str, Any]:
    """Return the JSON with which a registry is asked for a schema."""
    body: dict[str, Any] = {"schema": text}
    if kind != "AVRO":
        body["schemaType"] = kind
    if references:
        body["references"] = [
            {"name": each.name, "subject": each.subject, "version": each.version} for each in references
        ]
    return body


def registered_schema(answer: Any) -> RegisteredSchema:
    """Return the schema in the JSON of a response. Raises :class:`~connect.errors.ConnectError` if it contains none."""
    text = answer.get("schema") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        raise ConnectError("The schema registry answered without a schema.")
    try:
        references = tuple(
            SchemaReference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in answer.get("references") or ()
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ConnectError(
            "The schema registry answered with references that lack a name, subject or version."
        ) from error
    version = answer.get("version")
    kind = str(answer.get("schemaType") or "AVRO")
    guid = answer.get("guid")
    return RegisteredSchema(
        whole_member(answer, "id"),
        text,
        kind,
        references,
        version if isinstance(version, int) else None,
        guid if isinstance(guid, str) else None,
    )


def whole_member(answer: Any, member: str) -> int:
    """Return an integer in the JSON of a response.

    Raises :class:`~connect.errors.ConnectError` if it is missing or exceeds 32 bits.
    """
    number = answer.get(member) if isinstance(answer, dict) else None
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**31:
        raise ConnectError(f"The schema registry answered without the {member} of the schema.")
    return number
