"""The key and value of a dead letter as text that people can edit, and back: exactly, or not at all (invariant I5)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

import orjson

from connect.chain.converters import converter_plugin
from connect.chain.specs import VERSION
from connect.converter import Converter
from connect.errors import DataError
from connect.plugins import PluginKind
from worker.errors import BadRequestError
from worker.runtime.assembly import Assembly

__all__ = ["Form", "PartForms", "bytes_of", "header_form", "text_of"]

Form: TypeAlias = Mapping[str, str]
"""A part of a record as text: one member, named ``text``, ``json``, ``base64`` or ``hex`` by how it is written."""

_SPACES: Final = "\t\n"
_HEADER: Final = 5
"""What stands before a value whose schema is in a registry: a zero, and the number of the schema."""
_AS_JSON: Final = {
    "converter": "JsonConverter",
    "converter.decimal.format": "NUMERIC",
    "converter.replace.null.with.default": "false",
}


def text_of(data: bytes) -> str | None:
    """Bytes as the text that they are; ``None`` if an editor would not give back the same."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    # Editors and browsers make one line end of another, and leave out what cannot be seen.
    return text if all(letter.isprintable() or letter in _SPACES for letter in text) else None


def bytes_of(form: Form, what: str) -> bytes:
    """The bytes that a form other than ``json`` stands for. Raises :class:`BadRequestError` that names the part."""
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
        raise BadRequestError(f"{what}: this is not {kind}: {error}.") from error
    raise BadRequestError(f"{what} cannot be given as {kind}; give it as text, base64 or hex.")


def header_form(data: bytes | None) -> dict[str, str] | None:
    """The value of a header as text, or in base64 where it is none."""
    if data is None:
        return None
    text = text_of(data)
    return {"base64": base64.b64encode(data).decode()} if text is None else {"text": text}


class PartForms:
    """The forms of the keys or of the values (``role``) of a connector's records; the JSON is by its converter.

    Nothing is registered at a schema registry: a value is written with a schema that is there, or not as JSON.
    """

    def __init__(self, assembly: Assembly, role: str) -> None:
        self._assembly = assembly
        self._role = role

    def document(self, topic: str, data: bytes | None) -> dict[str, str | None] | None:
        """Every form that a part of a record has; ``no_json`` tells why it has not that one."""
        if data is None:
            return None
        found: dict[str, str | None] = {"text": text_of(data), "base64": base64.b64encode(data).decode()}
        try:
            return {**found, "json": self.as_json(topic, data), "no_json": None}
        except Exception as error:
            return {**found, "json": None, "no_json": str(error) or type(error).__name__}

    def as_json(self, topic: str, data: bytes) -> str:
        """The part as JSON. Raises an error if its converter does not give back the same bytes for it."""
        _, text = self._read(topic, data)
        if self._written(topic, data, text) != data:
            raise DataError("its converter would write other bytes even if nothing were changed")
        return text

    def encoded(self, topic: str, data: bytes | None, form: Form) -> bytes:
        """What a form stands for. JSON is written with the schema of the present ``data``."""
        if form.keys() != {"json"}:
            return bytes_of(form, self._role)
        if data is None:
            raise BadRequestError(
                f"{self._role}: it is null now, so that no schema is known for JSON. Give it as text."
            )
        try:
            self.as_json(topic, data)
            return self._written(topic, data, form["json"])
        except BadRequestError:
            raise
        except Exception as error:
            raise BadRequestError(f"{self._role} cannot be written as JSON: {error}.") from error

    def _read(self, topic: str, data: bytes) -> tuple[bytes, str]:
        """What stands before the payload in the envelope of a value, and the payload."""
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
        # Reading JSON is as lenient as Kafka Connect's: what it would take for something else is refused here.
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
        """The connector's own, and those of its values as JSON, without and with their schema."""
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
    """What has a converter with a schema registry write with the schema that ``data`` has, and register none."""
    own = {"use.schema.id": str(int.from_bytes(data[1:_HEADER]))} if data[:1] == b"\0" and len(data) > _HEADER else {}
    return {"auto.register.schemas": "false", "use.latest.version": "false", **own}


def _check_json(text: str, role: str) -> None:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"{role}: this is not JSON: {error}.") from error


def _are_same(first: str, second: str) -> bool:
    """Whether two texts of JSON say the same; no digit of a number is left out of account."""
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
    # True is 1 in Python, and not in JSON.
    return type(first) is type(second) and bool(first == second)
