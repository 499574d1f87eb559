"""Values in properties files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

from connect.config import Config, ConfigData, ConfigProvider, read_properties
from connect.errors import ConnectError
from connect.providers.allowed_paths import AllowedPaths, PathProviderConfig

__all__ = ["FileConfigProvider"]


class FileConfigProvider(ConfigProvider):
    """Reads properties files: ``${file:/etc/secrets/database.properties:password}`` is the property ``password``.

    A file is read whenever a connector or task starts. One that is not there, is no properties file or is outside of
    ``allowed.paths`` is an error; a property that is not in it leaves the reference as it is written.
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
        """The properties of the file at ``path``, or those of them that ``keys`` names."""
        if not path:
            return ConfigData({}, self._ttl_ms)
        file = self._allowed.resolve(path)
        try:
            properties = read_properties(file)
        except ConnectError as error:
            raise ConnectError(f"{error}. Repair {path}, or the reference that names it.") from error
        values = properties if keys is None else {key: properties[key] for key in keys if key in properties}
        return ConfigData(values, self._ttl_ms)
