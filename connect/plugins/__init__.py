"""Plugins: their names and versions, where they are listed, and how their classes are imported."""

from connect.plugins.entry import UNDEFINED, PluginEntry, PluginKind, class_name
from connect.plugins.interpreters import VENV, entries_of_place, spoken_versions
from connect.plugins.listing import BrokenPackage, built_in_file, read_entries
from connect.plugins.loading import load_class
from connect.plugins.registry import PluginRegistry, PluginVersionError, UnlistedPluginError

__all__ = [
    "UNDEFINED",
    "VENV",
    "BrokenPackage",
    "PluginEntry",
    "PluginKind",
    "PluginRegistry",
    "PluginVersionError",
    "UnlistedPluginError",
    "built_in_file",
    "class_name",
    "entries_of_place",
    "load_class",
    "read_entries",
    "spoken_versions",
]
