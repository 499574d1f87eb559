"""The schema registry client, for all converters that keep their schemas in a registry."""

from converters.registry.client import RegistryClient, RegistryError
from converters.registry.config import RegistryConfig, SubjectNameStrategy, subject_name_strategy
from converters.registry.schema import RegisteredSchema, SchemaReference

__all__ = [
    "RegisteredSchema",
    "RegistryClient",
    "RegistryConfig",
    "RegistryError",
    "SchemaReference",
    "SubjectNameStrategy",
    "subject_name_strategy",
]
