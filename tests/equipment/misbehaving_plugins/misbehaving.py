"""Connectors that do what no plugin should do, to themselves and to their process."""

from __future__ import annotations

import ctypes
import locale
import logging
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from connect.config import Config, Importance, Password, option
from connect.source import SourceConnector, SourceTask
from connectors.file.sink import FileStreamSinkConnector
from connectors.file.source import FileStreamSourceConnector

logger = logging.getLogger(__name__)
_NAP = 0.02
_FOREVER = 3600


class LinesSourceConnector(FileStreamSourceConnector):
    """A file source that may share a process with the plugins of this folder, unlike Sluice's own."""


class LinesSinkConnector(FileStreamSinkConnector):
    """A file sink that may share a process with the plugins of this folder, unlike Sluice's own."""


class MisbehavingConfig(Config):
    """The action of a connector, and the file that it waits for."""

    tasks: int = option(default=0, importance=Importance.LOW, doc="How many tasks it has, which only wait.")
    does: str = option(default="rests", importance=Importance.LOW, doc="What it does.")
    cue: str = option(default="", importance=Importance.LOW, doc="The file to wait for; at once if there is none.")
    secret: Password | None = option(default=None, importance=Importance.LOW, doc="A secret.")


class MisbehavingTask(SourceTask[MisbehavingConfig]):
    """Waits."""

    def poll(self) -> list[object]:
        """Return no records."""
        self.context.wait(1)
        return []


class MisbehavingSourceConnector(SourceConnector[MisbehavingConfig]):
    """Performs the action in ``does``."""

    task_class = MisbehavingTask

    def start(self) -> None:
        """Perform the action now, or in a thread once the file exists."""
        logger.info("starts in %s with %s", Path.cwd(), self.config.secret and self.config.secret.value)
        if self.config.cue:
            threading.Thread(target=self._on_cue, daemon=True).start()
        else:
            self._act()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str | None]]:
        """Return the configured number of task configs."""
        return [{}] * self.config.tasks

    def stop(self) -> None:
        """Hang, if that is the action."""
        if self.config.does == "does not stop":
            time.sleep(_FOREVER)

    def _on_cue(self) -> None:
        while not Path(self.config.cue).exists():
            time.sleep(_NAP)
        self._act()

    def _act(self) -> None:
        match self.config.does:
            case "crashes":
                ctypes.string_at(0)
            case "exits":
                os._exit(3)
            case "kills":
                os.kill(os.getpid(), signal.SIGKILL)
            case "keeps the GIL":
                ctypes.PyDLL(None).sleep(_FOREVER)
            case "hangs":
                time.sleep(_FOREVER)
            case "leaves":
                raise SystemExit(4)
            case "goes elsewhere":
                os.chdir("/")
                os.umask(0o777)
            case "changes the locale":
                locale.setlocale(locale.LC_ALL, "C")
                os.environ["TZ"] = "Asia/Kathmandu"
                time.tzset()
            case "handles signals":
                signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            case "leaks":
                kept = []
                while True:
                    kept.append(os.urandom(2**20))
                    time.sleep(0.001)
            case "leaves a thread":
                threading.Thread(target=time.sleep, args=(_FOREVER,), name="left behind", daemon=True).start()
            case "speaks of others":
                logger.info("I have heard of hunter2-of-another")
