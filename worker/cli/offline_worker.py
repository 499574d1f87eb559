"""Asks plugins about a worker and connectors given as files, without a running worker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from connect.errors import ConnectError
from connect.internals.plugins import PluginKind, PluginRegistry
from worker.app.worker import WorkerProperties, plugins_of
from worker.cli.mistakes import Mistake, mistakes_of
from worker.config.connector_files import GivenConnector, connector_of, read_document
from worker.config.worker import DistributedConfig, StandaloneConfig, WorkerConfig
from worker.log import configure_logging
from worker.messages import messages
from worker.runtime.entry import main as child_main
from worker.security.redaction import Redaction
from worker.stores.offset.file import read_map
from worker.stores.offset.store import parse_offset, parse_offset_key
from worker.supervisor.inquiries import ask
from worker.supervisor.plugin_homes import PluginHomes
from worker.supervisor.process import ForkServerLauncher

__all__ = ["NOT_ASKED", "OfflineWorker", "Validation", "read_given"]

NOT_ASKED: Final = 2
"""The exit status if nothing could be checked: a file cannot be read, or the worker's file is invalid."""

_PATIENCE_SECONDS: Final = 90.0
_NO_CLASS: Final = 'Missing required configuration "connector.class" which has no default value.'
_NO_FOLDERS: Final = (
    "No plugin of this name is built in or installed as a package. If it is in a folder of the worker's plugin.path, "
    "name the worker's file with --worker. "
)
_WORKERS_FILE: Final = (
    "It has bootstrap.servers, as a worker's file has: `sluice doctor --worker FILE` checks one. Here only files of "
    "connectors are meant."
)
_DEFAULTS: Final = {
    "bootstrap.servers": "localhost:9092",
    "key.converter": "JsonConverter",
    "value.converter": "JsonConverter",
}


@dataclass(frozen=True, slots=True)
class Validation:
    """The mistakes in a connector's configuration, and warnings. ``connection`` tells whether its system was asked."""

    mistakes: list[Mistake]
    warnings: list[str] = field(default_factory=list)
    connection: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class OfflineWorker:
    """A worker's configuration; ``config`` is ``None`` if there is no file and the defaults are used."""

    props: dict[str, str] = field(repr=False)
    config: WorkerConfig | None = field(repr=False)

    @classmethod
    def read(cls, file: Path | None) -> OfflineWorker:
        """Read and check the worker's file; a mistake in it ends the command."""
        configure_logging(logging.WARNING)
        if file is None:
            return cls(dict(_DEFAULTS), None)
        try:
            props = WorkerProperties.read(file)
            kind = DistributedConfig if props.resolved.get("group.id") else StandaloneConfig
            config = kind.parse(props.resolved)
            plugins_of(config)
        except ConnectError as error:
            click.echo(f"Error: the worker's file {file} is wrong: {error}", err=True)
            raise SystemExit(NOT_ASKED) from error
        return cls(dict(props.written), config)

    def ask(
        self,
        inquiry: messages.Inquiry,
        label: str,
        seconds: float,
        on_part: Callable[[messages.Report], None] = lambda _: None,
    ) -> messages.Report:
        """Send an inquiry to a child process and return its answer; without one the command ends."""
        plugins = PluginRegistry.discover((self.config and self.config.plugin_path) or ())
        launcher = ForkServerLauncher(child_main, homes=PluginHomes(plugins))
        report = ask(launcher, inquiry, label, seconds, on_part)
        match report:
            case str():
                reason = f"{label} was not answered: {report}"
            case messages.Failed(trace):
                reason = f"{label} failed in the plugin:\n{trace}"
            case _:
                return report
        click.echo(f"Error: {reason}", err=True)
        raise SystemExit(NOT_ASKED)

    def validated(self, connector: GivenConnector, label: str, *, connect: bool = False) -> Validation:
        """Return what is wrong with a connector's configuration; with ``connect``, its system is asked, too."""
        written = (connector.config.get("connector.class") or "").strip()
        if not written:
            is_worker = "bootstrap.servers" in connector.config
            remedy = _WORKERS_FILE if is_worker else "`sluice plugins list` lists the connectors there are."
            return Validation([Mistake(("connector.class",), _NO_CLASS, remedy)])
        inquiry = messages.ValidateConfig(dict(connector.config), self.props, connect)
        report = self.ask(inquiry, f"The validation of {label}", _PATIENCE_SECONDS)
        if isinstance(report, messages.Validated):
            return Validation(mistakes_of(report.infos), report.warnings, report.connection)
        assert isinstance(report, messages.Refused)
        # Without its class, or with a reference that cannot be resolved, a configuration cannot be read at all.
        hint = _NO_FOLDERS if self.config is None and _is_unknown(written) else ""
        keys = ("connector.class",) if written in report.message else ()
        return Validation([Mistake(keys, f"{hint}{report.message}")])

    def offsets_of(self, connector: str) -> messages.OffsetPairs | None:
        """Return the connector's offsets in a standalone worker's offsets file, which may be in use, or ``None``."""
        if not isinstance(self.config, StandaloneConfig):
            return None if isinstance(self.config, DistributedConfig) else []
        file = self.config.offset_file
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise click.ClickException(f"The worker's offsets file {file} cannot be read: {error.strerror}") from error
        try:
            values = read_map(data) if data else {}
        except ValueError as error:
            raise click.ClickException(f"{file} is not an offsets file ({error}).") from error
        found = [(*parse_offset_key(key), parse_offset(value)) for key, value in values.items()]
        return [(partition, offset) for name, partition, offset in found if name == connector]


def read_given(file: Path) -> GivenConnector:
    """Read a connector's file; its name may be missing. An invalid file ends the command."""
    try:
        return connector_of(file, read_document(file))
    except ConnectError as error:
        click.echo(f"Error: {Redaction().redacted(str(error))}", err=True)
        raise SystemExit(NOT_ASKED) from error


def _is_unknown(connector_class: str) -> bool:
    try:
        PluginRegistry.discover().find(PluginKind.CONNECTOR, connector_class)
    except ConnectError:
        return True
    return False
