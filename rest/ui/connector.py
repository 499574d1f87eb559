"""``/ui/connectors/NAME`` and the pages below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from flask import Blueprint, Response, request

from connect.errors import ConnectError, NotFoundError, PluginError
from connect.internals.plugins import PluginEntry, PluginKind
from rest.access.caller import caller
from rest.access.stored_configs import StoredConfigs
from rest.http.timeouts import Patience
from rest.resources.timeline import timeline_document
from rest.resources.versions import history_document, restoring
from rest.ui.charts import SPANS, charts_of, graphs_of
from rest.ui.formats import record_text
from rest.ui.letters import Looked, LookedFor, excerpt, is_replayed, looked_through, short_error
from rest.ui.measurements import measured_tables
from rest.ui.page import Site
from rest.ui.page import shown as page_shown
from rest.ui.plugins import FRAMEWORK_GROUPS
from rest.ui.reasons import MOST_REASONS, reasons_of
from rest.ui.summaries import NOT_COMMITTED, summaries
from worker.herder.dead_letter_repairs import read_place
from worker.herder.dead_letters import MOST_LISTED, read_after
from worker.herder.herder import Herder
from worker.herder.requests import Request
from worker.metrics.history import added
from worker.metrics.work import last_work
from worker.recent_log import LoggedLines, RecentLog
from worker.security.permissions import Right
from worker.stores.versions.version import MOST_VERSIONS

__all__ = ["ConnectorPages"]

_MOST_STRETCHES: Final = 3
_SPAN: Final = 300
_LINES: Final = 500
_MOST_EVENTS: Final = 12
_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF")
_ROOT: Final = "root"


class ConnectorPages:
    """The pages of one connector. They show what the REST API returns, and hold no state."""

    def __init__(
        self,
        site: Site,
        herder: Herder,
        configs: StoredConfigs,
        recent: RecentLog,
        patience: Patience,
        hide: Callable[[str], str],
    ) -> None:
        self._site = site
        self._herder = herder
        self._recent = recent
        self._patience = patience
        self._hide = hide
        self._configs = configs

    def put_on(self, blueprint: Blueprint) -> None:
        """Add the pages to a blueprint."""
        pages: dict[str, Callable[[str], Response]] = {
            "": self._status,
            "/offsets": self._offsets,
            "/dlq": self._dead_letters,
            "/logs": self._logs,
            "/config": self._config,
            "/versions": self._versions,
            "/loads": self._loads,
            "/measurements": self._measurements,
            "/preview": self._preview,
        }
        for path, page in pages.items():
            blueprint.add_url_rule(
                f"/connectors/<name:name>{path}", f"connector{path.replace('/', '-')}", _for_viewers(page)
            )
        blueprint.add_url_rule("/connectors/<name:name>/edit", "connector-edit", self._edit)
        blueprint.add_url_rule("/connectors/<name:name>/dlq/<name:record>", "connector-dead-letter", self._dead_letter)

    def _status(self, name: str) -> Response:
        topics, no_topics = self._tried(self._herder.connectors.topics(name))
        span = _span(request.args.get("last", ""))
        step = SPANS[span][1]
        history, _ = self._tried(self._herder.histories.gathered(name, step, span))
        part = added([history[0].part(step), *history[1]]) if history else None
        head = self._head(name)
        return self.shown(
            name,
            "connector.html",
            "status",
            head=head,
            reasons=reasons_of(head["status"]),
            most_reasons=MOST_REASONS,
            events=timeline_document(name, self._herder.timelines, self._herder.versions, self._patience)["events"],
            most_events=_MOST_EVENTS,
            last_work=last_work(head["status"]["tasks"] if head["status"] else ()),
            topics=topics,
            no_topics=no_topics,
            charts=charts_of(part).get(name) if part else None,
            graphs=graphs_of(part, name, span, step) if part else [],
            span=span,
            spans=SPANS,
        )

    def _offsets(self, name: str) -> Response:
        head = self._head(name)
        offsets, unread = self._tried(self._herder.offsets.read(name))
        lag, no_lag = self._tried(self._herder.offsets.lag(name))
        return self.shown(
            name, "offsets.html", "offsets", offsets=offsets, unread=unread, lag=lag, no_lag=no_lag, head=head
        )

    def _dead_letters(self, name: str) -> Response:
        caller().require(Right.DEAD_LETTERS, name)
        after = read_after(request.args.get("after"))
        wanted = LookedFor.of(request.args)
        queue, unread = self._tried(self._herder.dead_letters.list(name, after, MOST_LISTED))
        found = None if queue is None else looked_through(self._stretches(name, queue), wanted)
        return self.shown(
            name,
            "dlq.html",
            "dlq",
            queue=queue,
            found=found,
            wanted=wanted,
            after=request.args.get("after"),
            unread=unread,
            text=record_text,
            excerpt=excerpt,
            short_error=short_error,
            is_replayed=is_replayed,
        )

    def _stretches(self, name: str, queue: dict[str, Any]) -> Iterator[Looked]:
        """Read on through a queue, but not without end: a page says where it stopped."""
        for _ in range(_MOST_STRETCHES):
            yield Looked(queue["records"], queue["next"])
            if queue["next"] is None:
                return
            following = self._herder.dead_letters.list(name, read_after(queue["next"]), MOST_LISTED)
            queue = self._patience.wait(following)

    def _dead_letter(self, name: str, record: str) -> Response:
        """Show one dead letter, which can be edited and delivered again."""
        caller().require(Right.DEAD_LETTERS, name)
        found = self._patience.wait(self._herder.dead_letters.one(name, read_place(record)))
        return self.shown(name, "letter.html", "dlq", letter=found, record=record, text=record_text)

    def _logs(self, name: str) -> Response:
        head = self._head(name)
        places = _workers(head["status"], self._site.worker_id)
        asked = request.args.get("worker", self._site.worker_id)
        here = asked == self._site.worker_id
        found = self._recent.since(name, 0, _LINES) if here else LoggedLines((), 0)
        plugin_logger = self._logger(name)
        levels, _ = self._tried(self._herder.loggers.levels())
        return self.shown(
            name,
            "logs.html",
            "logs",
            found=found,
            places=places,
            asked=asked,
            head=head,
            logger=plugin_logger,
            level=_level(plugin_logger, levels or {}),
            levels=_LEVELS,
        )

    def _preview(self, name: str) -> Response:
        caller().require(Right.PREVIEW, name)
        return self.shown(name, "preview.html", "preview")

    def _config(self, name: str) -> Response:
        caller().require(Right.CONFIGS, name)
        config = self._patience.wait(self._herder.connectors.config(name))
        infos, _ = self._tried(self._herder.plugins.validate(config.get("connector.class", ""), dict(config)))
        hidden = self._configs.hidden(config)
        return self.shown(name, "config.html", "config", config=hidden, mistakes=_mistakes(infos or {}))

    def _edit(self, name: str) -> Response:
        caller().require(Right.EDIT, name)
        entry = self._patience.wait(self._herder.connectors.entry(name))
        config = self._configs.hidden(entry.config)
        plugin = self._plugin(entry.config.get("connector.class", ""))
        return self.shown(
            name,
            "edit.html",
            "edit",
            plugin=plugin,
            config=config,
            revision=entry.revision,
            framework_groups=FRAMEWORK_GROUPS,
        )

    def _versions(self, name: str) -> Response:
        caller().require(Right.CONFIGS, name)
        found, unread = self._tried(self._herder.versions.read(name))
        show = self._configs.hidden
        shown = (
            {} if found is None else {"history": history_document(name, found, show), "back": restoring(found, show)}
        )
        if found is not None and found.present is None:
            return page_shown("deleted.html", name=name, most=MOST_VERSIONS, **shown)
        return self.shown(name, "versions.html", "versions", unread=unread, most=MOST_VERSIONS, **shown)

    def _loads(self, name: str) -> Response:
        loads, unread = self._tried(self._herder.connectors.loads(name))
        return self.shown(name, "loads.html", "loads", tasks=(loads or {}).get("tasks", []), unread=unread)

    def _measurements(self, name: str) -> Response:
        found, unread = self._tried(self._herder.connectors.measurements(name))
        tables = measured_tables((found or {}).get("tasks", []))
        return self.shown(name, "measurements.html", "measurements", tables=tables, unread=unread)

    def shown(self, name: str, template: str, tab: str, **members: Any) -> Response:
        """Render a page of a connector, with the head that all of them share."""
        head = members.pop("head", None) or self._head(name)
        return page_shown(template, name=name, tab=tab, **{**head, **members})

    def _head(self, name: str) -> dict[str, Any]:
        """Return the values shown in the head of each page."""
        info = self._patience.wait(self._herder.connectors.info(name))
        try:
            status = self._patience.wait(self._herder.connectors.status(name))
        except NotFoundError:
            status = None
        views = {name: {"info": info, **({"status": status} if status is not None else {})}}
        return {"connector": summaries(views)[0], "info": info, "status": status, "not_committed": NOT_COMMITTED}

    def _tried(self, asked: Request[Any]) -> tuple[Any, str | None]:
        """Return the result of a request, or the reason why there is none; the rest of the page is shown anyway."""
        try:
            return self._patience.wait(asked), None
        except NotFoundError:
            raise
        except ConnectError as error:
            return None, self._hide(str(error))

    def _logger(self, name: str) -> str:
        """Return the logger of a connector's plugin: that of its package."""
        config = self._patience.wait(self._herder.connectors.config(name))
        entry = self._plugin(config.get("connector.class", ""))
        return _ROOT if entry is None else entry.class_name.rpartition(".")[0] or _ROOT

    def _plugin(self, name: str) -> PluginEntry | None:
        try:
            return self._herder.plugins.registry().find(PluginKind.CONNECTOR, name)
        except PluginError:
            return None


def _span(asked: str) -> int:
    """Return how far back the graphs go; an unknown span is the shortest."""
    return next((span for span in SPANS if str(span) == asked), _SPAN)


def _workers(status: Mapping[str, Any] | None, own: str) -> list[str]:
    """Return this worker and the workers that run the connector or its tasks."""
    parts = [] if status is None else [status["connector"], *status["tasks"]]
    return sorted({own, *(part["worker_id"] for part in parts)} - {""})


def _for_viewers(page: Callable[[str], Response]) -> Callable[[str], Response]:
    """Restrict a page to callers who may view the connector."""

    def guarded(name: str) -> Response:
        caller().require(Right.VIEW, name)
        return page(name)

    return guarded


def _level(name: str, levels: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the level of a logger, or of its nearest ancestor that has one."""
    while name:
        if name in levels:
            return str(levels[name]["level"])
        name = name.rpartition(".")[0]
    return str(levels.get(_ROOT, {}).get("level", "INFO"))


def _mistakes(infos: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        item["value"]["name"]: item["value"]["errors"] for item in infos.get("configs", ()) if item["value"]["errors"]
    }
