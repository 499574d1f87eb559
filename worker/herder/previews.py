"""Requests for previews: what a connector would do with its next records, without doing it.

Any worker can answer. A child process reads records and shows the result without changing anything, so a worker that is
killed meanwhile leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from connect.errors import ConnectError
from worker.errors import BadRequestError, UnavailableError
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.writes import GivenConfig, check_same_class, check_validated, required_class
from worker.herder.inbox import Request, Requests
from worker.herder.inquiries import Inquiries
from worker.herder.offsets.sources import SourceOffsets
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import OffsetPairs, Report

__all__ = ["MOST_AT_ONCE", "PreviewRequests", "PreviewWanted", "preview_document", "read_preview"]

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
    """The response to a preview request."""
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


class PreviewRequests:
    """Runs previews of connectors. Methods may be called from any thread."""

    def __init__(
        self,
        requests: Requests,
        worker_props: Mapping[str, str],
        connectors: Connectors,
        inquiries: Inquiries,
        offsets: SourceOffsets,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self._requests = requests
        self._worker_props = dict(worker_props)
        self._connectors = connectors
        self._inquiries = inquiries
        self._offsets = offsets
        self._post = post
        self._under_way = 0

    def deployed(self, name: str, wanted: PreviewWanted) -> Request[Document]:
        """Preview what a deployed connector would do with its next records."""
        return self._requests.begin(lambda request: self._deployed(request, name, wanted))

    def given(self, plugin: str, config: GivenConfig, wanted: PreviewWanted) -> Request[Document]:
        """Preview a configuration that is not deployed, for the connector plugin ``plugin``.

        If a connector has the name in the configuration, the preview starts at that connector's offsets.
        """
        return self._requests.begin(lambda request: self._given(request, plugin, config, wanted))

    def _deployed(self, request: Request[Document], name: str, wanted: PreviewWanted) -> None:
        entry = self._connectors.entry(name)
        self._take_place(request)
        self._begin(request, name, entry.config, wanted)

    def _given(self, request: Request[Document], plugin: str, config: GivenConfig, wanted: PreviewWanted) -> None:
        in_config = required_class(config)
        check_same_class(in_config, plugin, (self._connectors.plugin(in_config), self._connectors.plugin(plugin)))
        name = (config.get("name") or "").strip()
        if not name:
            raise BadRequestError(
                "The configuration has no name. Set one: the offsets and the consumer group are looked up by it."
            )
        self._take_place(request)

        def validated(report: Report) -> None:
            assert isinstance(report, messages.Validated)
            check_validated(report)
            self._begin(request, name, {key: value for key, value in config.items() if value is not None}, wanted)

        request.enter(f"waiting for {in_config} to validate the given configuration")
        self._inquiries.answer(messages.ValidateConfig(dict(config), self._worker_props), request, validated)

    def _take_place(self, request: Request[Document]) -> None:
        if self._under_way >= MOST_AT_ONCE:
            raise UnavailableError(
                f"This worker already runs {MOST_AT_ONCE} previews. Ask again in a moment, or ask another worker.",
                _AGAIN_AFTER,
            )
        self._under_way += 1
        # A request may complete in any thread, but the count belongs to the herder's.
        request.add_done_callback(lambda _: self._post(self._leave_place))

    def _leave_place(self) -> None:
        self._under_way -= 1

    def _begin(self, request: Request[Document], name: str, config: Mapping[str, str], wanted: PreviewWanted) -> None:
        if wanted.from_beginning:
            self._preview(request, name, config, wanted, [])
            return
        request.enter(f"reading the offsets of connector {name}")
        stored = self._offsets.of_connector(name)

        def arrived() -> None:
            if request.done():
                return
            if (error := stored.exception()) is not None:
                request.set_exception(ConnectError(f"The source offsets could not be reached: {error}"))
            else:
                self._preview(request, name, config, wanted, stored.result())

        stored.add_done_callback(lambda _: self._post(arrived))

    def _preview(
        self,
        request: Request[Document],
        name: str,
        config: Mapping[str, str],
        wanted: PreviewWanted,
        offsets: OffsetPairs,
    ) -> None:
        shown: list[Document] = []

        def part(report: Report) -> None:
            assert isinstance(report, messages.Previewed)
            shown.append(report.record)

        def ended(report: Report) -> None:
            assert isinstance(report, messages.PreviewEnded)
            request.set_result(preview_document(name, shown, report))

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
        self._inquiries.answer(inquiry, request, ended, part)
