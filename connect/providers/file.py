"""Config providers for values in files: properties files, and folders with one file per value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar, Final

from connect.config import MEDIUM, Config, Long, invalid_value, option, read_properties, validator
from connect.errors import ConnectError
from connect.providers.provider import ConfigData, ConfigProvider, RefusedReferenceError, ttl_ms

__all__ = ["AllowedPaths", "DirectoryConfigProvider", "FileConfigProvider", "PathProviderConfig"]


_SYSTEM: Final = (Path("/proc"), Path("/sys"))


@validator("list of absolute paths that exist")
def _existing_paths(key: str, value: Collection[str]) -> None:
    for item in value:
        if not Path(item).is_absolute():
            raise invalid_value(key, item, f"Path {item} is not absolute; begin it with /")
        if not Path(item).exists():
            raise invalid_value(key, item, f"Path {item} does not exist; create or remove it")


class PathProviderConfig(Config):
    """Parameters of the providers that read files, set as ``config.providers.<name>.param.*``."""

    allowed_paths: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_existing_paths,
        doc="Files that may be read, and folders in which every file may be read. Symbolic links are followed before "
        "the check. Set it: otherwise anyone who may write connector configurations can read every file that the "
        "worker's user can read, except the worker's own files, /proc and /sys.",
    )
    ttl_ms: Long | None = ttl_ms()


class AllowedPaths:
    """Resolves paths named by configurations, and refuses those that are not allowed.

    If no paths are configured, all are allowed except ``refused``, /proc and /sys.
    """

    def __init__(self, allowed: Collection[str], refused: Collection[Path] = ()) -> None:
        self._allowed = tuple(Path(path) for path in allowed)
        self._refused = tuple(refused)

    def resolve(self, path: str | Path) -> Path:
        """Return the path without ``..`` and symbolic links; raise :class:`RefusedReferenceError` if refused."""
        try:
            real = Path(path).resolve()
            # Resolved each time: a mounted secret is replaced by pointing a link to another folder.
            allowed = any(real.is_relative_to(place.resolve()) for place in self._allowed)
        except (OSError, RuntimeError, ValueError) as error:
            raise RefusedReferenceError(
                f"The path {str(path)!r} cannot be resolved: {error}. Correct the reference."
            ) from error
        if not self._allowed:
            self._refuse(path, real)
        elif not allowed:
            raise RefusedReferenceError(
                f"The path {path} is not allowed to be accessed: it, or the target of its links, is outside "
                "allowed.paths. Refer to a file inside, or add the path to the provider's param.allowed.paths."
            )
        return real

    def _refuse(self, path: str | Path, real: Path) -> None:
        if any(real.is_relative_to(place) for place in _SYSTEM):
            whose = "belongs to the system"
        elif any(_is_same(real, own) for own in self._refused):
            whose = "belongs to the worker itself"
        else:
            return
        raise RefusedReferenceError(
            f"The path {path} is not allowed to be accessed: it, or the target of its links, {whose}. Refer to another "
            "file, and set the provider's param.allowed.paths to the folders meant for connectors."
        )


def _is_same(real: Path, own: Path) -> bool:
    """Return whether two paths lead to the same file, through whatever links. The file need not exist."""
    try:
        return real == own.resolve() or real.samefile(own)
    except (OSError, RuntimeError, ValueError):
        return False


class _PathProvider(ConfigProvider):
    """Reads files at allowed paths."""

    config_class: ClassVar[type[Config]] = PathProviderConfig

    def __init__(self, refused: Collection[Path] = ()) -> None:
        """Make a provider that reads the files in ``refused`` only if ``allowed.paths`` includes them."""
        self._refused = refused

    def configure(self, props: Mapping[str, str]) -> None:
        """Apply ``allowed.paths`` and ``ttl.ms``; raise :class:`~connect.errors.ConfigError` if one is invalid."""
        config = PathProviderConfig.parse(props)
        self._allowed = AllowedPaths(config.allowed_paths, self._refused)
        self._ttl_ms = config.ttl_ms


class FileConfigProvider(_PathProvider):
    """Reads properties files: ``${file:/etc/secrets/database.properties:password}`` is the property ``password``.

    The file is read whenever a connector or task starts. It is an error if the file does not exist, is not a properties
    file or is outside ``allowed.paths``. A reference to a property that is not in the file is left unresolved.
    """

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return the properties in ``keys`` from the file at ``path``, or all of them."""
        if not path:
            return ConfigData({}, self._ttl_ms)
        file = self._allowed.resolve(path)
        try:
            properties = read_properties(file)
        except ConnectError as error:
            raise RefusedReferenceError(f"{error}. Correct {path}, or the reference to it.") from error
        values = properties if keys is None else {key: properties[key] for key in keys if key in properties}
        return ConfigData(values, self._ttl_ms)


class DirectoryConfigProvider(_PathProvider):
    """Reads one file per value: ``${dir:/etc/secrets:password}`` is the content of ``/etc/secrets/password``.

    The value is the whole file, including a trailing line break. Subfolders are not searched. It is an error if the
    folder does not exist or is outside ``allowed.paths``. A reference to a file that does not exist is left unresolved.
    """

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """Return the content of the files in ``keys`` in the folder at ``path``, or of all files."""
        if not path:
            return ConfigData({}, self._ttl_ms)
        folder = self._allowed.resolve(path)
        try:
            # A key is compared with names and never joined to the path: it cannot lead out of the folder.
            chosen = [item for item in folder.iterdir() if (keys is None or item.name in keys) and item.is_file()]
        except OSError as error:
            raise RefusedReferenceError(
                f"Could not list directory {path}: {error.strerror}. Create it, make it readable for the worker's "
                "user, or correct the reference."
            ) from error
        return ConfigData({file.name: self._content(file) for file in chosen}, self._ttl_ms)

    def _content(self, file: Path) -> str:
        try:
            return self._allowed.resolve(file).read_bytes().decode()
        except OSError as error:
            raise RefusedReferenceError(
                f"Could not read file {file}: {error.strerror}. Make it readable for the worker's user, or correct the "
                "reference."
            ) from error
        except UnicodeDecodeError:
            # The cause is left out because it holds what is in the file (invariant I8).
            raise RefusedReferenceError(f"The file {file} is not UTF-8: convert it.") from None
