"""Reads the flows of a file for the commands, with references resolved, and selects them by name."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from connect.errors import ConnectError
from connectors.mirror.clients import Clients, Cluster
from connectors.mirror.flows import Flow, Flows
from connectors.mirror.lost_keys import lost_keys
from connectors.mirror.survey import Survey, survey
from worker.app.mirror.connectors import connector_keys, worker_keys
from worker.app.worker import WorkerProperties
from worker.config.file_access import WORKER_FILE
from worker.log import configure_logging

__all__ = ["FLOW_FILE", "FlowFile", "surveyed"]

FLOW_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_SOURCE: Final = "MirrorSourceConnector"


@dataclass(frozen=True, slots=True)
class FlowFile:
    """A file of flows."""

    path: Path
    flows: Flows
    written: Flows
    """The same flows with unresolved references."""

    lost: Sequence[str]
    """The keys that have no effect, each with a remedy."""

    @classmethod
    def read(cls, path: Path) -> FlowFile:
        """Read a file. A mistake in it ends the command."""
        configure_logging(logging.WARNING)
        try:
            props = WorkerProperties.read(path)
            written = _flow_properties(props.written)
            keys = connector_keys()
            flows = Flows(written, keys)
            lost = lost_keys(written, flows, keys, worker_keys())
            return cls(path, Flows(_flow_properties(props.resolved), keys), flows, lost)
        except ConnectError as error:
            raise click.ClickException(f"{path}: {error}") from error

    def running(self, targets: Sequence[str] = ()) -> tuple[Flow, ...]:
        """Return the enabled flows, or only those into some clusters; if there are none, the command ends."""
        try:
            return tuple(flow for flow in self.flows.running(targets) if flow.enabled)
        except ConnectError as error:
            raise click.ClickException(str(error)) from error

    def named(self, name: str | None) -> Flow:
        """Return the flow of this name, such as ``A->B``, or the only enabled one."""
        enabled = self.running()
        if name is None:
            if len(enabled) != 1:
                raise click.UsageError(f"Name a flow: {', '.join(flow.name for flow in enabled)}.")
            return enabled[0]
        source, _, target = name.partition("->")
        if source not in self.flows.clusters or target not in self.flows.clusters or source == target:
            known = ", ".join(self.flows.clusters)
            raise click.UsageError(f"{name} is not a flow. Write SOURCE->TARGET, in quotes; the clusters are {known}.")
        return self.flows.flow(source, target)


def surveyed(flows: Sequence[Flow]) -> dict[str, Survey]:
    """Survey the clusters of some flows, each once, by alias; one that does not answer ends the command."""
    sources = {flow.source for flow in flows}
    places = {flow.source: (flow, Cluster.SOURCE) for flow in flows} | {
        flow.target: (flow, Cluster.TARGET) for flow in flows
    }
    found: dict[str, Survey] = {}
    for alias, (flow, cluster) in sorted(places.items()):
        admin = Clients(flow.connectors[_SOURCE]).admin(cluster, "plan-admin")
        try:
            found[alias] = survey(admin, alias, with_groups=alias in sources)
        except ConnectError as error:
            raise click.ClickException(str(error)) from error
    return found


def _flow_properties(props: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in props.items() if key != WORKER_FILE}
