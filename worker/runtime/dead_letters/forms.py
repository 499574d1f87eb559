"""The key and value of a dead letter as editable text, and back: exactly, or not at all (invariant I5)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

import orjson

from connect.converter import Converter
from connect.errors import DataError
from connect.internals.chain.converters import converter_plugin
from connect.internals.chain.specs import VERSION
from connect.internals.plugins import PluginKind
from worker.errors import BadRequestError
from worker.runtime.assembly import Assembly

__all__ = ["Form", "PartForms", "bytes_of", "header_form", "text_of"]

Form: TypeAlias = Mapping[str, str]
"""A part of a record as text: one member, named ``text``, ``json``, ``base64`` or ``hex`` by its encoding."""

_SPACES: Final = "\t\n"
_HEADER: Final = 5
"""The length of the header of a value whose schema is in a registry: a zero byte and the id of the schema."""
_AS_JSON: Final = {
    "converter": "JsonConverter",
    "converter.decimal.format": "NUMERIC",
    "converter.replace.null.with.default": "false",
}


def text_of(data: bytes) -> str | None:
    """Bytes as text; ``None`` if an editor would not return the same bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    # Editors and browsers change line ends, and drop invisible characters.
    return text if all(letter.isprintable() or letter in _SPACES for letter in text) else None


def bytes_of(form: Form, what: str) -> bytes:
    """Return the bytes of a form other than ``json``. Raises a :class:`BadRequestError` that names the part."""
    ((kind, text),) = form.items()
    try:
        match kind:
            case "text":
                return text.encode()
            case "base64":
                return base64.b64decode(text, validate=True)
            case "hex":
                return bytes.fromhex(text)
    except (binascii.Error, ValueError) as error:
        raise BadRequestError(f"{what}: this is not valid {kind}: {error}.") from error
    raise BadRequestError(f"{what} cannot be given as {kind}; give it as text, base64 or hex.")


def header_form(data: bytes | None) -> dict[str, str] | None:
    """Return the value of a header as text, or as base64 if it is not text."""
    if data is None:
        return None
    text = text_of(data)
    return {"base64": base64.b64encode(data).decode()} if text is None else {"text": text}


class PartForms:
    """The forms of the keys or values (``role``) of a connector's records; JSON comes from its converter.

    It registers nothing at a schema registry: JSON is only possible with a schema that is registered.
    """

    def __init__(self, assembly: Assembly, role: str) -> None:
        self._assembly = assembly
        self._role = role

    def document(self, topic: str, data: bytes | None) -> dict[str, str | None] | None:
        """Return all forms of a part of a record; ``no_json`` says why it has no JSON."""
        if data is None:
            return None
        found: dict[str, str | None] = {"text": text_of(data), "base64": base64.b64encode(data).decode()}
        try:
            return {**found, "json": self.as_json(topic, data), "no_json": None}
        except Exception as error:
            return {**found, "json": None, "no_json": str(error) or type(error).__name__}

    def as_json(self, topic: str, data: bytes) -> str:
        """Return the part as JSON. Raises an error if the converter does not return the same bytes for it."""
        _, text = self._read(topic, data)
        if self._written(topic, data, text) != data:
            raise DataError("its converter would write other bytes even if nothing were changed")
        return text

    def encoded(self, topic: str, data: bytes | None, form: Form) -> bytes:
        """Return the bytes of a form. JSON is written with the schema of the current ``data``."""
        if form.keys() != {"json"}:
            return bytes_of(form, self._role)
        if data is None:
            raise BadRequestError(f"{self._role}: it is null now, so no schema is known for JSON. Give it as text.")
        try:
            self.as_json(topic, data)
            return self._written(topic, data, form["json"])
        except BadRequestError:
            raise
        except Exception as error:
            raise BadRequestError(f"{self._role} cannot be written as JSON: {error}.") from error

    def _read(self, topic: str, data: bytes) -> tuple[bytes, str]:
        """Return the header of a value and its payload."""
        own, payload, enveloped = self._converters(data)
        schema, value = own.to_connect(topic, data)
        if schema is None:
            raise DataError("it has no schema")
        text = payload.from_connect(topic, schema, value) or b"null"
        whole = enveloped.from_connect(topic, schema, value) or b""
        return whole.removesuffix(text + b"}"), text.decode()

    def _written(self, topic: str, data: bytes, text: str) -> bytes:
        own, payload, enveloped = self._converters(data)
        start, _ = self._read(topic, data)
        _check_json(text, self._role)
        schema, value = enveloped.to_connect(topic, start + text.encode() + b"}")
        seen = (payload.from_connect(topic, schema, value) or b"null").decode()
        # The JSON converter is as lenient as Kafka Connect's: JSON that it would interpret differently is refused here.
        if not _are_same(text, seen):
            raise BadRequestError(
                f"{self._role}: by its schema this JSON would be taken for {seen}. Write each field, with a value of "
                "its type."
            )
        written = own.from_connect(topic, schema, value)
        if written is None:
            raise DataError("its converter writes null")
        return written

    def _converters(self, data: bytes) -> tuple[Converter[Any], Converter[Any], Converter[Any]]:
        """Return the connector's converter, and JSON converters without and with schemas."""
        registry, role, props = self._assembly.registry, self._role, self._assembly.effective_props()
        key = f"{role}.converter"
        plugin = registry.load(PluginKind.CONVERTER, props[key], props.get(f"{key}.{VERSION}"))
        keys = {definition.name for definition in plugin.config_class.definitions()}
        fixed = {f"{key}.{name}": value for name, value in _as_it_is(data).items() if name in keys}
        as_json = {f"{role}.{name}": value for name, value in _AS_JSON.items()}
        return (
            converter_plugin(registry, {**props, **fixed}, role),
            converter_plugin(registry, {**as_json, f"{key}.schemas.enable": "false"}, role),
            converter_plugin(registry, {**as_json, f"{key}.schemas.enable": "true"}, role),
        )


def _as_it_is(data: bytes) -> dict[str, str]:
    """Return the settings that make a registry converter write with the schema of ``data``, and register none."""
    own = {"use.schema.id": str(int.from_bytes(data[1:_HEADER]))} if data[:1] == b"\0" and len(data) > _HEADER else {}
    return {"auto.register.schemas": "false", "use.latest.version": "false", **own}


def _check_json(text: str, role: str) -> None:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"{role}: this is not valid JSON: {error}.") from error


def _are_same(first: str, second: str) -> bool:
    """Return whether two JSON texts are equal, including all digits of numbers."""
    try:
        return _is_same(*(json.loads(text, parse_float=Decimal, parse_int=Decimal) for text in (first, second)))
    except (RecursionError, InvalidOperation):
        return False


def _is_same(first: Any, second: Any) -> bool:
    match first, second:
        case dict(), dict():
            return first.keys() == second.keys() and all(_is_same(first[key], second[key]) for key in first)
        case list(), list():
            return len(first) == len(second) and all(map(_is_same, first, second))
    # True equals 1 in Python, but not in JSON.
    return type(first) is type(second) and bool(first == second)
