"""A Protobuf schema of the registry, compiled: its messages by their indexes, and what its options say."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, Final

from connect.errors import DataError, SchemaError

__all__ = ["ProtoSchema", "index_bytes", "message_class", "parameters_of", "read_indexes"]

_ROOT: Final = "sluice_root_schema.proto"
_META: Final = "confluent/meta.proto"
_OWN: Final = (_META, "confluent/type/decimal.proto", "confluent/type/variant.proto")
_META_OPTION: Final = re.compile(r"\(\s*\.?confluent\.\w*_?meta\s*\)")
_IMPORT_META: Final = re.compile(r"import\s+(?:public\s+|weak\s+)?[\"']confluent/meta\.proto[\"']")
_SYNTAX: Final = re.compile(r"(?:\A|(?<=[\s;]))(?:syntax|edition)\s*=\s*[\"'][^\"']*[\"']\s*;")
_META_NUMBER: Final = 1088
_MOST_LEVELS: Final = 64
_MOST_BYTES_OF_AN_INDEX: Final = 5
_MOST_SECONDS: Final = 60


class ProtoSchema:
    """A file with its imports in a descriptor pool of its own, so that names of different schemas never meet."""

    def __init__(self, text: str, imports: Iterable[tuple[str, str]] = (), root: str | None = None) -> None:
        """Compile a file. ``root`` is the full name of the message that is written, by default the first one.

        Raises :class:`~connect.errors.SchemaError` if the file is not valid, or an import is missing.
        """
        from google.protobuf import descriptor_pool  # noqa: PLC0415 - the package is optional

        self.text = text
        pool = descriptor_pool.DescriptorPool()
        try:
            for each in _compiled(text, dict(imports)):
                pool.AddSerializedFile(each.SerializeToString())
            self.file: Any = pool.FindFileByName(_ROOT)
        except (TypeError, KeyError, UnicodeEncodeError) as error:
            raise SchemaError(f"The Protobuf schema is not valid: {str(error)[:500]}") from error
        self._root = root

    @property
    def root(self) -> Any:
        """The message that is written."""
        messages = list(self.file.message_types_by_name.values())
        if not messages:
            raise SchemaError("The Protobuf schema declares no message.")
        if self._root is None:
            return messages[0]
        return next(each for each in messages if each.full_name == self._root)

    def message(self, indexes: Sequence[int]) -> Any:
        """Return the message at a path of indexes."""
        level = list(self.file.message_types_by_name.values())
        found: Any = None
        for index in indexes:
            if index >= len(level):
                raise DataError(
                    f"The message has the indexes {list(indexes)}, but the Protobuf schema has no such message: it is "
                    "damaged, or was written by a client that orders indexes otherwise."
                )
            found = level[index]
            level = list(found.nested_types)
        return found

    def named(self, full_name: str) -> Any:
        """Return the message of that name; ``None`` if there is none."""
        try:
            return self.file.pool.FindMessageTypeByName(full_name)
        except KeyError:
            return None


def message_class(message: Any) -> Any:
    """Return the class of messages with this descriptor.

    Their methods are to be taken from it: a field with the name of a method hides the method in the message itself.
    """
    from google.protobuf.message_factory import GetMessageClass  # noqa: PLC0415 - as above

    return GetMessageClass(message)


def indexes_of(message: Any) -> tuple[int, ...]:
    """Return the path of indexes of a message in its file."""
    if message.containing_type is None:
        return (list(message.file.message_types_by_name.values()).index(message),)
    return (*indexes_of(message.containing_type), list(message.containing_type.nested_types).index(message))


def index_bytes(message: Any) -> bytes:
    """Return the bytes that name a message behind the id of its schema."""
    indexes = indexes_of(message)
    if indexes == (0,):
        return b"\0"
    return b"".join(map(_zigzag, (len(indexes), *indexes)))


def read_indexes(data: bytes, place: int) -> tuple[tuple[int, ...], int]:
    """Return the indexes that begin at a place in a message, and the place behind them.

    Raises :class:`~connect.errors.DataError` if there are none.
    """
    count, place = _read_zigzag(data, place)
    if count == 0:
        return (0,), place
    if not 0 < count <= _MOST_LEVELS:
        raise DataError(f"The message names {count} levels of messages behind the id of its schema: it is damaged.")
    indexes = []
    for _ in range(count):
        index, place = _read_zigzag(data, place)
        if index < 0:
            raise DataError(f"The message has the negative index {index} behind the id of its schema: it is damaged.")
        indexes.append(index)
    return tuple(indexes), place


def _zigzag(number: int) -> bytes:
    doubled, out = number << 1, bytearray()
    while doubled > 0x7F:
        out.append(doubled & 0x7F | 0x80)
        doubled >>= 7
    out.append(doubled)
    return bytes(out)


def _read_zigzag(data: bytes, place: int) -> tuple[int, int]:
    number = 0
    for step in range(_MOST_BYTES_OF_AN_INDEX):
        if place >= len(data):
            raise DataError(
                "The message ends before it names its message type: it is damaged, or is not Protobuf. Use the "
                "converter with which it was written."
            )
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << 7 * step
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), place
    raise DataError("The message has an index of more than five bytes behind the id of its schema: it is damaged.")


# -- options -----------------------------------------------------------------------------------------------------


def parameters_of(descriptor: Any) -> Mapping[str, str]:
    """Return the parameters in Confluent's options of a field."""
    if not descriptor.has_options:
        return {}
    found = _options_class().FromString(descriptor.GetOptions().SerializeToString())
    return dict(found.meta.params)


@lru_cache(maxsize=1)
def _options_class() -> Any:
    """Return the class of a message that has Confluent's options alone."""
    from google.protobuf import descriptor_pool  # noqa: PLC0415 - as above

    pool = descriptor_pool.DescriptorPool()
    text = f'syntax = "proto3"; import "{_META}"; message Options {{ confluent.Meta meta = {_META_NUMBER}; }}'
    for each in _compiled(text, {}):
        pool.AddSerializedFile(each.SerializeToString())
    return message_class(pool.FindMessageTypeByName("Options"))


# -- compiling ---------------------------------------------------------------------------------------------------


def _compiled(text: str, imports: Mapping[str, str]) -> list[Any]:
    """Return the descriptors of a file and of its imports, each after those it imports."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - as above
    from grpc_tools import protoc  # noqa: PLC0415 - as above

    with tempfile.TemporaryDirectory(prefix="sluice-proto-") as folder:
        place = Path(folder)
        (place / "in").mkdir()
        serialized = descriptor_pb2.FileDescriptorSet()
        for name, each in {**imports, **_own_files(), _ROOT: text}.items():
            descriptor = _deserialized(name, each)
            if descriptor is None:
                _write(place / "in", name, each)
            else:
                serialized.file.append(descriptor)
        out = place / "out"
        given = place / "serialized"
        given.write_bytes(serialized.SerializeToString())
        arguments = [
            "protoc",
            *([f"--descriptor_set_in={given}"] if serialized.file else []),
            f"-I{place / 'in'}",
            *(f"-I{each}" for each in _known_folders()),
            "--include_imports",
            f"--descriptor_set_out={out}",
            _ROOT,
        ]
        if protoc.main(arguments) == 0:
            return list(descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file)
        raise SchemaError(f"The Protobuf schema is not valid: {_complaint(arguments, str(place / 'in'))}")


def _complaint(arguments: Sequence[str], folder: str) -> str:
    """Return what the compiler says, which it tells only the standard error of its process."""
    command = [sys.executable, "-m", "grpc_tools.protoc", *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False)
    text = done.stderr.replace(f"{folder}/", "").replace(_ROOT, "the schema").strip()
    return text[:1000] or "the compiler does not say why"


def _deserialized(name: str, text: str) -> Any:
    """Return the descriptor that is a schema in base64, as clients in Python register it; ``None`` if it is text."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - as above
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - as above

    if "{" in text or ";" in text:
        return None
    try:
        found = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, DecodeError):
        return None
    found.name = name
    return found


def _write(folder: Path, name: str, text: str) -> None:
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or name.startswith("/") or "\0" in name or "\\" in name:
        raise SchemaError(
            f"The Protobuf schema has a reference of the name {name!r}, which is not a path of an import."
        )
    file = folder.joinpath(*parts)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_with_meta(text), encoding="utf-8")


def _with_meta(text: str) -> str:
    """Return a file with the import of Confluent's options, which Java's converter uses without importing them."""
    if not _META_OPTION.search(text) or _IMPORT_META.search(text):
        return text
    syntax = _SYNTAX.search(text)
    place = 0 if syntax is None else syntax.end()
    return f'{text[:place]}\nimport "{_META}";{text[place:]}'


@lru_cache(maxsize=1)
def _own_files() -> Mapping[str, str]:
    """Return Confluent's files by the names of their imports. The package may lie in an archive."""
    folder = files("converters.protobuf") / "proto"
    return {name: folder.joinpath(*name.split("/")).read_text(encoding="utf-8") for name in _OWN}


@lru_cache(maxsize=1)
def _known_folders() -> tuple[str, ...]:
    """Return the folders of the files that every schema may import."""
    import google.type  # noqa: PLC0415 - as above
    import grpc_tools  # noqa: PLC0415 - as above

    known = str(Path(grpc_tools.__path__[0]) / "_proto")
    types = next(iter(google.type.__path__))
    return known, str(Path(types).parent.parent)
