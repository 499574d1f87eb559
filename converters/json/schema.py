"""The schemas of envelopes, read as Kafka Connect's own converter reads them, with its words for what is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from connect.data import Schema
from connect.data.numerals import wrapped
from connect.errors import DataError
from connect.kits.schema_json import Wording, schema_from_json
from converters.json.nesting import MOST_SCHEMA_DEPTH, SCHEMA_TOO_DEEP

__all__ = ["envelope_schema"]

_NO_TYPE: Final = 'Schema must contain "type" field, a string'
_NO_NAME: Final = "Struct schema's field name not specified properly"
_JAVA: Final = Wording(
    DataError,
    _NO_TYPE,
    _NO_TYPE,
    "Unknown schema type: {0}",
    {
        "items": "Array schema did not specify the element type",
        "keys": "Map schema did not specify the key type",
        "values": "Map schema did not specify the value type",
    },
    'Struct schema\'s "fields" argument is not an array.',
    _NO_NAME,
    _NO_NAME,
    SCHEMA_TOO_DEEP,
    MOST_SCHEMA_DEPTH,
)


def envelope_schema(node: Any, read_default: Callable[[Schema, Any], Any]) -> Schema | None:
    """Return the schema that a JSON object describes, or ``None`` for null.

    Raises :class:`~connect.errors.DataError` if it describes none. Attributes of the wrong type are ignored, as in
    Kafka Connect: ``"optional":"true"`` does not make a schema optional.
    """
    if node is None:
        return None
    return schema_from_json(node, wording=_JAVA, attributes=_attributes, read_default=read_default)


def _attributes(node: Mapping[str, Any]) -> Mapping[str, Any]:
    found = {name: node[name] for name in ("name", "doc") if isinstance(node.get(name), str)}
    version, parameters = node.get("version"), node.get("parameters")
    if isinstance(version, int) and not isinstance(version, bool):
        found["version"] = wrapped(version, 32)
    if isinstance(parameters, dict):
        if not all(isinstance(text, str) for text in parameters.values()):
            raise DataError("Schema parameters must have string values.")
        found["parameters"] = parameters
    return found
