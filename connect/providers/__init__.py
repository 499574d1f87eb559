"""The config providers that come with Sluice: they look secrets up in files, folders and the environment.

A worker names those it uses, and configurations refer to them::

    config.providers=file
    config.providers.file.class=FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/secrets

    connection.password=${file:/etc/secrets/database.properties:password}
"""

from connect.providers.allowed_paths import PathProviderConfig
from connect.providers.directory import DirectoryConfigProvider
from connect.providers.environment import EnvVarConfigProvider, EnvVarProviderConfig
from connect.providers.file import FileConfigProvider

__all__ = [
    "DirectoryConfigProvider",
    "EnvVarConfigProvider",
    "EnvVarProviderConfig",
    "FileConfigProvider",
    "PathProviderConfig",
]
