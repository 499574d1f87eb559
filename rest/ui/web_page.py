"""The web page of a worker: all pages below ``/ui``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import Blueprint

from rest.access.stored_configs import StoredConfigs
from rest.http.timeouts import Patience
from rest.ui.connector import ConnectorPages
from rest.ui.overview import cluster_page, flows_page, overview
from rest.ui.page import Site, page_blueprint
from rest.ui.plugins import plugin_pages
from rest.ui.topology import topology_page
from worker.herder.herder import Herder
from worker.recent_log import RecentLog

__all__ = ["PageSettings", "web_page"]


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Whether the web page is served, and the path under which a proxy serves the worker (``ui.base.path``)."""

    enabled: bool = True
    base: str = ""


def web_page(
    site: Site, herder: Herder, recent: RecentLog, patience: Patience, hide: Callable[[str], str]
) -> Blueprint:
    """Create the pages. They show what the REST API returns, and make changes only through its calls."""
    blueprint = page_blueprint(site, hide, herder.troubles)
    overview(blueprint, herder.connectors, herder.histories, patience)
    ConnectorPages(site, herder, StoredConfigs(herder), recent, patience, hide).put_on(blueprint)
    flows_page(blueprint, herder.connectors, patience)
    topology_page(blueprint, herder.connectors, patience)
    cluster_page(blueprint, herder, patience)
    plugin_pages(blueprint, herder.plugins, patience)
    return blueprint
