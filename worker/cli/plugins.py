"""The commands ``sluice plugins``: list the plugins, and describe one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from connect.plugins import PluginEntry

__all__ = ["plugins"]

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_PLUGIN_PATH = click.option(
    "--plugin-path", type=_FOLDER, multiple=True, help="A folder of plugins, as in the worker's plugin.path."
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


@click.group()
def plugins() -> None:
    """Show the installed plugins: connectors, converters, transformations and others."""


@plugins.command("list")
@_PLUGIN_PATH
@click.option("--kind", type=click.Choice(_KINDS), help="Only plugins of this kind.")
def list_plugins(plugin_path: tuple[Path, ...], kind: str | None) -> None:
    """List every plugin with its kind and class, connectors first.

    Plugins that do not come with Sluice are imported on trial: what is wrong with one is shown below it, and broken
    packages at the end.
    """
    from connect.plugins import PluginRegistry  # noqa: PLC0415 - only this command needs it
    from worker.cli.plugin_imports import import_errors  # noqa: PLC0415

    registry = PluginRegistry.discover(plugin_path)
    listed = [entry for entry in registry.entries() if kind in (None, _kind_of(entry))]
    errors = import_errors(listed)
    # Entries come in the order of their names, which sorting keeps within each kind.
    for entry in sorted(listed, key=lambda entry: _KINDS.index(_kind_of(entry))):
        click.echo(f"{_kind_of(entry):<17} {entry.class_name}")
        if entry in errors:
            click.echo(f"{'':<17} broken: {errors[entry]}")
    for broken in registry.broken:
        click.echo(f"{'broken':<17} {broken}")


def _kind_of(entry: PluginEntry) -> str:
    return entry.type or entry.kind.value


@plugins.command()
@click.argument("name")
@click.option("--kind", type=click.Choice(_NEW_KINDS), required=True, help="What to begin with.")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), help="Where to write it. [default: NAME, in here]"
)
def new(name: str, kind: str, folder: Path | None) -> None:
    """Write a package with a new plugin: the plugin, its contract tests, and what it takes to install it.

    Its tests pass as they are: change the plugin and the tests step by step to what you want.
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
@click.argument("name")
@_PLUGIN_PATH
def describe(name: str, plugin_path: tuple[Path, ...]) -> None:
    """Describe the plugin NAME and its configuration keys. This runs its code."""
    from connect.config import to_markdown  # noqa: PLC0415 - only this command needs it
    from connect.errors import PluginError  # noqa: PLC0415
    from connect.plugins import PluginKind, PluginRegistry, load_class  # noqa: PLC0415

    # Users run the plugin they name with their own rights: its class need not be listed or allowed.
    registry = PluginRegistry.discover(plugin_path, ["*"])
    for kind in PluginKind:
        try:
            entry = registry.find(kind, name)
        except PluginError:
            continue
        try:
            plugin = load_class(entry)
        except PluginError as error:
            raise click.ClickException(str(error)) from error
        click.echo(f"{entry.class_name} ({entry.type or kind.value})\n")
        click.echo(f"{(plugin.__doc__ or '').strip()}\n")
        if (config_class := getattr(plugin, "config_class", None)) is not None:
            click.echo(to_markdown(config_class))
        return
    raise click.ClickException(f"There is no plugin called {name}; `sluice plugins list` lists them.")
