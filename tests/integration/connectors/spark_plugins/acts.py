"""A transformation that does in an executor what a record asks for."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import connect
from connect.config import HIGH, Config, option
from connect.data import Record
from connect.transformation import Transformation

__all__ = ["Act", "ActConfig"]

R = TypeVar("R", bound=Record)

_PATIENCE: Final = 240.0
_TOO_MUCH: Final = 8 << 30


class ActConfig(Config):
    """Where the test and the executors meet."""

    folder: str = option(importance=HIGH, doc="A folder that both see.")


class Act(Transformation[ActConfig]):
    """Does what the field ``act`` says: ``tell`` where the code is, ``wait`` for the test, ``die``, or ``grow``.

    ``die once`` is for a folder ``alive``, which is taken away first, and ``kill driver once`` for a file ``driver``
    with the number of the process.
    """

    def apply(self, record: R) -> R | None:
        """The record, with what it asked for in it."""
        value: Any = record.value
        acts: Mapping[str, Callable[[Any], None]] = {
            "tell": self._tell,
            "wait": self._wait,
            "die": lambda _: os.kill(os.getpid(), signal.SIGKILL),
            "die once": self._die_once,
            "kill driver once": self._kill_driver_once,
            "grow": lambda _: bytearray(_TOO_MUCH).clear(),
        }
        if (act := acts.get(value["act"])) is not None:
            act(value)
        return record

    def _tell(self, value: Any) -> None:
        value["code"], value["plugin"] = connect.__file__, __file__

    def _die_once(self, value: Any) -> None:
        try:
            (Path(self.config.folder) / "alive").rmdir()
        except FileNotFoundError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def _kill_driver_once(self, _: Any) -> None:
        folder = Path(self.config.folder)
        try:
            (folder / "driver").rename(folder / "driver-killed")
        except FileNotFoundError:
            return
        os.kill(int((folder / "driver-killed").read_text()), signal.SIGKILL)

    def _wait(self, _: Any) -> None:
        folder, deadline = Path(self.config.folder), time.monotonic() + _PATIENCE
        (folder / f"begun-{os.getpid()}").touch()
        while not (folder / "go").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
