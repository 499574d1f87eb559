"""Config providers, which look up secrets in files, folders and the environment.

A worker configures the providers, and configurations refer to them::

    config.providers=file
    config.providers.file.class=FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/secrets

    connection.password=${file:/etc/secrets/database.properties:password}
"""

from connect.providers.environment import EnvVarConfigProvider, EnvVarProviderConfig
from connect.providers.file import DirectoryConfigProvider, FileConfigProvider, PathProviderConfig
from connect.providers.provider import ConfigData, ConfigProvider, RefusedReferenceError
from connect.providers.references import ResolvedConfig, has_reference, resolve_references, restore_references

__all__ = [
    "ConfigData",
    "ConfigProvider",
    "DirectoryConfigProvider",
    "EnvVarConfigProvider",
    "EnvVarProviderConfig",
    "FileConfigProvider",
    "PathProviderConfig",
    "RefusedReferenceError",
    "ResolvedConfig",
    "has_reference",
    "resolve_references",
    "restore_references",
]
