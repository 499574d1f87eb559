"""An HDFS of one name node and one data node on loopback."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connect.internals.jvm.java import find_java
from equipment.ports import own_port
from equipment.waiting import wait_until
from equipment.workers.small_spark import SMALL_JAVA
from worker.embedded.ports import HOST

__all__ = ["HDFS_PAGE", "HdfsServer", "running_hdfs"]

HDFS_PAGE: Final = 100
"""How many names of a folder are listed at once: by default 1000, which take a test long to create."""
_LOCK: Final = Path(__file__).with_name("hdfs.jars")
_SHARED: Final = ("hadoop-client-*", "slf4j-api-*", "jcl-over-slf4j-*", "log4j-*")
_MAIN: Final = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"
_READY_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class HdfsServer:
    """A running HDFS."""

    port: int

    @property
    def url(self) -> str:
        """The beginning of a ``store.url`` in it."""
        return f"hdfs://{HOST}:{self.port}"

    def write_configuration(self, folder: Path, nameservice: str) -> None:
        """Write the configuration of a Hadoop cluster in which one name stands for two name nodes, of which the first
        is down."""
        provider = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        _write(folder / "core-site.xml", {"fs.defaultFS": f"hdfs://{nameservice}"})
        nodes = {
            "dfs.nameservices": nameservice,
            f"dfs.ha.namenodes.{nameservice}": "one,two",
            f"dfs.namenode.rpc-address.{nameservice}.one": f"{HOST}:1",
            f"dfs.namenode.rpc-address.{nameservice}.two": f"{HOST}:{self.port}",
            f"dfs.client.failover.proxy.provider.{nameservice}": provider,
        }
        _write(folder / "hdfs-site.xml", nodes)


@contextmanager
def running_hdfs() -> Iterator[HdfsServer]:
    """An HDFS, while the ``with`` block runs; :class:`~connect.errors.ConnectError` if it cannot be installed or
    started."""
    java = find_java(minimum=17)
    jars = resolve_jars(read_lock(_LOCK), home=sluice_home())
    shipped = Path(pyspark.__file__).parent / "jars"
    path = os.pathsep.join(map(str, [*jars, *(jar for name in _SHARED for jar in shipped.glob(f"{name}.jar"))]))
    port = own_port()
    with tempfile.TemporaryDirectory(prefix="sluice-hdfs-") as folder:
        settings = {"dfs.replication": "1", "hadoop.tmp.dir": folder, "dfs.permissions.enabled": "false"}
        settings["dfs.ls.limit"] = str(HDFS_PAGE)
        options = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
        command = [
            *(str(java.executable), "-Xmx256m", *SMALL_JAVA.split(), "-cp", path, _MAIN),
            *("-nomr", "-format", "-nnport", str(port), "-writeDetails", "ready.json", *options),
        ]
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            wait_until("HDFS is ready", lambda: _is_ready(process, Path(folder)), seconds=_READY_SECONDS)
            yield HdfsServer(port)
        finally:
            process.kill()
            process.wait()


def _is_ready(process: subprocess.Popen[bytes], folder: Path) -> bool:
    assert process.poll() is None, (folder / "log").read_text(errors="replace")[-2000:]
    return (folder / "ready.json").exists()


def _write(path: Path, settings: dict[str, str]) -> None:
    properties = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    path.write_text(f"<configuration>{properties}</configuration>", encoding="utf-8")
