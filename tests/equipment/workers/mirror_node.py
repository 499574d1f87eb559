"""A real ``sluice mirror`` process."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from equipment.workers.commands import start_command

__all__ = ["MirrorNode"]


class MirrorNode:
    """The driver of one configuration file, which it writes to its own folder."""

    def __init__(self, folder: Path, props: dict[str, str]) -> None:
        folder.mkdir()
        self.file = folder / "mm2.properties"
        self.file.write_text("".join(f"{key} = {value}\n" for key, value in props.items()))
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.process = start_command(["mirror", str(self.file)], log)

    @property
    def log(self) -> str:
        """What it has logged."""
        return self._log.read_text()

    def url(self) -> str | None:
        """The URL at which it serves its flows."""
        found = re.search(r"The REST API of the flows is at (\S+)/ ", self.log)
        return found[1] if found else None

    def get(self, path: str) -> Any:
        """The answer of its REST API; ``None`` while there is none."""
        try:
            with urlopen(f"{self.url()}{path}", timeout=30) as answer:
                return json.load(answer)
        except (URLError, ValueError):
            return None

    def stop(self) -> int:
        """Stop it with a signal, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)

    def close(self) -> None:
        """Stop everything that is running."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(30)
