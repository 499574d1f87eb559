"""The doctor's look at the machine and what is installed: plugins, converters, clock, disk, descriptors, Java."""

from __future__ import annotations

import ctypes
import importlib.util
import resource
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from connect.errors import ConnectError
from connect.internals.chain.converters import converter_props
from connect.internals.jvm.java import find_java
from connect.internals.plugins import PluginKind, PluginRegistry, load_class
from worker.cli.doctor.findings import Finding, Level
from worker.cli.plugin_imports import OURS, import_errors
from worker.config.worker import StandaloneConfig, WorkerConfig

__all__ = ["java_findings", "machine_findings", "plugin_findings"]

_LEAST_FREE_BYTES: Final = 1 << 30
_LEAST_FREE_SHARE: Final = 0.05
_LEAST_FILES: Final = 4096
_WANTED_FILES: Final = 65_536
_NOT_SYNCHRONISED: Final = 5
"""What ``adjtimex`` returns if nothing sets the clock of the kernel."""
_TIMEX_BYTES: Final = 256
_SPARK_JAVA: Final = 17


def plugin_findings(props: Mapping[str, str], config: WorkerConfig) -> Iterator[Finding]:
    """Yield the plugins that cannot be imported, and what is wrong with the worker's converters."""
    registry = PluginRegistry.discover(config.plugin_path or (), config.plugin_import_allowlist)
    entries = registry.entries()
    found = [Finding("plugins", Level.ERROR, str(broken), _reinstall(str(broken))) for broken in registry.broken]
    found += [
        Finding("plugins", Level.ERROR, f"{entry.class_name} cannot be imported: {error}", _reinstall(error))
        for entry, error in import_errors(entries).items()
    ]
    yield from found
    if not found:
        foreign = sum(entry.home not in OURS for entry in entries)
        yield Finding(
            "plugins", Level.FINE, f"{len(entries)} are installed, of which {foreign} are not part of Sluice."
        )
    for role, name in (("key", config.key_converter), ("value", config.value_converter)):
        yield _converter_finding(registry, props, role, name)


def _reinstall(error: str) -> str:
    if "No module named" in error:
        return f"pip install the package of {error.rpartition('No module named')[2].strip(' .')}, or remove the plugin."
    return "Correct or remove the plugin: sluice plugins list shows its errors."


def _converter_finding(registry: PluginRegistry, props: Mapping[str, str], role: str, name: str) -> Finding:
    key = f"{role}.converter"
    try:
        entry = registry.find(PluginKind.CONVERTER, name)
        if entry.home not in OURS:
            return Finding("converters", Level.FINE, f"{key}={name} is not part of Sluice, and was imported.")
        config = load_class(entry).config_class.parse(converter_props(props, role))
        asked = _ask_registry(config)
    except ConnectError as error:
        return Finding("converters", Level.ERROR, f"{key}={name}: {error}", f"Correct {key} and the keys below it.")
    return Finding("converters", Level.FINE, f"{key}={name}{asked}.")


def _ask_registry(config: object) -> str:
    """Ask the registry of a converter for a subject, and return what to tell of it; nothing if it has none."""
    from converters.registry.client import RegistryClient  # noqa: PLC0415 - it loads the HTTP client
    from converters.registry.config import RegistryConfig  # noqa: PLC0415

    if not isinstance(config, RegistryConfig):
        return ""
    client = RegistryClient(config, wait=lambda _: None)
    try:
        client.newest("sluice-doctor")
    finally:
        client.close()
    return ", whose registry answers"


def machine_findings(config: WorkerConfig) -> Iterator[Finding]:
    """Yield what is wrong with the clock, the disks and the limit of open files."""
    yield _clock()
    yield from _disks(config)
    yield _descriptors()


def _clock() -> Finding:
    status = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    if status == _NOT_SYNCHRONISED:
        told = "Nothing keeps this machine's clock right. Tokens, certificates and the times of records depend on it."
        return Finding("clock", Level.WARNING, told, "timedatectl set-ntp true")
    if status < 0:
        return Finding("clock", Level.FINE, "It is not known here whether the clock is kept right.")
    return Finding("clock", Level.FINE, "The clock is kept right.")


def _disks(config: WorkerConfig) -> Iterator[Finding]:
    places = {"the folder of temporary files": Path("/tmp"), "this folder": Path.cwd()}  # noqa: S108 - it is looked at
    if isinstance(config, StandaloneConfig):
        places["the folder of offset.storage.file.filename"] = config.offset_file.absolute().parent
    seen: set[int] = set()
    for what, place in places.items():
        if not place.is_dir():
            yield Finding("disk", Level.ERROR, f"{what}, {place}, does not exist.", f"mkdir -p {place}")
            continue
        if (device := place.stat().st_dev) in seen:
            continue
        seen.add(device)
        usage = shutil.disk_usage(place)
        told = f"{what}, {place}, has {usage.free / 1e9:.1f} GB free of {usage.total / 1e9:.1f}."
        if usage.free < _LEAST_FREE_BYTES or usage.free < usage.total * _LEAST_FREE_SHARE:
            repair = f"Make room: du -xh --max-depth=2 {place} | sort -h | tail"
            yield Finding("disk", Level.WARNING, told, repair)
        else:
            yield Finding("disk", Level.FINE, told)


def _descriptors() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _WANTED_FILES if hard == resource.RLIM_INFINITY else hard
    told = f"A worker started from here may open {most:,} files; it needs five for each connector and task."
    if most < _LEAST_FILES:
        repair = f"ulimit -n {_WANTED_FILES}, or LimitNOFILE={_WANTED_FILES} in the systemd unit"
        return Finding("open files", Level.WARNING, told, repair)
    return Finding("open files", Level.FINE, told)


def java_findings(users: list[str]) -> Iterator[Finding]:
    """Yield what is missing of Java and Spark for the connectors that run there; nothing if there are none."""
    if not users:
        return
    needed = f"for {', '.join(users[:3])}{' and others' if len(users) > 3 else ''}"
    if importlib.util.find_spec("pyspark") is None:
        yield Finding("Spark", Level.ERROR, f"PySpark is needed {needed}.", "pip install 'sluice-connect[spark,java]'")
    try:
        java = find_java(_SPARK_JAVA)
    except ConnectError as error:
        yield Finding("Java", Level.ERROR, f"{error}", "pip install 'sluice-connect[java]'")
    else:
        yield Finding("Java", Level.FINE, f"Java {java.version} at {java.home} is there {needed}.")
