"""Import of plugin classes from their folders. This runs their code, so only child processes do it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, Final

from connect.errors import PluginError
from connect.internals.plugins.entry import PluginEntry, PluginKind

__all__ = ["KIND_CLASSES", "load_class"]


def load_class(entry: PluginEntry) -> type[Any]:
    """Import the class of ``entry``, from its folder if it has one."""
    if entry.java is not None:
        what = entry.kind.value.replace("_", " ")
        raise PluginError(
            f"Class {entry.class_name} is a Java {what}, in {entry.java}, and cannot run in Python: "
            + (
                "this request is not possible for a connector of Java."
                if entry.kind is PluginKind.CONNECTOR
                else f"name a {what} of Python, or run the connector in Java, too (engine=java)."
            )
        )
    if entry.interpreter is not None:
        raise PluginError(
            f"Class {entry.class_name} is in {entry.interpreter.parent.parent.parent}, which has its own interpreter, "
            f"but this connector runs in {sys.prefix}. All plugins of a connector run in the connector's interpreter: "
            "install this one there too."
        )
    if entry.folder is not None and str(entry.folder) not in sys.path:
        sys.path.insert(0, str(entry.folder))
    loaded = _import(entry.class_name)
    _check_origin(entry, loaded)
    kind_class = _kind_class(entry.kind)
    if not (isinstance(loaded, type) and issubclass(loaded, kind_class)):
        raise PluginError(f"Class {entry.class_name} is not a {kind_class.__name__}; use the name of a class that is.")
    return loaded


def _check_origin(entry: PluginEntry, loaded: object) -> None:
    """Refuse a class hidden by another module of the same name: all plugins of a process share one import path."""
    file = getattr(sys.modules.get(getattr(loaded, "__module__", "")), "__file__", None)
    if entry.folder is None or file is None or Path(file).resolve().is_relative_to(entry.folder.resolve()):
        return
    top = entry.class_name.partition(".")[0]
    if any((entry.folder / name).exists() for name in (top, f"{top}.py")):
        raise PluginError(
            f"Class {entry.class_name} of {entry.folder} is hidden by {file}: a connector and its other plugins run in "
            f"one process, which can load only one module {top}. Choose versions from the same folder "
            f"(plugin.version), or rename the module {top}."
        )


def _import(path: str) -> object:
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        module_name = ".".join(parts[:length])
        try:
            target: object = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
                continue
            raise PluginError(f"Class {path} needs the module {error.name}, which is not installed.") from error
        except Exception as error:
            raise PluginError(f"Class {path} cannot be imported: {error}") from error
        try:
            for part in parts[length:]:
                target = getattr(target, part)
        except AttributeError as error:
            raise PluginError(f"Class {path} cannot be imported: {error}") from error
        return target
    raise PluginError(f"Class {path} cannot be imported: there is no module {parts[0]}.")


def _kind_class(kind: PluginKind) -> type[Any]:
    module, _, name = KIND_CLASSES[kind].rpartition(".")
    loaded: type[Any] = getattr(importlib.import_module(module), name)
    return loaded


KIND_CLASSES: Final = {
    PluginKind.CONNECTOR: "connect.connector.Connector",
    PluginKind.CONVERTER: "connect.converter.Converter",
    PluginKind.HEADER_CONVERTER: "connect.converter.HeaderConverter",
    PluginKind.TRANSFORMATION: "connect.transformation.Transformation",
    PluginKind.PREDICATE: "connect.transformation.Predicate",
    PluginKind.CONFIG_PROVIDER: "connect.providers.provider.ConfigProvider",
    PluginKind.ENGINE: "connect.connector.Task",
}
