"""Plugins: their names and versions, where they are listed, and how their classes are imported."""

from connect.internals.plugins.class_outline import summary
from connect.internals.plugins.entry import UNDEFINED, PluginEntry, PluginKind, class_name
from connect.internals.plugins.interpreters import VENV, entries_of_place, spoken_versions
from connect.internals.plugins.java_plugins import JavaPlugin, java_plugins
from connect.internals.plugins.listing import BrokenPackage, built_in_file, read_entries
from connect.internals.plugins.loading import load_class
from connect.internals.plugins.registry import PluginRegistry, PluginVersionError, UnlistedPluginError

__all__ = [
    "UNDEFINED",
    "VENV",
    "BrokenPackage",
    "JavaPlugin",
    "PluginEntry",
    "PluginKind",
    "PluginRegistry",
    "PluginVersionError",
    "UnlistedPluginError",
    "built_in_file",
    "class_name",
    "entries_of_place",
    "java_plugins",
    "load_class",
    "read_entries",
    "spoken_versions",
    "summary",
]
