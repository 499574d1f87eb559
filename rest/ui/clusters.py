"""The page of ``sluice ui``: the connectors of several clusters, those that need attention first, each in one list.

It only reads. Each cluster is asked by its REST API in the name of whoever has started the command; what is done to a
connector is done on the page of its own cluster, to which every row leads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

from flask import Blueprint, Response, request

from connect.errors import ConnectError
from rest.client import ADDRESS, RestClient
from rest.http.paths import escaped
from rest.ui.page import Site, page_blueprint, shown
from rest.ui.summaries import ConnectorSummary, Trouble, counted, summaries

__all__ = ["ClusterPages", "Clusters"]

_PATIENCE_SECONDS: Final = 4.0
_FRESH_SECONDS: Final = 2.0
_MOST_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What a cluster has answered: its connectors, or why there is no answer. ``troubles`` are those of its worker."""

    name: str
    url: str
    connectors: Sequence[ConnectorSummary] = ()
    troubles: Sequence[str] = ()
    refusal: str = ""

    @property
    def counts(self) -> dict[Trouble, int]:
        """The number of connectors by trouble."""
        return counted(self.connectors)

    def page(self, connector: str | None = None) -> str:
        """Return the address of the cluster's own page, or of one of its connectors."""
        return f"{self.url}/ui" if connector is None else f"{self.url}/ui/connectors/{escaped(connector)}"


class Clusters:
    """Asks the clusters, each at most once at a time. Any thread may use it."""

    def __init__(self, clients: Mapping[str, RestClient], clock: Callable[[], float] = time.monotonic) -> None:
        self._clients = dict(clients)
        self._clock = clock
        self._threads = ThreadPoolExecutor(max(1, len(clients)), thread_name_prefix="cluster")
        self._asked: dict[str, tuple[float, Future[ClusterView]]] = {}

    def views(self) -> list[ClusterView]:
        """Return what each cluster says now; those that do not answer in time are asked on."""
        asked = {name: self._ask(name) for name in self._clients}
        wait(asked.values(), _PATIENCE_SECONDS)
        return [answer.result() if answer.done() else self._silent(name) for name, answer in asked.items()]

    def close(self) -> None:
        """Ask no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, name: str) -> Future[ClusterView]:
        at, answer = self._asked.get(name, (0.0, None))
        if answer is None or (answer.done() and self._clock() - at >= _FRESH_SECONDS):
            answer = self._threads.submit(_viewed, name, self._clients[name])
            self._asked[name] = self._clock(), answer
        return answer

    def _silent(self, name: str) -> ClusterView:
        refusal = f"It has not answered within {_PATIENCE_SECONDS:.0f} s; the page keeps asking."
        return ClusterView(name, self._clients[name].url, refusal=refusal)


def _viewed(name: str, client: RestClient) -> ClusterView:
    try:
        views = client.get("/connectors?expand=status&expand=info")
        return ClusterView(name, client.url, summaries(views), client.troubles())
    except ConnectError as error:
        return ClusterView(name, client.url, refusal=str(error).removesuffix(ADDRESS).rstrip())


class ClusterPages:
    """The page, for a server of its own that listens as ``hosts`` only: other names could be those of a foreign page
    which makes a browser ask in its user's name.
    """

    def __init__(self, clusters: Clusters, version: str, hosts: frozenset[str]) -> None:
        self._clusters = clusters
        self._site = Site(version, "", "", with_admin=False)
        self._hosts = hosts

    def blueprint(self) -> Blueprint:
        """Create the blueprint."""
        blueprint = page_blueprint(self._site, str)
        blueprint.before_app_request(self._check_host)
        blueprint.add_url_rule("", "clusters", self._show)
        return blueprint

    def _check_host(self) -> tuple[str, int] | None:
        host = request.host.rpartition(":")[0] or request.host
        return None if host.strip("[]") in self._hosts else ("This page is not served under this name.", 403)

    def _show(self) -> Response:
        views = self._clusters.views()
        wanted = {key: request.args.get(key, "") for key in ("q", "cluster", "show")}
        rows = [(view, connector) for view in views for connector in view.connectors]
        found = [row for row in rows if _matches(*row, wanted)]
        found.sort(key=lambda row: (row[1].trouble, row[0].name, row[1].name))
        return shown(
            "clusters.html",
            views=views,
            rows=found[:_MOST_ROWS],
            matched=len(found),
            total=len(rows),
            counts=counted(connector for _, connector in rows),
            wanted=wanted,
        )


def _matches(view: ClusterView, connector: ConnectorSummary, wanted: Mapping[str, str]) -> bool:
    text = wanted["q"].casefold()
    words = (view.name, connector.name, connector.plugin, connector.reason)
    return (
        wanted["cluster"] in ("", view.name)
        and wanted["show"] in ("", connector.trouble.word)
        and any(text in word.casefold() for word in words)
    )
