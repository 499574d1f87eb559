"""Requests for previews: what a connector would do with its next records, without doing it.

Any worker can answer. A child process reads records and shows the result without changing anything, so a worker that is
killed meanwhile leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from worker.errors import BadRequestError, UnavailableError
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.writes import GivenConfig, check_same_class, check_validated, required_class
from worker.herder.inquiries import Inquiries
from worker.herder.offsets.sources import reached
from worker.herder.requests import Request, Requests, Steps, asked
from worker.messages import messages
from worker.messages.messages import OffsetPairs, Report
from worker.stores.offset.service import OffsetService

__all__ = ["MOST_AT_ONCE", "PreviewWanted", "Previews", "preview_document", "read_preview"]

Document: TypeAlias = dict[str, Any]

MOST_AT_ONCE: Final = 2
"""The maximum number of previews at once. Each has its own process, and a Spark preview a whole engine."""

_AGAIN_AFTER: Final = 5
_NUMBERS: Final[Mapping[str, tuple[int, int, int]]] = {
    "limit": (10, 1, 100),
    "seconds": (10, 1, 20),
    "bytes": (1 << 20, 1 << 10, 16 << 20),
}
"""Each number in a request: its default, minimum and maximum."""
_BEGINS: Final = ("stored", "beginning")


@dataclass(frozen=True, slots=True)
class PreviewWanted:
    """The number of records to show, and whether to start at the beginning or after the stored offsets."""

    records: int
    seconds: int
    bytes: int
    from_beginning: bool


def read_preview(given: Mapping[str, str]) -> PreviewWanted:
    """Parse the query of a preview request. Raises :class:`BadRequestError` naming the invalid parameter."""
    records, seconds, size = (_number(given, name) for name in _NUMBERS)
    begin = given.get("from", _BEGINS[0])
    if begin not in _BEGINS:
        raise BadRequestError(f"from is {begin!r}; it must be {' or '.join(_BEGINS)}.")
    return PreviewWanted(records, seconds, size, begin == "beginning")


def preview_document(name: str, shown: list[Document], ended: messages.PreviewEnded) -> Document:
    """Return the response to a preview request."""
    return {
        "name": name,
        "records": [document for document in shown if "table" not in document],
        "tables": [document for document in shown if "table" in document],
        "end": ended.reason,
        "failed": ended.failed,
        "trace": ended.trace,
    }


def _number(given: Mapping[str, str], name: str) -> int:
    default, least, most = _NUMBERS[name]
    text = given.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20) or not least <= int(text) <= most:
        raise BadRequestError(f"{name} is {text!r}; it must be a number from {least} to {most}.")
    return int(text)


class Previews:
    """Runs previews of connectors. Methods may be called from any thread."""

    def __init__(
        self,
        requests: Requests,
        worker_props: Mapping[str, str],
        connectors: Connectors,
        inquiries: Inquiries,
        offsets: OffsetService,
    ) -> None:
        self._requests = requests
        self._worker_props = dict(worker_props)
        self._connectors = connectors
        self._inquiries = inquiries
        self._offsets = offsets
        self._under_way = 0

    @asked
    def deployed(self, request: Request[Document], name: str, wanted: PreviewWanted) -> Steps[Document]:
        """Preview what a deployed connector would do with its next records."""
        entry = self._connectors.entry(name)
        with self._place():
            return (yield from self._preview(request, name, entry.config, wanted))

    @asked
    def given(
        self, request: Request[Document], plugin: str, config: GivenConfig, wanted: PreviewWanted
    ) -> Steps[Document]:
        """Preview a configuration that is not deployed, for the connector plugin ``plugin``.

        If a connector has the name in the configuration, the preview starts at that connector's offsets.
        """
        in_config = required_class(config)
        check_same_class(in_config, plugin, (self._connectors.plugin(in_config), self._connectors.plugin(plugin)))
        name = (config.get("name") or "").strip()
        if not name:
            raise BadRequestError(
                "The configuration has no name. Set one: the offsets and the consumer group are looked up by it."
            )
        with self._place():
            request.enter(f"waiting for {in_config} to validate the given configuration")
            inquiry = messages.ValidateConfig(dict(config), self._worker_props)
            check_validated((yield from self._inquiries.ask(inquiry, messages.Validated)))
            given = {key: value for key, value in config.items() if value is not None}
            return (yield from self._preview(request, name, given, wanted))

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._under_way >= MOST_AT_ONCE:
            raise UnavailableError(
                f"This worker already runs {MOST_AT_ONCE} previews. Ask again in a moment, or ask another worker.",
                _AGAIN_AFTER,
            )
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    def _preview(
        self, request: Request[Document], name: str, config: Mapping[str, str], wanted: PreviewWanted
    ) -> Steps[Document]:
        offsets: OffsetPairs = []
        if not wanted.from_beginning:
            request.enter(f"reading the offsets of connector {name}")
            offsets = yield from reached(self._offsets.of_connector(name))
        shown: list[Document] = []

        def take(report: Report) -> None:
            assert isinstance(report, messages.Previewed)
            shown.append(report.record)

        request.enter(f"showing the next records of connector {name}")
        inquiry = messages.PreviewConnector(
            dict(config),
            self._worker_props,
            wanted.records,
            wanted.seconds,
            wanted.bytes,
            wanted.from_beginning,
            offsets,
        )
        ended = yield from self._inquiries.ask(inquiry, messages.PreviewEnded, take)
        return preview_document(name, shown, ended)
