"""The doctor's look at a running worker, over its REST API: its health, its clock, and its connectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rest.client import RestClient, RestError
from rest.http.paths import escaped
from worker.cli.doctor.findings import Finding, Level
from worker.cli.mistakes import mistakes_of
from worker.cli.status_summary import failures, notices

__all__ = ["cluster_findings", "spark_users"]

_SKEW_SECONDS: Final = 5.0


def cluster_findings(client: RestClient, there: str) -> Iterator[Finding]:
    """Yield what is wrong with a worker and the connectors of its cluster. ``there`` are options for commands."""
    try:
        client.get("/")
        troubles = client.troubles()
        views: Mapping[str, Any] = client.get("/connectors?expand=info&expand=status")
    except RestError as error:
        yield Finding("worker", Level.ERROR, str(error), "Start a worker: sluice distributed WORKER.properties")
        return
    for trouble in troubles:
        yield Finding("worker", Level.ERROR, trouble)
    if not troubles:
        yield Finding("worker", Level.FINE, f"The worker at {client.url} is well.")
    yield from _clock(client)
    for name, view in sorted(views.items()):
        yield from _connector(client, name, view, there)


def _clock(client: RestClient) -> Iterator[Finding]:
    try:
        ahead = client.clock_difference()
    except RestError:
        return
    if ahead is not None and abs(ahead) > _SKEW_SECONDS:
        told = f"The clock of the worker at {client.url} differs from this machine's by {abs(ahead):.0f} s."
        yield Finding("clock", Level.WARNING, told, "timedatectl set-ntp true, on both machines")


def spark_users(client: RestClient) -> list[str]:
    """Return the connectors that need Spark."""
    try:
        views: Mapping[str, Any] = client.get("/connectors?expand=info")
    except RestError:
        return []
    configs = {name: (view.get("info") or {}).get("config", {}) for name, view in views.items()}
    return sorted(
        name
        for name, config in configs.items()
        if config.get("engine", "").lower() == "spark" or "spark" in config.get("connector.class", "").lower()
    )


def _connector(client: RestClient, name: str, view: Mapping[str, Any], there: str) -> Iterator[Finding]:
    area = f"connector {name}"
    found = list(_of_status(view.get("status"), area, name, there))
    config = (view.get("info") or {}).get("config")
    if config is None:
        yield from found
        return
    path = f"/connector-plugins/{escaped(config.get('connector.class', ''))}/config/validate"
    try:
        infos = client.put(path, {}, connector=name, connect="true")
    except RestError as error:
        yield from (*found, Finding(area, Level.WARNING, f"It cannot be checked: {error}"))
        return
    for mistake in mistakes_of(infos):
        change = f"sluice connectors set {name} {mistake.keys[0]}=VALUE{there}"
        found.append(Finding(area, Level.ERROR, f"{', '.join(mistake.keys)}: {mistake.error}", change))
    yield from found
    if not found:
        connection = infos.get("connection") or {"checked": False}
        asked = "its system was asked" if connection["checked"] else "its system was not asked"
        state = ((view.get("status") or {}).get("connector") or {}).get("state")
        is_so = {"PAUSED": "It is paused", "STOPPED": "It is stopped"}.get(str(state), "It runs")
        yield Finding(area, Level.FINE, f"{is_so}, and its configuration is right; {asked}.")


def _of_status(status: Mapping[str, Any] | None, area: str, name: str, there: str) -> Iterator[Finding]:
    if status is None:
        yield Finding(area, Level.WARNING, "It has no status: no worker runs it.", f"sluice connectors restart {name}")
        return
    for failure in failures(dict(status)):
        where = "The connector" if failure.task is None else f"Task {failure.task}"
        again = f"Remove the cause, then: sluice connectors restart {name} --failed{there}"
        yield Finding(area, Level.ERROR, f"{where} failed: {failure.cause}", again)
    for notice in notices(dict(status)):
        yield Finding(area, Level.WARNING, notice)
