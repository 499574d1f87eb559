"""Windows by event time: up to which time they are complete, and what is open of a topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from connect.data import Schema
from connect.errors import ConnectError

__all__ = ["Heard", "OpenWindows", "WindowPolicy", "WindowState", "lost_query"]


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """When a window is complete; all times are milliseconds.

    ``length`` is the length of windows, which begin at its multiples since 1970 in UTC. ``delay`` is how much older
    than the newest record of its partition a record may be without being late, and ``idle`` is how long a partition may
    go without records before it is no longer waited for. ``late`` says what to do with records whose window was
    written.
    """

    column: str
    length: int
    delay: int
    late: Literal["emit", "drop", "dead-letter"]
    idle: int


@dataclass(frozen=True, slots=True)
class Heard:
    """The newest time in the records of a partition, and the clock time when it last had records."""

    latest: int
    at: int


@dataclass(frozen=True, slots=True)
class OpenWindows:
    """What is stored of one table of a topic between two loads: the rows of windows that are not complete.

    Windows before ``cut`` are complete: the query has processed them. ``folders`` hold the other rows, and late ones.
    """

    cut: int | None = None
    partitions: Mapping[int, Heard] = field(default_factory=dict)
    folders: tuple[str, ...] = ()

    def after(self, policy: WindowPolicy, latest: Mapping[int, int | None], now: int) -> OpenWindows:
        """Return the windows after a load: ``latest`` is the newest time in the new rows of each partition that has
        any.

        A window is complete when every partition that is not idle has a record that is at least ``delay`` newer than
        its end. A time in the future counts as now, so that one wrong record does not close all windows. ``cut`` never
        goes back.
        """
        heard = dict(self.partitions)
        for partition, time in latest.items():
            times = [] if time is None else [min(time, now)]
            if partition in heard:
                times.append(heard[partition].latest)
            if times:
                heard[partition] = Heard(max(times), now)
        awaited = [each.latest for each in heard.values() if now - each.at <= policy.idle]
        if not awaited:
            return OpenWindows(self.cut, heard, self.folders)
        end = (min(awaited) - policy.delay) // policy.length * policy.length
        return OpenWindows(end if self.cut is None else max(end, self.cut), heard, self.folders)

    def to_json(self) -> dict[str, Any]:
        """Return the windows in the form used in a manifest."""
        heard = {str(partition): [each.latest, each.at] for partition, each in sorted(self.partitions.items())}
        return {"cut": self.cut, "partitions": heard, "folders": list(self.folders)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> OpenWindows:
        """Return the inverse of :meth:`to_json`."""
        heard = {int(partition): Heard(*each) for partition, each in document["partitions"].items()}
        return cls(document["cut"], heard, tuple(document["folders"]))


@dataclass(frozen=True, slots=True)
class WindowState:
    """What a target stores for the windows of one topic: ``before`` is, by table, what it had before a load.

    Without a policy, because its keys were removed from the configuration, no more rows are held: those held so far go
    through the query with the rows of the load. ``new_folder`` returns a folder of the target that has never been used,
    ``uri`` converts it for Spark. A target whose tables hold the offsets implements ``keep``: it receives what a load
    leaves open of a table, with the schema of the table's records, before it receives the result. It then always
    receives a result, even one without rows, because the table has to exist. ``is_done`` says which tables have the
    load's records already.
    """

    policy: WindowPolicy | None
    before: Mapping[str, OpenWindows]
    new_folder: Callable[[], str]
    uri: Callable[[str], str]
    keep: Callable[[str, OpenWindows, Schema], None] | None = None
    is_done: Callable[[str], bool] = lambda _: False


def lost_query(topic: str) -> ConnectError:
    """Return the error for rows that are held for a query the connector no longer has."""
    return ConnectError(
        f"Records of topic {topic} are held for the windows of a query, and there is no query any more: set sql again, "
        "without sql.window.ms, until the next load has written them."
    )
