"""Values in files of their own, as Kubernetes and Docker mount secrets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from connect.config import Config, ConfigData, ConfigProvider
from connect.errors import ConnectError
from connect.providers.allowed_paths import AllowedPaths, PathProviderConfig

__all__ = ["DirectoryConfigProvider"]


class DirectoryConfigProvider(ConfigProvider):
    """Reads folders of files: ``${dir:/etc/secrets:password}`` is what the file ``/etc/secrets/password`` holds.

    The whole file is the value, a line end at its end too. Files in folders of the folder are not looked at. A folder
    that is not there or is outside of ``allowed.paths`` is an error; a file that is not there leaves the reference as
    it is written.
    """

    config_class: ClassVar[type[Config]] = PathProviderConfig

    def __init__(self, refused: Collection[Path] = ()) -> None:
        """Make one that does not read the files ``refused``, unless ``allowed.paths`` has them."""
        self._refused = refused

    def configure(self, props: Mapping[str, str]) -> None:
        """Take ``allowed.paths`` and ``ttl.ms``; a :class:`~connect.errors.ConfigError` if they are refused."""
        config = PathProviderConfig.parse(props)
        self._allowed = AllowedPaths(config.allowed_paths, self._refused)
        self._ttl_ms = config.ttl_ms

    def get(self, path: str, keys: Collection[str] | None = None) -> ConfigData:
        """What is in the files of the folder at ``path``, or in those of them that ``keys`` names."""
        if not path:
            return ConfigData({}, self._ttl_ms)
        folder = self._allowed.resolve(path)
        try:
            # A key is compared with names and never joined to the path: it cannot lead out of the folder.
            chosen = [item for item in folder.iterdir() if (keys is None or item.name in keys) and item.is_file()]
        except OSError as error:
            raise ConnectError(
                f"Could not list directory {path}: {error.strerror}. Make it, let the worker's user read it, or "
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
            raise ConnectError(f"The file {file} is not UTF-8, which secrets must be; convert it.") from None
