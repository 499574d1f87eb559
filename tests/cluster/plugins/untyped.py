"""A source that is named by its dotted path: no file tells that it is one."""

from __future__ import annotations

from watched import LinesConfig, LinesTask

from connect.source import SourceConnector


class UntypedConnector(SourceConnector[LinesConfig]):
    """Publishes the lines of a file."""

    task_class = LinesTask
