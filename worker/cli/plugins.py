"""The commands ``sluice plugins``: list and describe plugins, install them, and write new ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from worker.cli.groups import CommandGroup

if TYPE_CHECKING:
    from connect.internals.plugins import PluginEntry, PluginRegistry

__all__ = ["plugins"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_PLUGIN_PATH = click.option(
    "--plugin-path", type=_FOLDER, multiple=True, help="A folder of plugins, as in the worker's plugin.path."
)

_AGAIN: Final = "from worker.cli.main import main; main()"
"""Makes another interpreter run the same command as this one."""

_JAVA_PLUGIN: Final = (
    "It is in {}, and runs in a JVM. A worker tells its keys: GET /connector-plugins/CLASS/config, or the page of "
    "plugins."
)
_NEW_KINDS: Final = ("source", "sink", "transformation", "converter")
_KINDS: Final = (
    "source",
    "sink",
    "converter",
    "header_converter",
    "transformation",
    "predicate",
    "config_provider",
    "engine",
)


@click.group(cls=CommandGroup)
def plugins() -> None:
    """List, install and write plugins: connectors, converters, transformations and others."""


@plugins.command("list")
@_PLUGIN_PATH
@click.option("--kind", type=click.Choice(_KINDS), help="Only plugins of this kind.")
def list_plugins(plugin_path: tuple[Path, ...], kind: str | None) -> None:
    """List all plugins with kind and class, connectors first, and the version of those that are not part of Sluice.

    Plugins that are not part of Sluice are imported to test them: errors are shown below a plugin, and broken packages
    at the end. Java plugins are listed with the plugin of Python that runs in place of each, if any does.
    """
    from connect.internals.plugins import PluginRegistry  # noqa: PLC0415 - only this command needs it
    from worker.cli.plugin_imports import OURS, import_errors  # noqa: PLC0415

    registry = PluginRegistry.discover(plugin_path)
    both = [entry for entry in registry.entries() if kind in (None, _kind_of(entry))]
    listed = [entry for entry in both if entry.java is None]
    errors = import_errors(listed)
    # Entries come in the order of their names, which sorting keeps within each kind.
    for entry in sorted(listed, key=lambda entry: _KINDS.index(_kind_of(entry))):
        version = f" {entry.version}" if entry.version and entry.home not in OURS else ""
        click.echo(f"{_kind_of(entry):<17} {entry.class_name}{version}")
        if entry in errors:
            click.echo(f"{'':<17} broken: {errors[entry]}")
    for broken in registry.broken:
        click.echo(f"{'broken':<17} {broken}")
    for entry in both:
        if entry.java is not None:
            version = f" {entry.version}" if entry.version else ""
            what = f"{_kind_of(entry)} {entry.class_name}{version}"
            click.echo(f"{'java':<17} {what}: {_runs(entry, registry)}; {entry.java}")
    for jar in registry.broken_jars:
        click.echo(f"{'broken':<17} {jar}")


def _runs(java: PluginEntry, registry: PluginRegistry) -> str:
    """Return what a configuration runs that names a Java class."""
    native = next((entry.class_name for entry in registry.entries(java.kind) if java.class_name in entry.aliases), None)
    if native is None:
        return "runs in a JVM"
    if java.kind.value == "connector":
        return f"{native} runs in its place, unless engine=java"
    return f"{native} runs in its place in connectors of Python"


def _kind_of(entry: PluginEntry) -> str:
    return entry.type or entry.kind.value


@plugins.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(_NEW_KINDS), required=True, help="The kind of plugin to write.")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), help="Where to write it. [default: NAME, in here]"
)
def new(name: str, kind: str, folder: Path | None) -> None:
    """Write a package with a new plugin: its code, its contract tests, and its packaging.

    The tests pass as written: change the plugin and the tests step by step.
    """
    from connect.errors import ConnectError  # noqa: PLC0415 - only this command needs it
    from worker.cli.plugin_package import PluginPackage  # noqa: PLC0415

    try:
        package = PluginPackage.of(name, kind)
        place = folder or Path(package.name)
        package.write(place)
    except (ConnectError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{place} has a {kind}, {package.class_name}, and its tests. Go on with:\n")
    click.echo(f"  cd {place}\n  pip install --no-deps -e .\n  pytest\n\nREADME.md tells the rest.")


@plugins.command()
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@click.option(
    "--into",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="A folder of plugin.path, or a folder in one; created if missing.",
)
@click.option("--python", default=sys.executable, help="The Python of a new folder, from 3.11. [default: this one]")
@click.option(
    "--sluice", help="Where to install Sluice from: a requirement, a path or a URL. [default: as installed here]"
)
def install(packages: tuple[str, ...], folder: Path, python: str, sluice: str | None) -> None:
    """Install plugins into a folder with its own interpreter, so that their dependencies cannot conflict with others.

    Each PACKAGE is an argument for pip: a name, a requirement, a wheel, a path. pip uses its own configuration files
    and PIP_ variables. Without a PACKAGE, the folder gets this version of Sluice, which workers need there.
    """
    from worker.cli.plugin_install import install_plugins  # noqa: PLC0415 - only this command needs it

    install_plugins(packages, folder, python, sluice)


@plugins.command()
@click.argument("name")
@_PLUGIN_PATH
@click.option("--version", help="A version, or range of versions such as [1.0,2.0). [default: the newest]")
def describe(name: str, plugin_path: tuple[Path, ...], version: str | None) -> None:
    """Describe the plugin NAME and its configuration keys. This runs its code."""
    from connect.config import to_markdown  # noqa: PLC0415 - only this command needs it
    from connect.errors import PluginError  # noqa: PLC0415
    from connect.internals.plugins import PluginKind, PluginRegistry, PluginVersionError, load_class  # noqa: PLC0415
    from connect.internals.plugins.versions import VersionSpecError  # noqa: PLC0415

    # Users run the plugin they name with their own rights: its class need not be listed or allowed.
    registry = PluginRegistry.discover(plugin_path, ["*"])
    for kind in PluginKind:
        try:
            entry = registry.find(kind, name, version)
        except (PluginVersionError, VersionSpecError) as error:
            raise click.ClickException(str(error)) from error
        except PluginError:
            continue
        if entry.interpreter is not None:
            raise SystemExit(_described_by(entry.interpreter, name, plugin_path, version))
        if entry.java is not None:
            click.echo(f"{entry.class_name} ({entry.type or kind.value}) of Java\n\n{_JAVA_PLUGIN.format(entry.java)}")
            return
        try:
            plugin = load_class(entry)
        except PluginError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"{entry.class_name} ({entry.type or kind.value})\n")
        click.echo(f"{(plugin.__doc__ or '').strip()}\n")
        if (java := registry.java_counterpart(entry)) is not None:
            click.echo(f"It runs in place of {java.class_name} in {java.java}, unless engine=java.\n")
        if (config_class := getattr(plugin, "config_class", None)) is not None:
            click.echo(to_markdown(config_class))
        return
    raise click.ClickException(f"There is no plugin called {name}; `sluice plugins list` lists them.")


def _described_by(interpreter: Path, name: str, plugin_path: tuple[Path, ...], version: str | None) -> int:
    """Run this command with the interpreter that the plugin is installed in, and return its exit status."""
    paths = [part for path in plugin_path for part in ("--plugin-path", str(path))]
    options = [*paths, *(["--version", version] if version is not None else [])]
    done = subprocess.run([interpreter, "-P", "-c", _AGAIN, "plugins", "describe", *options, name], check=False)
    return done.returncode
