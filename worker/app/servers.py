"""The REST servers of a worker: one for ``listeners``, and one for ``admin.listeners`` if set."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from ssl import SSLContext
from typing import Final

from rest.app import create_admin_app, create_app, create_internal_app
from rest.http.headers import AnswerHeaders
from rest.http.request_log import log_requests
from rest.peers.forwarding import Forwarding
from rest.peers.identities import Identities
from rest.server.server import RestServer
from rest.server.tls import TlsSettings
from rest.ui.web_page import PageSettings
from worker.app.guards import GuardPlan, limits_of
from worker.config.worker import WorkerConfig
from worker.herder.herder import Herder
from worker.recent_log import RecentLog
from worker.security.redaction import Redaction

__all__ = ["RestServers"]

logger = logging.getLogger(__name__)
_ADMIN_LISTENERS: Final = "admin.listeners"


class RestServers:
    """The REST servers of a worker. They bind at once, so that an address in use is reported first.

    ``path`` is the prefix under which a relay serves them, for users and for other workers.
    """

    def __init__(
        self,
        config: WorkerConfig,
        resolved: Mapping[str, str],
        redaction: Redaction,
        stack: ExitStack,
        path: str = "",
    ) -> None:
        self._config = config
        self._redaction = redaction
        self._tls = TlsSettings(resolved)
        self._admin: RestServer | None = None
        limits = limits_of(resolved)
        self._server = RestServer(config.listeners, self._tls, limits=limits)
        stack.callback(self.close)
        if config.admin_listeners:
            self._admin = RestServer(
                config.admin_listeners, TlsSettings(resolved, _ADMIN_LISTENERS), key=_ADMIN_LISTENERS, limits=limits
            )
        self.address = replace(self._server.advertised(config), path=path)
        self._guards = GuardPlan(resolved, self.address, redaction, stack)

    @property
    def names_callers(self) -> bool:
        """Whether requests forwarded to other workers must carry the caller's name."""
        return self._guards.names_callers

    def serve(
        self,
        herder: Herder,
        cluster_id: str,
        forwarding: Forwarding | None,
        recent: RecentLog,
        identities: Identities | None = None,
    ) -> None:
        """Start answering requests."""
        config = self._config
        headers = AnswerHeaders.of(
            config.access_control_allow_origin, config.access_control_allow_methods, config.response_http_headers_config
        )
        with_admin = config.admin_listeners is None
        page = PageSettings(config.ui_enable, config.ui_base_path.rstrip("/") or self.address.path)
        guards = self._guards.guards(herder, identities, f"{page.base}/ui")
        app = create_app(
            herder,
            cluster_id,
            with_admin=with_admin,
            headers=headers,
            forwarding=forwarding,
            recent=recent,
            worker_id=self.address.worker_id,
            hide=self._redaction.hide,
            guards=guards,
            page=page,
            prefix=self.address.path,
        )
        admin = create_admin_app(herder, distributed=forwarding is not None, hide=self._redaction.hide, guards=guards)
        if config.rest_request_log:
            log_requests(app)
            log_requests(admin)
        self._server.answer_with(app)
        if self._admin is not None:
            self._admin.answer_with(admin)
        site = f", its web page at {self.address.url}ui" if page.enabled else ""
        logger.info("The worker is up; its REST API is at %s%s", self.address.url, site)

    def serve_workers(self, herder: Herder, forwarding: Forwarding) -> None:
        """Start answering only the requests of other workers."""
        app = create_internal_app(herder, forwarding, hide=self._redaction.hide, prefix=self.address.path)
        self._server.answer_with(app)
        logger.info("The worker is up; other workers reach it at %s", self.address.url)

    @property
    def own_url(self) -> str:
        """The URL at which this machine reaches the worker, whatever is advertised to others."""
        return f"{self._server.listeners[0].scheme}://127.0.0.1:{self._server.port}"

    def peer_context(self) -> SSLContext | None:
        """Return the TLS context for requests to other workers, which use the same settings; ``None`` without https."""
        return self._tls.client_context() if self.address.scheme == "https" else None

    def close(self) -> None:
        """Close the servers at once, so that clients of a stopping worker are refused and do not wait."""
        for server in (self._server, self._admin):
            if server is not None:
                server.close()
