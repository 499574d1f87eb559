"""A standalone Spark cluster on loopback: a master, and workers with separate folders for their executors."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark
import requests

from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.java import find_java
from connectors.spark.session import java_home
from equipment.ports import own_port
from equipment.waiting import wait_until
from equipment.workers.processes import descendants
from equipment.workers.small_spark import SMALL_JAVA
from equipment.workers.spark_classes import ARCHIVE_OPTIONS
from worker.embedded.ports import HOST
from worker.processes.descendants import kill_descendants

__all__ = ["SparkCluster", "running_spark_cluster"]

_PACKAGE: Final = "org.apache.spark.deploy"
_READY_SECONDS: Final = 180.0
_WORKERS: Final = 2


class SparkCluster:
    """A master and two workers of one core each. The master may be killed and restarted: it recovers its workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = own_port()
        self._page = own_port()
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        """The value of ``spark.master``."""
        return f"spark://{HOST}:{self._port}"

    @property
    def props(self) -> dict[str, str]:
        """The connector keys to run on it, with executors of one core."""
        return {
            "spark.master": self.url,
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": f"{SMALL_JAVA} {ARCHIVE_OPTIONS}",
        }

    def start(self) -> None:
        """Start the master and its workers."""
        self.start_master()
        self.start_workers()

    def start_workers(self) -> None:
        """Start the workers."""
        for number in range(_WORKERS):
            place = self._folder / f"worker-{number}"
            arguments = ("--host", HOST, "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "2g")
            self._workers.append(self._launch("worker.Worker", place, *arguments, "--work-dir", str(place), self.url))
        self._wait("its workers are known", lambda state: state["aliveworkers"] == _WORKERS)

    def start_master(self) -> None:
        """Start the master, which recovers its former state."""
        ports = ("--port", str(self._port), "--webui-port", str(self._page))
        self._master = self._launch("master.Master", self._folder / "master", "--host", HOST, *ports)
        self._wait("it answers", lambda state: state["status"] == "ALIVE")

    def kill_workers(self) -> None:
        """Kill the workers, and everything that runs on them."""
        for worker in self._workers:
            kill_descendants(worker.pid)
            worker.kill()
            worker.wait()
        self._workers.clear()

    def kill_master(self) -> None:
        """Kill the master; the workers, and everything that runs on them, keep running."""
        if self._master is not None:
            self._master.kill()
            self._master.wait()

    def executors(self) -> list[int]:
        """The processes of the running executors."""
        return [pid for worker in self._workers for pid in descendants(worker.pid) if _is_executor(pid)]

    def free_cores(self) -> int:
        """The number of free cores."""
        state = self.state()
        return int(state["cores"] - state["coresused"])

    def applications(self) -> list[dict[str, Any]]:
        """The applications that the master reports as running or waiting."""
        return list(self.state()["activeapps"])

    def state(self) -> dict[str, Any]:
        """The master's state, as it reports it."""
        answer = requests.get(f"http://{HOST}:{self._page}/json/", timeout=30)
        answer.raise_for_status()
        return dict(answer.json())

    def stop(self) -> None:
        """Kill the whole cluster."""
        self.kill_workers()
        self.kill_master()

    def _launch(self, name: str, place: Path, *arguments: str) -> subprocess.Popen[bytes]:
        place.mkdir(exist_ok=True)
        home, java = sluice_home(), find_java(minimum=17)
        spark = Path(pyspark.__file__).parent
        # The class path as Spark builds it for drivers and executors: the archive of classes fits only this one.
        class_path = ":".join([f"{spark}/conf", *map(str, spark.glob("jars/slf4j-api-*.jar")), f"{spark}/jars/*"])
        recovery = ("-Dspark.deploy.recoveryMode=FILESYSTEM", f"-Dspark.deploy.recoveryDirectory={self._folder}/known")
        quick = ("-Dspark.worker.timeout=20", "-Dspark.master.rest.enabled=false")
        command = [
            *(str(java.executable), "-Xmx192m", *SMALL_JAVA.split(), *ARCHIVE_OPTIONS.split(), *recovery, *quick),
            *("-cp", class_path, f"{_PACKAGE}.{name}", *arguments),
        ]
        environ = {
            **os.environ,
            "SPARK_HOME": str(spark),
            "JAVA_HOME": str(java_home(java, home)),
            "SPARK_SCALA_VERSION": "2.13",
        }
        with (place / "log").open("ab") as log:
            return subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ)

    def _wait(self, what: str, holds: Callable[[dict[str, Any]], bool]) -> None:
        def ready() -> bool:
            for process in (*self._workers, self._master):
                assert process is None or process.poll() is None, self._logs()
            try:
                return holds(self.state())
            except requests.RequestException:
                return False

        wait_until(f"the cluster of Spark is ready: {what}", ready, seconds=_READY_SECONDS)

    def _logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self._folder.glob("*/log"))


@contextmanager
def running_spark_cluster() -> Iterator[SparkCluster]:
    """A cluster, while the ``with`` block runs; :class:`~connect.errors.ConnectError` if there is no Java for it."""
    with tempfile.TemporaryDirectory(prefix="sluice-spark-", ignore_cleanup_errors=True) as folder:
        cluster = SparkCluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def _is_executor(pid: int) -> bool:
    try:
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
