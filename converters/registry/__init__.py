"""The client of a schema registry, for every converter that keeps its schemas in one."""

from converters.registry.client import RegistryClient, RegistryError
from converters.registry.config import RegistryConfig
from converters.registry.schema import RegisteredSchema, SchemaReference
from converters.registry.subjects import SubjectNameStrategy, subject_name_strategy

__all__ = [
    "RegisteredSchema",
    "RegistryClient",
    "RegistryConfig",
    "RegistryError",
    "SchemaReference",
    "SubjectNameStrategy",
    "subject_name_strategy",
]
