"""A Hive metastore of its own process, from the jars that come with PySpark, with a Derby database."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from connect.jvm.java import find_java
from equipment.waiting import wait_until

__all__ = ["hive_metastore"]

_SITE: Final = """<?xml version="1.0"?>
<configuration>
  <property>
    <name>javax.jdo.option.ConnectionURL</name>
    <value>jdbc:derby:;databaseName={home}/db;create=true</value>
  </property>
  <property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
  <property><name>hive.metastore.schema.verification</name><value>false</value></property>
  <property><name>hive.metastore.warehouse.dir</name><value>file://{home}/warehouse</value></property>
  <property><name>hive.async.log.enabled</name><value>false</value></property>
</configuration>
"""


@contextmanager
def hive_metastore(home: Path) -> Iterator[str]:
    """The address of a metastore that serves until the end of the block."""
    (home / "conf").mkdir(parents=True)
    (home / "conf/hive-site.xml").write_text(_SITE.format(home=home))
    jars = Path(pyspark.__file__).parent / "jars"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(find_java(minimum=17).executable), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command += [f"-Dderby.system.home={home}", "-cp", f"{home / 'conf'}:{jars}/*"]
    command += ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=home)
    try:
        wait_until("the metastore listens", lambda: _listens(port) or _ended(process, home), seconds=180)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _ended(process: subprocess.Popen[bytes], home: Path) -> bool:
    assert process.poll() is None, (home / "log").read_text()[-3000:]
    return False
