"""Java's plugins in the folders of ``plugin.path``: which there are is read from their jars, without a JVM.

A jar lists its plugins. Where no jar of a plugin's folder lists a connector, the classes are looked at.

They run in a JVM, with Kafka Connect's own runtime. One that has a plugin of Python that stands for it runs only where
a configuration says ``engine=java``.
"""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from connect.errors import os_reason
from connect.internals.plugins.entry import PluginEntry, PluginKind
from connect.internals.plugins.java_classes import ClassFile, classes_of, implementations
from connect.internals.plugins.listing import BrokenPackage

__all__ = ["JavaListing", "JavaPlugin", "java_plugins"]

_SERVICES: Final = "META-INF/services/"
_MANIFEST: Final = "META-INF/MANIFEST.MF"
_KINDS: Final[Mapping[str, tuple[PluginKind, str | None]]] = {
    "org.apache.kafka.connect.source.SourceConnector": (PluginKind.CONNECTOR, "source"),
    "org.apache.kafka.connect.sink.SinkConnector": (PluginKind.CONNECTOR, "sink"),
    "org.apache.kafka.connect.storage.Converter": (PluginKind.CONVERTER, None),
    "org.apache.kafka.connect.storage.HeaderConverter": (PluginKind.HEADER_CONVERTER, None),
    "org.apache.kafka.connect.transforms.Transformation": (PluginKind.TRANSFORMATION, None),
    "org.apache.kafka.connect.transforms.predicates.Predicate": (PluginKind.PREDICATE, None),
    "org.apache.kafka.common.config.provider.ConfigProvider": (PluginKind.CONFIG_PROVIDER, None),
}
_MOST_BYTES: Final = 1024 * 1024
"""The real files have a few hundred bytes; what is longer is no list of plugins."""
_CLASS: Final = re.compile(r"[^\W\d][\w$]*(\.[^\W\d][\w$]*)*")
_VERSION_IN_NAME: Final = re.compile(r"-v?(\d[\w.+-]*)\.jar$", re.IGNORECASE)
_VERSION_IN_MANIFEST: Final = re.compile(r"^Implementation-Version:[ \t]*(\S.*)$", re.MULTILINE)
_CONTINUATION: Final = re.compile(r"\r?\n ")


@dataclass(frozen=True, slots=True)
class JavaPlugin:
    """A Java class that is a plugin; ``is_listed`` says that its jar lists it.

    ``version`` is that of the jar, by its manifest or else by its name: what the class itself says, only a JVM knows.
    """

    kind: PluginKind
    type: str | None
    class_name: str
    version: str | None
    jar: Path
    is_listed: bool = True


class JavaListing:
    """The Java plugins in some folders, as entries. The jars are read when they are first asked for.

    Every process looks for its plugins, and most of them need none of Java.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)

    @cached_property
    def _read(self) -> tuple[tuple[JavaPlugin, ...], tuple[BrokenPackage, ...]]:
        plugins: list[JavaPlugin] = []
        broken: list[BrokenPackage] = []
        for folder in self._folders:
            found, unread = java_plugins(folder)
            plugins += found
            broken += unread
        return tuple(plugins), tuple(broken)

    @cached_property
    def entries(self) -> tuple[PluginEntry, ...]:
        """The plugins, each version of each."""
        return tuple(
            PluginEntry(plugin.kind, plugin.class_name, plugin.type, version=plugin.version, java=plugin.jar)
            for plugin in self._read[0]
        )

    @property
    def are_listed(self) -> bool:
        """Whether the jars list all of them, so that nobody need look at classes."""
        return all(plugin.is_listed for plugin in self._read[0])

    @property
    def broken(self) -> tuple[BrokenPackage, ...]:
        """The jars and folders that cannot be read; none before the jars are read for another reason."""
        return self._read[1] if "_read" in self.__dict__ else ()

    @cached_property
    def _by_name(self) -> Mapping[tuple[PluginKind, str], Sequence[PluginEntry]]:
        named: dict[tuple[PluginKind, str], list[PluginEntry]] = defaultdict(list)
        for entry in self.entries:
            for name in set(entry.names()):
                named[entry.kind, name].append(entry)
        return named

    def named(self, kind: PluginKind, name: str) -> list[PluginEntry]:
        """Return the plugins of a kind that a configuration may call ``name``."""
        return list(self._by_name.get((kind, name), ()))


def java_plugins(folder: Path) -> tuple[list[JavaPlugin], list[BrokenPackage]]:
    """Return the plugins in the jars in and below a folder, and the jars and folders that cannot be read."""
    plugins: list[JavaPlugin] = []
    broken: list[BrokenPackage] = []

    def skip(error: OSError) -> None:
        broken.append(BrokenPackage(f"Folder {error.filename}", f"It cannot be read: {os_reason(error)}"))

    for jars in _locations(folder, skip):
        found: list[JavaPlugin] = []
        whole: list[Path] = []
        for jar in jars:
            with _reported(jar, broken):
                found += _listed(jar)
                whole.append(jar)
        if not any(plugin.kind is PluginKind.CONNECTOR for plugin in found):
            found += _unlisted(whole, found, broken)
        plugins += found
    return plugins, broken


@contextmanager
def _reported(jar: Path, broken: list[BrokenPackage]) -> Iterator[None]:
    """Skip a jar that cannot be read, and say so."""
    try:
        yield
    except OSError as error:
        broken.append(BrokenPackage(f"Jar {jar}", f"It cannot be read: {os_reason(error)}"))
    except (zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError, RuntimeError, EOFError) as error:
        broken.append(BrokenPackage(f"Jar {jar}", f"It is damaged, or no jar: {error}. Download it again"))


def _locations(folder: Path, skip: Callable[[OSError], None]) -> Iterator[list[Path]]:
    """Yield the jars of each plugin; as in Java, those may be links to folders elsewhere."""
    for child in sorted(folder.iterdir()):
        if child.is_dir():
            found = (Path(place, name) for place, _, names in os.walk(child, onerror=skip) for name in names)
            yield sorted(path for path in found if _is_jar(path))
        elif _is_jar(child):
            yield [child]


def _is_jar(path: Path) -> bool:
    return path.suffix.lower() == ".jar"


def _listed(jar: Path) -> list[JavaPlugin]:
    with zipfile.ZipFile(jar) as archive:
        names = archive.NameToInfo.keys()
        listed = {service: _text(archive, _SERVICES + service) for service in _KINDS if _SERVICES + service in names}
        if not listed:
            return []
        version = _version_of(archive, jar)
    return [
        JavaPlugin(*_KINDS[service], class_name, version, jar)
        for service, text in listed.items()
        for class_name in _classes(text)
    ]


def _unlisted(jars: Iterable[Path], known: Iterable[JavaPlugin], broken: list[BrokenPackage]) -> Iterator[JavaPlugin]:
    """Yield the plugins among the classes of one location, but for those that are known."""
    classes: list[ClassFile] = []
    for jar in jars:
        with _reported(jar, broken):
            classes += classes_of(jar)
    listed = {(plugin.kind, plugin.class_name) for plugin in known}
    versions: dict[Path, str | None] = {}
    for service, found in implementations(classes, _KINDS):
        kind, its_type = _KINDS[service]
        if (kind, found.name) in listed:
            continue
        if found.jar not in versions:
            with zipfile.ZipFile(found.jar) as archive:
                versions[found.jar] = _version_of(archive, found.jar)
        yield JavaPlugin(kind, its_type, found.name, versions[found.jar], found.jar, is_listed=False)


def _version_of(archive: zipfile.ZipFile, jar: Path) -> str | None:
    manifest = _text(archive, _MANIFEST) if _MANIFEST in archive.NameToInfo else ""
    return _version(manifest, jar.name)


def _text(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"its {name} is longer than {_MOST_BYTES} bytes")
    return content.decode()


def _classes(text: str) -> list[str]:
    """Return the classes in a file of ``META-INF/services``: one a line, each once, after ``#`` a comment."""
    written = (line.partition("#")[0].strip() for line in text.splitlines())
    return list(dict.fromkeys(name for name in written if _CLASS.fullmatch(name)))


def _version(manifest: str, jar: str) -> str | None:
    """Return the version of a jar: the one in the main section of its manifest, or else in its name."""
    lines = _CONTINUATION.sub("", manifest).replace("\r\n", "\n")
    found = _VERSION_IN_MANIFEST.search(lines.partition("\n\n")[0]) or _VERSION_IN_NAME.search(jar)
    return None if found is None else found[1].rstrip()
