"""The config providers of values in files: properties files, and folders with a file for each value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar, Final

from connect.config import MEDIUM, Config, Long, invalid_value, option, read_properties, validator
from connect.errors import ConnectError
from connect.providers.provider import ConfigData, ConfigProvider, ttl_ms

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
    """The parameters of the providers that read files, set as ``config.providers.<name>.param.*``."""

    allowed_paths: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_existing_paths,
        doc="Files the provider may read, and folders in which it may read every file. Symbolic links are followed "
        "before the check. Set it: without it, everybody who may write a connector's configuration can read every file "
        "that the worker's user can read, except the files of the worker itself, /proc and /sys.",
    )
    ttl_ms: Long | None = ttl_ms()


class AllowedPaths:
    """Resolves the paths that a configuration names, and refuses those that are not allowed.

    If no paths are configured, all are allowed except ``refused``, /proc and /sys.
    """

    def __init__(self, allowed: Collection[str], refused: Collection[Path] = ()) -> None:
        self._allowed = tuple(Path(path) for path in allowed)
        self._refused = tuple(refused)

    def resolve(self, path: str | Path) -> Path:
        """The path free of ``..`` and symbolic links; a :class:`~connect.errors.ConnectError` if it is not allowed."""
        try:
            real = Path(path).resolve()
            # Resolved each time: a mounted secret is replaced by pointing a link to another folder.
            allowed = any(real.is_relative_to(place.resolve()) for place in self._allowed)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConnectError(f"The path {str(path)!r} cannot be resolved: {error}. Correct the reference.") from error
        if not self._allowed:
            self._refuse(path, real)
        elif not allowed:
            raise ConnectError(
                f"The path {path} is not allowed to be accessed: it, or the target of its links, is outside of "
                "allowed.paths. Name a file in there, or add the path to the provider's param.allowed.paths."
            )
        return real

    def _refuse(self, path: str | Path, real: Path) -> None:
        if any(real.is_relative_to(place) for place in _SYSTEM):
            whose = "belongs to the system"
        elif any(_is_same(real, own) for own in self._refused):
            whose = "belongs to the worker itself"
        else:
            return
        raise ConnectError(
            f"The path {path} is not allowed to be accessed: it, or the target of its links, {whose}. Name another "
            "file, and set the provider's param.allowed.paths to the folders that are meant for connectors."
        )


def _is_same(real: Path, own: Path) -> bool:
    """Whether two paths are of one file, by whatever links; it need not be there yet."""
    try:
        return real == own.resolve() or real.samefile(own)
    except (OSError, RuntimeError, ValueError):
        return False


class _PathProvider(ConfigProvider):
    """Reads files at allowed paths."""

    config_class: ClassVar[type[Config]] = PathProviderConfig

    def __init__(self, refused: Collection[Path] = ()) -> None:
        """Make a provider that reads the files ``refused`` only if ``allowed.paths`` has them."""
        self._refused = refused

    def configure(self, props: Mapping[str, str]) -> None:
        """Take ``allowed.paths`` and ``ttl.ms``; a :class:`~connect.errors.ConfigError` if they are refused."""
        config = PathProviderConfig.parse(props)
        self._allowed = AllowedPaths(config.allowed_paths, self._refused)
        self._ttl_ms = config.ttl_ms


class FileConfigProvider(_PathProvider):
    """Reads properties files: ``${file:/etc/secrets/database.properties:password}`` is the property ``password``.

    A file is read whenever a connector or task starts. A file that does not exist, is not a properties file or is
    outside of ``allowed.paths`` is an error; a property that is not in the file leaves the reference as it is written.
    """

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """The properties of the file at ``path``, or those that ``keys`` names."""
        if not path:
            return ConfigData({}, self._ttl_ms)
        file = self._allowed.resolve(path)
        try:
            properties = read_properties(file)
        except ConnectError as error:
            raise ConnectError(f"{error}. Repair {path}, or the reference that names it.") from error
        values = properties if keys is None else {key: properties[key] for key in keys if key in properties}
        return ConfigData(values, self._ttl_ms)


class DirectoryConfigProvider(_PathProvider):
    """Reads folders of files: ``${dir:/etc/secrets:password}`` is the content of the file ``/etc/secrets/password``.

    The whole file is the value, including a line end at its end. Subfolders are not searched. A folder that does not
    exist or is outside of ``allowed.paths`` is an error; a file that does not exist leaves the reference as it is
    written.
    """

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """The content of the files in the folder at ``path``, or of those that ``keys`` names."""
        if not path:
            return ConfigData({}, self._ttl_ms)
        folder = self._allowed.resolve(path)
        try:
            # A key is compared with names and never joined to the path: it cannot lead out of the folder.
            chosen = [item for item in folder.iterdir() if (keys is None or item.name in keys) and item.is_file()]
        except OSError as error:
            raise ConnectError(
                f"Could not list directory {path}: {error.strerror}. Create it, let the worker's user read it, or "
                "correct the reference that names it."
            ) from error
        return ConfigData({file.name: self._content(file) for file in chosen}, self._ttl_ms)

    def _content(self, file: Path) -> str:
        try:
            return self._allowed.resolve(file).read_bytes().decode()
        except OSError as error:
            raise ConnectError(
                f"Could not read file {file}: {error.strerror}. Let the worker's user read it, or correct the "
                "reference that names it."
            ) from error
        except UnicodeDecodeError:
            # The cause is left out because it holds what is in the file (invariant I8).
            raise ConnectError(f"The file {file} is not UTF-8, as secrets must be; convert it.") from None
