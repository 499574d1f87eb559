"""rsyslog as a sender with a queue on disk, and syslog-ng's loggen, from Debian's packages."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from connect.errors import ConnectError
from equipment.servers.packages import unpacked
from equipment.waiting import wait_until

__all__ = ["Rsyslog", "loggen", "queued", "rsyslog_root"]

_SYSTEM: Final = Path("/")


def rsyslog_root() -> Path:
    """The folder below which rsyslog is, the system's own or an unpacked one; a ``ConnectError`` says why not."""
    if all((_SYSTEM / "usr" / path).exists() for path in ("sbin/rsyslogd", "lib/x86_64-linux-gnu/rsyslog/omrelp.so")):
        return _SYSTEM
    return unpacked("rsyslog", "rsyslog-relp", "rsyslog-openssl")


def loggen(*options: str) -> int:
    """Run the program loggen, and return how many messages it has sent; a ``ConnectError`` says why it is not there."""
    prefix = _SYSTEM / "usr" if shutil.which("loggen") else unpacked("syslog-ng-core") / "usr"
    libraries = [*prefix.glob("lib/*-linux-gnu"), prefix / "lib/syslog-ng", *prefix.glob("lib/syslog-ng/[0-9]*")]
    environ = {"SYSLOGNG_PREFIX": str(prefix), "LD_LIBRARY_PATH": ":".join(map(str, libraries))}
    done = subprocess.run(
        [prefix / "bin/loggen", *options], env={**os.environ, **environ}, check=True, capture_output=True, text=True
    )
    return int(re.findall(r"count=(\d+)", done.stderr + done.stdout)[-1])


def _modules(root: Path) -> Path:
    found = next(iter(root.glob("usr/lib/*/rsyslog")), None)
    if found is None:
        raise ConnectError(f"rsyslog has no modules below {root}.")
    return found


class Rsyslog:
    """A daemon that reads lines of a socket of its own, and sends them on by an action of its configuration.

    ``action`` is what its configuration says after the input; a queue on disk keeps what cannot be sent.
    """

    def __init__(self, folder: Path, action: str, *, globals_: str = "", modules: str = "") -> None:
        self._root = rsyslog_root()
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._socket = folder / "in.sock"
        self._file = folder / "rsyslog.conf"
        self._file.write_text(
            f'global(workDirectory="{folder}" maxMessageSize="64k" {globals_})\n'
            f'module(load="imuxsock" SysSock.Use="off")\n{modules}\n'
            f'input(type="imuxsock" Socket="{self._socket}" UseSpecialParser="off" ParseHostname="on"'
            f' RateLimit.Interval="0")\n{action}\n'
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Rsyslog:
        """Start it, and wait until it takes messages."""
        modules = _modules(self._root)
        libraries = f"{modules.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        program = self._root / "usr/sbin/rsyslogd"
        with (self._folder / "out").open("ab") as output:
            self._process = subprocess.Popen(
                [program, "-n", "-f", self._file, "-i", self._folder / "pid", "-M", modules],
                env={**os.environ, "LD_LIBRARY_PATH": libraries},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_until("rsyslog listens", self._listens)
        return self

    def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "out").read_text()
        return self._socket.exists()

    def log(self, text: str, *options: str) -> None:
        """Send one message by the program logger."""
        subprocess.run(["logger", "-u", self._socket, *options, "--", text], check=True)

    def log_all(self, lines: list[str]) -> None:
        """Send many messages."""
        text = "\n".join(lines)
        subprocess.run(["logger", "-u", self._socket, "-t", "many"], input=text.encode(), check=True)

    def close(self) -> None:
        """Stop it."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def queued(action: Mapping[str, str]) -> str:
    """An action with a queue that keeps everything until it is sent, and tries again at once."""
    given = {
        "queue.type": "LinkedList",
        "queue.filename": "kept",
        "queue.size": "500000",
        "queue.saveOnShutdown": "on",
        "action.resumeRetryCount": "-1",
        "action.resumeInterval": "1",
        **action,
    }
    return "action(" + " ".join(f'{key}="{value}"' for key, value in given.items()) + ")"
