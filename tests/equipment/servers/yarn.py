"""A YARN cluster of one node on loopback: a resource manager and a node manager, on the local file system."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pyspark
import requests

from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connect.internals.jvm.java import find_java
from connectors.spark.session import java_home
from equipment.ports import own_port
from equipment.waiting import wait_until
from worker.embedded.ports import HOST
from worker.processes.descendants import kill_descendants

__all__ = ["YarnCluster", "running_yarn"]

_LOCK: Final = Path(__file__).with_name("yarn.jars")
_SHARED: Final = ("hadoop-client-*", "slf4j-api-*", "jcl-over-slf4j-*", "log4j-*")
_SERVER: Final = "org.apache.hadoop.yarn.server"
_DAEMONS: Final = ("resourcemanager.ResourceManager", "nodemanager.NodeManager")
_JAVA: Final = (
    *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    # Its web pages use reflection.
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
)
_READY_SECONDS: Final = 180.0


class YarnCluster:
    """A resource manager, a node manager, and the client configuration to reach them."""

    def __init__(self, folder: Path) -> None:
        self.conf = folder / "conf"
        """The folder of the client configuration."""
        self._folder = folder
        self._page = f"{HOST}:{own_port()}"
        self._daemons: list[subprocess.Popen[bytes]] = []

    @property
    def props(self) -> dict[str, str]:
        """The connector keys to run ``engine=spark`` on it, with one executor of one core."""
        return {
            "spark.master": "yarn",
            "engine.hadoop.conf.dir": str(self.conf),
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.instances": "1",
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.yarn.am.memory": "512m",
            # Otherwise the client copies all of Spark's jars for each application.
            "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        }

    def start(self) -> None:
        """Start both, and wait until the node manager is registered."""
        self._configure()
        home = java_home(find_java(minimum=17), sluice_home())
        jars = resolve_jars(read_lock(_LOCK), home=sluice_home())
        shipped = Path(pyspark.__file__).parent / "jars"
        path = [self.conf, *jars, *(jar for name in _SHARED for jar in shipped.glob(f"{name}.jar"))]
        environ = {**os.environ, "JAVA_HOME": str(home)}
        for name in _DAEMONS:
            command = [str(home / "bin" / "java"), *_JAVA, "-cp", os.pathsep.join(map(str, path)), f"{_SERVER}.{name}"]
            with (self._folder / f"{name}.log").open("wb") as log:
                self._daemons.append(
                    subprocess.Popen(
                        command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ
                    )
                )
        wait_until("YARN has a node", self._has_node, seconds=_READY_SECONDS)

    def running_applications(self) -> int:
        """The number of running applications."""
        return self._metric("QueueMetrics,q0=default", "AppsRunning")

    def stop(self) -> None:
        """Kill both, and everything that runs on them."""
        for daemon in self._daemons:
            kill_descendants(daemon.pid)
            daemon.kill()
            daemon.wait()

    def _configure(self) -> None:
        self.conf.mkdir()
        _write(self.conf / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(self._folder / "tmp")})
        manager, node = "yarn.resourcemanager", "yarn.nodemanager"
        addresses = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
        settings = {
            **{f"{manager}.{name}": f"{HOST}:{own_port()}" for name in addresses},
            f"{manager}.webapp.address": self._page,
            f"{manager}.scheduler.class": f"{_SERVER}.resourcemanager.scheduler.fifo.FifoScheduler",
            **{f"{node}.{name}": f"{HOST}:0" for name in ("address", "localizer.address", "webapp.address")},
            f"{node}.log-dirs": str(self._folder / "logs"),
            f"{node}.resource.memory-mb": "4096",
            f"{node}.resource.cpu-vcores": "4",
            f"{node}.vmem-check-enabled": "false",
            f"{node}.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            f"{node}.env-whitelist": "JAVA_HOME,PATH",
            "yarn.scheduler.minimum-allocation-mb": "256",
        }
        _write(self.conf / "yarn-site.xml", settings)

    def _has_node(self) -> bool:
        for daemon in self._daemons:
            assert daemon.poll() is None, self._logs()
        with suppress(requests.RequestException):
            return self._metric("ClusterMetrics", "NumActiveNMs") > 0
        return False

    def _metric(self, bean: str, name: str) -> int:
        """A metric of the resource manager; 0 while it is missing."""
        query = {"qry": f"Hadoop:service=ResourceManager,name={bean}"}
        answer = requests.get(f"http://{self._page}/jmx", params=query, timeout=30)
        answer.raise_for_status()
        return int(next(iter(answer.json()["beans"]), {}).get(name, 0))

    def _logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in self._folder.glob("*.log"))


@contextmanager
def running_yarn() -> Iterator[YarnCluster]:
    """A YARN, while the ``with`` block runs; :class:`~connect.errors.ConnectError` if it cannot be installed or
    started."""
    with tempfile.TemporaryDirectory(prefix="sluice-yarn-", ignore_cleanup_errors=True) as folder:
        cluster = YarnCluster(Path(folder))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()


def _write(path: Path, settings: dict[str, str]) -> None:
    properties = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    path.write_text(f"<configuration>{properties}</configuration>", encoding="utf-8")
