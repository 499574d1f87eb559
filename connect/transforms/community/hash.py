"""Hash: replaces text with its hash."""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

from connect.config import HIGH, LOW, Config, option
from connect.data import Schema, Type
from connect.errors import DataError
from connect.transforms.fields.field_path import FieldPath, FieldTree
from connect.transforms.fields.key_or_value import Change, ValueTransformation, require_map, type_name
from connect.transforms.fields.struct_change import change_fields

__all__ = ["Hash", "HashConfig"]

_PURPOSE: Final = "hashing"


class HashConfig(Config):
    """What is hashed, and how."""

    field_name: str | None = option(
        default=None,
        importance=HIGH,
        doc="The field to hash; a dot leads into a nested struct. If empty, the whole key or value is hashed.",
    )
    skip_missing_or_null: bool = option(
        default=False,
        importance=LOW,
        doc="Whether a record without text to hash passes unchanged; otherwise it fails.",
    )
    function: Literal["md5", "sha1", "sha256"] = option(importance=HIGH, doc="The hash function.")


class Hash(ValueTransformation[HashConfig]):
    """Replaces text with its hash in hexadecimal digits: the whole key or value, or one of its fields."""

    passes_null = False

    def __init__(self, config: HashConfig) -> None:
        super().__init__(config)
        name = config.field_name
        self._path = FieldPath(name, tuple(name.split("."))) if name else None

    def change(self, schema: Schema | None) -> Change:
        """Hash text in values of a schema."""
        if self._path is None:
            _require_text(schema, f"The {self.side.name}")
            return Change(schema, lambda value: self._hashed(value, f"The {self.side.name}"))
        return self._change_field(schema, self._path)

    def _change_field(self, schema: Schema | None, path: FieldPath) -> Change:
        place = f"Field {path.text} of the {self.side.name}"
        if schema is not None and schema.type is Type.STRUCT:
            field = path.field_of(schema)
            if field is None and not self.config.skip_missing_or_null:
                raise DataError(f"{place} is missing: name another in field.name, or set skip.missing.or.null=true")
            if field is None:
                return Change(schema, lambda value: require_map(value, schema, _PURPOSE))
            _require_text(field.schema, place)
        tree = FieldTree.of([(path, None)])
        inner = change_fields(schema, tree, lambda of, _: Change(of, self._hash), purpose=_PURPOSE, defaults=False)

        def hashed(value: Any) -> Any:
            if self._hashed(path.read(require_map(value, schema, _PURPOSE)), place) is None:
                return value
            return inner.value(value)

        return Change(schema, hashed)

    def _hashed(self, value: Any, place: str) -> str | None:
        """Return the hash; ``None`` for null if such records pass."""
        if value is None:
            if self.config.skip_missing_or_null:
                return None
            raise DataError(
                f"{place} is null or missing, and has no hash: set skip.missing.or.null=true to let it pass"
            )
        if not isinstance(value, str):
            raise DataError(f"{place} must be text to be hashed, but is of type {type_name(value)}")
        return self._hash(value)

    def _hash(self, text: str) -> str:
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise DataError(f"Text with half a surrogate pair cannot be hashed: {error}") from error
        return hashlib.new(self.config.function, data, usedforsecurity=False).hexdigest()


def _require_text(schema: Schema | None, place: str) -> None:
    if schema is not None and schema.type is not Type.STRING:
        raise DataError(f"{place} must be of type STRING to be hashed, but is of type {schema.type.name}")
