"""Starts Spark's Java process and connects to it.

pyspark's own ``launch_gateway`` runs Python code in a fork of this process, whose libraries have already started
threads, and waits for Java without limit. Here no Python runs in a fork, and a Java that does not come up in time is
killed.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

__all__ = ["PORT", "SECRET", "attach_gateway", "launch_java"]

PORT: Final = "PYSPARK_GATEWAY_PORT"
SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 - the name of a variable
_PLACE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
# Ignored signals stay ignored in the child: Ctrl-C is meant for the worker alone, which ends Java in its own time.
_IGNORING_INTERRUPTS: Final = ("/bin/sh", "-c", 'trap "" INT; exec "$0" "$@"')
# A Java that only puts the command of the other one together.
_LAUNCHER: Final = {"SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
_LOOK_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 180.0
_DUMP_SECONDS: Final = 5.0


def launch_java(settings: Mapping[str, str], output: int, patience: float = _PATIENCE_SECONDS) -> Any:
    """Start Spark's Java with these settings and return pyspark's gateway to it; its output goes to a descriptor.

    If the environment points to a running Java, that one is used. The process, ``gateway.proc``, ends with this one,
    because it reads from it. Raises ``ChildProcessError`` if Java exits, and ``TimeoutError`` if it is not up after
    ``patience`` seconds; the stacks of its threads are then in its output.
    """
    if PORT in os.environ:
        return attach_gateway(int(os.environ[PORT]), os.environ[SECRET])
    with TemporaryDirectory() as folder:
        place = Path(folder) / "gateway"
        process = subprocess.Popen(
            [*_IGNORING_INTERRUPTS, *_command(settings)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env={**_LAUNCHER, "SPARK_HOME": _home(), **os.environ, "SPARK_CONNECT_MODE": "0", _PLACE: str(place)},
        )
        try:
            port, secret = _await(process, place, patience)
            gateway = attach_gateway(port, secret)
        except BaseException:
            process.kill()
            process.communicate()
            raise
    gateway.proc = process
    return gateway


def attach_gateway(port: int, secret: str) -> Any:
    """Return pyspark's gateway to a Java process that is already running."""
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - half a second, and only tasks need it

    before = {key: os.environ.get(key) for key in (PORT, SECRET)}
    os.environ |= {PORT: str(port), SECRET: secret}
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value


def _home() -> str:
    """Return Spark's home, which ``spark-submit`` would look for with another Python."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 - as above

    return str(_find_spark_home())  # type: ignore[no-untyped-call]


def _command(settings: Mapping[str, str]) -> list[str]:
    submit = str(Path(_home(), "bin", "spark-submit"))
    confs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    return [submit, *confs, *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))]


def _await(process: subprocess.Popen[bytes], place: Path, patience: float) -> tuple[int, str]:
    """Return the port and the secret that Java writes once it is up: four bytes of port, four bytes of length, the
    secret."""
    end = time.monotonic() + patience
    while not place.is_file():
        if process.poll() is not None:
            raise ChildProcessError(f"Java exited with status {process.returncode}")
        if time.monotonic() > end:
            _dump_threads(process)
            raise TimeoutError(f"Java did not start within {patience:.0f} s and was killed")
        time.sleep(_LOOK_SECONDS)
    content = place.read_bytes()
    return int.from_bytes(content[:4]), content[8 : 8 + int.from_bytes(content[4:8])].decode()


def _dump_threads(process: subprocess.Popen[bytes]) -> None:
    """Have Java write the stacks of its threads to its output, for which it gets some seconds."""
    process.send_signal(signal.SIGQUIT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_DUMP_SECONDS)
