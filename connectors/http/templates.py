"""Templates: texts with ``${...}``, filled with values that are encoded for their context.

The syntax is the subset of FreeMarker that configurations of HTTP connectors use: ``${value.name}``,
``${offset.id!'0'}`` with a default, ``${offset.timestamp?datetime.iso?string['yyyy-MM-dd']}`` with built-ins. A value
can change neither the host, nor the folders of the path, nor the structure of a body: everything outside the
placeholders comes from the configuration alone.
"""

from __future__ import annotations

import datetime as dt
import enum
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

from connect.data.excerpt import excerpt
from connect.data.numerals import integer_text
from connect.errors import DataError
from connect.internals.java.date_format import DateFormat
from connect.kits.json_text import json_text

__all__ = ["Encoding", "MissingValueError", "Template", "TemplateError", "body_encoding"]

_NAME: Final = re.compile(
    r"\s*([A-Za-z_][\w-]*)((?:\.[\w-]+|\[[0-9]{1,9}\]|\['[^'\]]*'\]|\[\"[^\"\]]*\"\])*)", re.ASCII
)
_STEP: Final = re.compile(r"\.([\w-]+)|\[([0-9]+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]", re.ASCII)
_BUILTIN: Final = re.compile(
    r"\?\s*([a-z_]+(?:\.iso)?)\s*(?:\[\s*(?:'([^']*)'|\"([^\"]*)\")\s*\]|\(\s*(?:'([^']*)'|\"([^\"]*)\")\s*\))?"
)
_DEFAULT: Final = re.compile(r"!\s*(?:'([^']*)'|\"([^\"]*)\"|(-?[0-9]+(?:\.[0-9]+)?))?\s*")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_UTC: Final = dt.UTC
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=_UTC)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)


class TemplateError(ValueError):
    """A template is malformed."""


class MissingValueError(DataError):
    """A placeholder has neither a value nor a default."""


class Encoding(enum.Enum):
    """The context of a template, which determines how values are written in it."""

    URL = "url"
    HEADER = "header"
    JSON = "json"
    FORM = "form"
    XML = "xml"
    TEXT = "text"


def body_encoding(content_type: str | None) -> Encoding:
    """Return the encoding for a body of this type; JSON if no type is given."""
    kind = (content_type or "application/json").partition(";")[0].strip().lower()
    if kind.endswith(("/json", "+json")) or kind in ("application/x-ndjson", "application/jsonl"):
        return Encoding.JSON
    if kind == "application/x-www-form-urlencoded":
        return Encoding.FORM
    if kind.endswith(("/xml", "+xml", "/html")):
        return Encoding.XML
    return Encoding.TEXT


@dataclass(frozen=True, slots=True)
class _Placeholder:
    text: str
    root: str
    steps: tuple[str | int, ...]
    builtins: tuple[Callable[[Any], Any], ...]
    default: str | None
    in_string: bool = False

    def value(self, names: Mapping[str, Any]) -> Any:
        """Return its value before encoding; ``None`` if there is none."""
        found = names.get(self.root)
        for step in self.steps:
            if isinstance(step, str) and isinstance(found, Mapping):
                found = found.get(step)
            elif isinstance(step, int) and isinstance(found, Sequence) and not isinstance(found, (str, bytes)):
                found = found[step] if step < len(found) else None
            else:
                return None
        if found is None:
            return None
        for apply in self.builtins:
            try:
                found = apply(found)
            except (ValueError, OverflowError, TypeError) as error:
                raise DataError(f"The value {excerpt(found)} of {self.text} cannot be used: {error}") from error
        return found


class Template:
    """A parsed template. Raises :class:`TemplateError` if it is malformed or names a root that is not in ``roots``.

    Without ``roots`` any name is allowed: unknown names are looked up in the record's value.
    """

    def __init__(self, text: str, encoding: Encoding, roots: Iterable[str] | None = None) -> None:
        self.text = text
        self._encoding = encoding
        self._parts = list(_marked(_parsed(text), encoding))
        known = None if roots is None else frozenset(roots)
        for part in self.placeholders:
            if known is not None and part.root not in known:
                raise TemplateError(f"{part.text} is not available here; use {', '.join(sorted(known))}")
        if encoding is Encoding.URL:
            self._check_place()

    @property
    def placeholders(self) -> list[_Placeholder]:
        """The placeholders of the template."""
        return [part for part in self._parts if isinstance(part, _Placeholder)]

    @property
    def is_constant(self) -> bool:
        """Whether the template has no placeholders."""
        return not self.placeholders

    def render(self, names: Mapping[str, Any]) -> str:
        """Return the text with the values filled in. Raises :class:`~connect.errors.DataError` for an unusable one."""
        if self.is_constant:
            return "".join(part for part in self._parts if isinstance(part, str))
        rendered, in_path = [], self._encoding is Encoding.URL
        for part in self._parts:
            if isinstance(part, str):
                rendered.append(part)
                in_path = in_path and "?" not in part
                continue
            value = part.value(names)
            if value is None:
                if part.default is None:
                    raise MissingValueError(f"{part.text} has no value here. Give it a default: {_with_default(part)}")
                value = part.default
            text = self._encoded(value, part)
            if in_path and not text:
                raise DataError(f"{part.text} is empty, which would change the resource of the URL.")
            rendered.append(text)
        joined = "".join(rendered)
        if self._encoding is Encoding.URL:
            _check_folders(self, joined)
        return joined

    def _encoded(self, value: Any, part: _Placeholder) -> str:
        match self._encoding:
            case Encoding.URL:
                return quote(_plain(value), safe="")
            case Encoding.FORM:
                return quote_plus(_plain(value))
            case Encoding.HEADER:
                text = _plain(value)
                if _CONTROLS.search(text):
                    raise DataError(
                        f"The value of {part.text} contains a line ending or a control character, which a "
                        "header must not have."
                    )
                return text
            case Encoding.JSON:
                return json.dumps(_plain(value), ensure_ascii=False)[1:-1] if part.in_string else json_text(value)
            case Encoding.XML:
                return escape(_plain(value), {'"': "&quot;", "'": "&#39;"})
            case Encoding.TEXT:
                return _plain(value)

    def _check_place(self) -> None:
        """Refuse a URL in which a value could change the host."""
        first = self._parts[0] if self._parts else ""
        if self.is_constant:
            return
        head = first if isinstance(first, str) else ""
        _, separator, rest = head.partition("://")
        if not separator or not re.search(r"[/?]", rest):
            raise TemplateError("scheme, host and port of a URL must not contain ${...}, and must be followed by a /")


def _parsed(text: str) -> Iterator[str | _Placeholder]:
    if re.search(r"<#|<@|\$\{\}|#\{", text):
        raise TemplateError("it contains FreeMarker directives; only ${...} with ?built-ins and !defaults is supported")
    at = 0
    while (start := text.find("${", at)) >= 0:
        if start > at:
            yield text[at:start]
        end, placeholder = _placeholder(text, start)
        yield placeholder
        at = end
    if text[at:]:
        yield text[at:]


def _placeholder(text: str, start: int) -> tuple[int, _Placeholder]:
    name = _NAME.match(text, start + 2)
    if name is None:
        raise TemplateError(f"there is no name after ${{ at character {start + 1}")
    at, builtins, default = name.end(), [], None
    while match := _BUILTIN.match(text, at):
        argument = next((group for group in match.groups()[1:] if group is not None), None)
        builtins.append(_builtin(match[1], argument))
        at = match.end()
    if match := _DEFAULT.match(text, at):
        default = next((group for group in match.groups() if group is not None), "")
        at = match.end()
    while text[at : at + 1].isspace():
        at += 1
    if text[at : at + 1] != "}":
        raise TemplateError(
            f"{text[start : start + 40]} is malformed: write ${{name}}, ${{name.field}}, ${{name!'default'}} or "
            "${name?builtin}"
        )
    steps = tuple(int(step[2]) if step[2] else step[1] or step[3] or step[4] or "" for step in _STEP.finditer(name[2]))
    return at + 1, _Placeholder(text[start : at + 1], name[1], steps, tuple(builtins), default)


def _builtin(name: str, argument: str | None) -> Callable[[Any], Any]:
    if name == "string" and argument is not None:
        try:
            form = DateFormat(argument)
        except ValueError as error:
            raise TemplateError(f"the pattern {argument} is malformed: {error}") from error
        return lambda value: form.format(_milliseconds(value))
    if argument is not None or name not in _BUILTINS:
        raise TemplateError(
            f"the built-in ?{name} is not supported; use {', '.join(_BUILTINS)} and string['yyyy-MM-dd']"
        )
    return _BUILTINS[name]


def _plain(value: Any) -> str:  # noqa: PLR0911
    """Return a value as a string."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return integer_text(value)
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case dt.datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case dt.date() | dt.time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            try:
                return bytes(value).decode()
            except UnicodeDecodeError:
                raise DataError("Bytes that are not UTF-8 cannot be used in a template.") from None
        case _:
            return json_text(value)


def _instant(value: Any) -> dt.datetime:
    if isinstance(value, dt.datetime):
        return value if value.tzinfo is not None else value.replace(tzinfo=_UTC)
    if isinstance(value, int) and not isinstance(value, bool):
        return _EPOCH + value * _MILLISECOND
    text = _plain(value).strip()
    found = dt.datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=_UTC)


def _milliseconds(value: Any) -> int:
    return (_instant(value) - _EPOCH) // _MILLISECOND


def _long(value: Any) -> int:
    if isinstance(value, dt.datetime):
        return _milliseconds(value)
    return int(_plain(value))


_BUILTINS: Final[dict[str, Callable[[Any], Any]]] = {
    "datetime": _instant,
    "datetime.iso": _instant,
    "date.iso": _instant,
    "long": _long,
    "seconds": lambda value: _milliseconds(value) // 1000,
    "string": _plain,
    "c": _plain,
    "trim": lambda value: _plain(value).strip(),
    "lower_case": lambda value: _plain(value).lower(),
    "upper_case": lambda value: _plain(value).upper(),
}


def _marked(parts: Iterable[str | _Placeholder], encoding: Encoding) -> Iterator[str | _Placeholder]:
    """Yield the parts, with the placeholders of JSON marked as inside or outside a string."""
    inside = False
    for part in parts:
        if isinstance(part, str):
            if encoding is Encoding.JSON:
                inside = _ends_inside(part, inside)
            yield part
        else:
            yield _Placeholder(part.text, part.root, part.steps, part.builtins, part.default, inside)


def _ends_inside(text: str, inside: bool) -> bool:
    escaped = False
    for character in text:
        if inside and escaped:
            escaped = False
        elif inside and character == "\\":
            escaped = True
        elif character == '"':
            inside = not inside
    return inside


def _check_folders(template: Template, url: str) -> None:
    path = url.partition("?")[0]
    if any(segment in (".", "..") for segment in path.split("/")):
        raise DataError(
            f"The values would make {template.text} the URL of another folder: a path segment must not be . or .."
        )


def _with_default(part: _Placeholder) -> str:
    return f"{part.text[:-1]}!'...'}}"
