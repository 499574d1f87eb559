"""The REST API as Flask applications on top of the herder."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final

from flask import Blueprint, Flask, Response, current_app, request

from rest.access.guards import NO_GUARDS, Guards
from rest.http.body import JsonAnswers, check_accept, check_content_type
from rest.http.errors import register_errors
from rest.http.headers import AnswerHeaders
from rest.http.paths import EscapedName, MatchingRule, RawPaths
from rest.http.timeouts import Patience
from rest.peers.forwarding import Forwarding
from rest.resources.cluster import cluster
from rest.resources.connectors import connectors
from rest.resources.dead_letters import dead_letters
from rest.resources.history import history
from rest.resources.internal import internal
from rest.resources.loggers import loggers
from rest.resources.logs import logs
from rest.resources.metrics import METRICS, metrics
from rest.resources.mirror_flows import mirror_flows
from rest.resources.offsets import offsets
from rest.resources.plugins import plugins
from rest.resources.preview import previews
from rest.resources.root import root
from rest.resources.sessions import sessions
from rest.resources.timeline import timeline
from rest.resources.versions import versions
from rest.ui.clusters import ClusterPages
from rest.ui.page import NAME as WEB_PAGE
from rest.ui.page import Site
from rest.ui.web_page import PageSettings, web_page
from worker.herder.herder import Herder
from worker.recent_log import RecentLog

__all__ = ["REQUEST_TIMEOUT", "create_admin_app", "create_app", "create_clusters_app", "create_internal_app"]

REQUEST_TIMEOUT: Final = 90.0
_TAKES_FORMS: Final = ("sessions.begin",)


def create_app(
    herder: Herder,
    cluster_id: str,
    *,
    with_admin: bool = True,
    headers: AnswerHeaders = AnswerHeaders(),  # noqa: B008 - it cannot be changed
    forwarding: Forwarding | None = None,
    recent: RecentLog | None = None,
    worker_id: str = "",
    request_timeout: float = REQUEST_TIMEOUT,
    hide: Callable[[str], str] = str,
    guards: Guards = NO_GUARDS,
    page: PageSettings = PageSettings(),  # noqa: B008 - it cannot be changed
    prefix: str = "",
) -> Flask:
    """Create the application of one worker; ``cluster_id`` identifies the Kafka cluster it works with.

    ``with_admin`` decides whether ``/admin`` is part of this application; with ``admin.listeners`` it is served
    elsewhere or not at all. ``forwarding`` passes requests on to the worker responsible for them; only distributed
    workers have it. ``recent`` holds the log lines that this worker, ``worker_id``, has written for connectors.
    ``hide`` removes the worker's secrets from errors. ``guards`` decide who may send which requests. ``page`` decides
    whether the web page is served, and at which path. ``prefix`` is the path under which a relay passes requests on to
    this application.
    """
    patience = Patience(request_timeout)
    version = importlib.metadata.version("sluice-connect")
    resources = [
        root(
            herder.ping,
            herder.unready,
            version,
            cluster_id,
            with_admin=with_admin,
            sign_in=guards.access is not None,
            hide=hide,
            warnings=lambda: [*guards.warnings(), *map(hide, herder.refusals())],
            troubles=herder.troubles,
        ),
        sessions(guards.access, herder.connectors, patience),
        connectors(herder.connectors, patience),
        versions(herder.versions, herder.connectors, patience),
        offsets(herder.offsets, patience),
        dead_letters(herder.dead_letters, patience),
        logs(herder.connectors, herder.cluster, recent or RecentLog(), worker_id, patience),
        history(herder.histories, patience),
        timeline(herder.timelines, herder.versions, patience),
        metrics(lambda: herder.snapshot, version),
        plugins(herder.plugins, patience),
        cluster(herder, patience),
        previews(herder.previews, patience),
        mirror_flows(herder.connectors, patience),
    ]
    if with_admin:
        resources.append(loggers(herder.loggers, patience, distributed=forwarding is not None))
    if page.enabled:
        site = Site(version, cluster_id, worker_id, page.base, with_admin)
        resources.append(web_page(site, herder, recent or RecentLog(), patience, hide))
    if forwarding is None:
        return _app(resources, headers, hide, guards, prefix)
    app = _app([*resources, internal(herder.peers, patience)], headers, hide, guards, prefix)
    forwarding.put_on(app)
    return app


def create_internal_app(
    herder: Herder, forwarding: Forwarding, *, hide: Callable[[str], str] = str, prefix: str = ""
) -> Flask:
    """Create the application of a worker without a public REST API: it serves only signed requests of workers."""
    app = _app([internal(herder.peers, Patience(REQUEST_TIMEOUT))], AnswerHeaders(), hide, NO_GUARDS, prefix)
    forwarding.put_on(app)
    return app


def create_admin_app(
    herder: Herder,
    *,
    distributed: bool = False,
    request_timeout: float = REQUEST_TIMEOUT,
    hide: Callable[[str], str] = str,
    guards: Guards = NO_GUARDS,
) -> Flask:
    """Create the application of ``admin.listeners``: ``/admin`` and ``/metrics``. It forwards nothing."""
    version = importlib.metadata.version("sluice-connect")
    resources = [
        loggers(herder.loggers, Patience(request_timeout), distributed=distributed),
        metrics(lambda: herder.snapshot, version),
    ]
    return _app(resources, AnswerHeaders(), hide, guards)


def create_clusters_app(pages: ClusterPages) -> Flask:
    """Create the application that shows several clusters in one page."""
    return _app([pages.blueprint()], AnswerHeaders(), str, NO_GUARDS)


def _app(
    resources: Iterable[Blueprint],
    headers: AnswerHeaders,
    hide: Callable[[str], str],
    guards: Guards,
    prefix: str = "",
) -> Flask:
    app = Flask("sluice", static_folder=None)
    app.url_rule_class = MatchingRule
    app.json = JsonAnswers(app)
    app.url_map.converters["name"] = EscapedName
    app.url_map.merge_slashes = False
    for resource in resources:
        app.register_blueprint(resource)
    register_errors(app, hide)
    guards.put_on(app)
    app.before_request(_negotiate)
    app.after_request(_typed)
    headers.put_on(app)
    app.wsgi_app = RawPaths(app.wsgi_app, prefix)  # type: ignore[method-assign]
    return app


def _negotiate() -> Response | None:
    """Handle what is the same for every resource: OPTIONS requests, and content types other than JSON."""
    if request.routing_exception is not None:
        return None
    if request.method == "OPTIONS":
        return _options(current_app)
    if request.blueprint == WEB_PAGE or request.endpoint in _TAKES_FORMS:
        return None
    if request.endpoint != METRICS:
        check_accept()
    check_content_type()
    return None


def _typed(response: Response) -> Response:
    """Remove the content type of empty answers and the charset of others, since clients compare the bare type."""
    is_metrics = request.endpoint == METRICS and response.mimetype != "application/json"
    if request.blueprint == WEB_PAGE or is_metrics:
        return response
    if response.status_code == HTTPStatus.NO_CONTENT or (not response.get_data() and request.method != "HEAD"):
        del response.headers["Content-Type"]
    else:
        response.headers["Content-Type"] = response.mimetype
    return response


def _options(app: Flask) -> Response:
    methods = ", ".join(sorted(app.create_url_adapter(request).allowed_methods()))  # type: ignore[union-attr]
    return Response(methods, mimetype="text/plain", headers={"Allow": methods})
