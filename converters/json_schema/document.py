"""A JSON Schema of the registry with the schemas it refers to: its parts, and what they refer to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from connect.errors import DataError, SchemaError
from converters.json.errors import UnfitError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JsonSchema", "Part"]

_DRAFT_7: Final = "http://json-schema.org/draft-07/schema#"
_MODERN: Final = ("draft/2019-09/", "draft/2020-12/", "draft/next/")
_WITH_PLAIN_ID: Final = ("draft-03/", "draft-04/")
"""The dialects in which ``$id`` was called ``id``."""
_ROOT: Final = "sluice:root"


@dataclass(frozen=True, slots=True)
class Part:
    """A schema within a document: its members, and the resolver of its references."""

    members: dict[str, Any]
    _resolver: Any
    is_root: bool = False

    def inner(self, contents: Any) -> Part:
        """Return a schema that stands within this one. A boolean is the schema that allows everything or nothing."""
        if isinstance(contents, bool):
            contents = {} if contents else {"not": {}}
        if not isinstance(contents, dict):
            raise SchemaError(f"A JSON Schema holds {json.dumps(contents)[:100]} where a schema must be.")
        resolver = self._resolver
        if "$id" in contents or "id" in contents:
            from referencing.jsonschema import DRAFT202012  # noqa: PLC0415 - the package is optional

            resolver = resolver.in_subresource(DRAFT202012.create_resource(contents))
        return Part(contents, resolver)

    def referenced(self) -> Part:
        """Return the schema that ``$ref`` names."""
        from referencing.exceptions import Unresolvable  # noqa: PLC0415 - as above

        reference = self.members["$ref"]
        try:
            found = self._resolver.lookup(reference)
        except (Unresolvable, TypeError, AttributeError, ValueError) as error:
            raise SchemaError(
                f"The JSON Schema refers to {str(reference)[:200]!r}, which is neither in it nor among its references "
                "in the registry: register it with all its references."
            ) from error
        return Part({}, found.resolver).inner(found.contents)


class JsonSchema:
    """A schema with those it refers to, and the validator of values."""

    __slots__ = ("_references", "_validate", "document", "text")

    def __init__(
        self, text: str, references: Iterable[tuple[str, str]] = (), *, ignores_modern_dialects: bool = False
    ) -> None:
        self.text = text
        self.document = _parsed(text, ignores_modern_dialects)
        self._references = [(name, _parsed(each, ignores_modern_dialects)) for name, each in references]
        self._validate: Callable[[Any], Iterator[Any]] | None = None

    @property
    def title(self) -> str | None:
        """The title of the schema; of ``oneOf`` null and another, that of the other."""
        document = self.document
        if not isinstance(document, dict):
            return None
        members = [each for each in document.get("oneOf") or () if isinstance(each, dict)]
        present = [each for each in members if each.get("type") != "null"]
        title = document.get("title") or (present[0].get("title") if len(present) == 1 else None)
        return title if isinstance(title, str) else None

    def root(self) -> Part:
        """Return the schema itself as a part."""
        from referencing import Registry  # noqa: PLC0415 - as above

        place = self._place()
        resources = [(_ROOT, _resource(self.document))] + [
            (uri, _resource(document)) for uri, document in self._named(place)
        ]
        try:
            registry: Any = Registry().with_resources(resources).crawl()
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
            raise SchemaError("The JSON Schema holds something else where a schema must be.") from error
        if place != _ROOT:
            registry = registry.with_resource(place, _resource(self.document))
        return replace(Part({}, registry.resolver(place)).inner(self.document), is_root=True)

    def _place(self) -> str:
        return _identity(self.document) or _ROOT

    def _named(self, place: str) -> Iterator[tuple[str, Any]]:
        """Yield the referenced schemas under each URI by which the schema, or one of them, may call them."""
        given = [_identity(document) for _, document in self._references]
        bases = dict.fromkeys(each for each in (place, *given) if each is not None and each != _ROOT)
        for name, document in self._references:
            for uri in dict.fromkeys((name, *(urljoin(base, name) for base in bases))):
                yield uri, document

    def check(self, value: Any) -> None:
        """Raise ``UnfitError`` for parsed JSON that is not valid."""
        if self._validate is None:
            self._validate = self._validator()
        for error in self._validate(value):
            path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
            raise UnfitError(f"it is not valid by its JSON Schema: {str(error.message)[:300]}", path)

    def _validator(self) -> Callable[[Any], Iterator[Any]]:
        import jsonschema_rs  # noqa: PLC0415 - as above

        named = [
            ("json-schema:///" + uri if "://" not in uri else uri, each) for uri, each in self._named(self._place())
        ]
        try:
            registry = jsonschema_rs.Registry(named) if named else None
            validator: Any = jsonschema_rs.validator_for(self.document, registry=registry, offline=True)
        except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
            raise SchemaError(f"The JSON Schema is not valid itself: {str(error)[:300]}") from error
        iterate: Callable[[Any], Iterator[Any]] = validator.iter_errors
        return iterate


def _identity(document: Any) -> str | None:
    """Return the URI that a schema has by its own account, against which its references are resolved."""
    if not isinstance(document, dict):
        return None
    dialect = document.get("$schema")
    is_old = isinstance(dialect, str) and any(each in dialect for each in _WITH_PLAIN_ID)
    identity = document.get("id" if is_old else "$id")
    return identity if isinstance(identity, str) and identity else None


def _parsed(text: str, ignores_modern_dialects: bool) -> Any:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The schema in the registry is not JSON: {str(error)[:200]}") from error
    if ignores_modern_dialects and isinstance(document, dict):
        dialect = document.get("$schema")
        if isinstance(dialect, str) and any(each in dialect for each in _MODERN):
            document["$schema"] = _DRAFT_7
    return document


def _resource(document: Any) -> Any:
    from referencing import Resource  # noqa: PLC0415 - as above
    from referencing.jsonschema import DRAFT7, specification_with  # noqa: PLC0415 - as above

    dialect = document.get("$schema") if isinstance(document, dict) else None
    specification = specification_with(dialect, default=DRAFT7) if isinstance(dialect, str) else DRAFT7
    make: Any = Resource
    return make(contents=document, specification=specification)
