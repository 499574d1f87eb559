"""A REST catalog: the server from Iceberg's own tests, with its tables in a folder."""

from __future__ import annotations

import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pyspark

from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connect.internals.jvm.java import find_java
from equipment.waiting import wait_until

__all__ = ["rest_catalog"]

_JARS: Final = Path(__file__).with_suffix(".jars")


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """The URL of a REST catalog whose warehouse is this folder."""
    jars = list(resolve_jars(read_lock(_JARS), home=sluice_home()))
    # A test class has the same name as one of the catalog's own classes.
    jars.sort(key=lambda jar: "tests" in jar.name)
    hadoop = sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"))
    port = _free_port()
    environ = {
        **os.environ,
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_WAREHOUSE": folder.as_uri(),
        "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
        "CATALOG_REST_PORT": str(port),
    }
    java = [str(find_java(minimum=17).executable), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]
    classpath = os.pathsep.join(map(str, [*jars, *hadoop]))
    command = [*java, "-cp", classpath, "org.apache.iceberg.rest.RESTCatalogServer"]
    url = f"http://127.0.0.1:{port}"
    with (
        (folder / "server.log").open("w") as log,
        subprocess.Popen(command, env=environ, stdout=log, stderr=log) as run,
    ):
        try:
            wait_until("the catalog answers", lambda: run.poll() is not None or _answers(url), seconds=120)
            assert run.poll() is None, log.read_text()
            yield url
        finally:
            run.kill()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/v1/config", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
