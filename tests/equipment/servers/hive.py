"""A Hive metastore in its own process, from the jars that come with PySpark, with a Derby database."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from connect.internals.jvm.java import find_java
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
  <property><name>datanucleus.connectionPoolingType</name><value>HikariCP</value></property>
  <property><name>hive.async.log.enabled</name><value>false</value></property>
</configuration>
"""

# The tables for locks, which Iceberg needs and DataNucleus does not create, since they are not objects of Hive.
_LOCKS: Final = """
CONNECT 'jdbc:derby:;databaseName={home}/db;create=true';
CREATE TABLE TXNS (TXN_ID BIGINT PRIMARY KEY, TXN_STATE CHAR(1), TXN_STARTED BIGINT, TXN_LAST_HEARTBEAT BIGINT,
  TXN_USER VARCHAR(128), TXN_HOST VARCHAR(128), TXN_AGENT_INFO VARCHAR(128), TXN_META_INFO VARCHAR(128),
  TXN_HEARTBEAT_COUNT INTEGER);
CREATE TABLE TXN_COMPONENTS (TC_TXNID BIGINT, TC_DATABASE VARCHAR(128), TC_TABLE VARCHAR(128),
  TC_PARTITION VARCHAR(767), TC_OPERATION_TYPE CHAR(1));
CREATE TABLE HIVE_LOCKS (HL_LOCK_EXT_ID BIGINT NOT NULL, HL_LOCK_INT_ID BIGINT NOT NULL, HL_TXNID BIGINT,
  HL_DB VARCHAR(128), HL_TABLE VARCHAR(128), HL_PARTITION VARCHAR(767), HL_LOCK_STATE CHAR(1), HL_LOCK_TYPE CHAR(1),
  HL_LAST_HEARTBEAT BIGINT, HL_ACQUIRED_AT BIGINT, HL_USER VARCHAR(128), HL_HOST VARCHAR(128),
  HL_HEARTBEAT_COUNT INTEGER, HL_AGENT_INFO VARCHAR(128), HL_BLOCKEDBY_EXT_ID BIGINT, HL_BLOCKEDBY_INT_ID BIGINT,
  PRIMARY KEY (HL_LOCK_EXT_ID, HL_LOCK_INT_ID));
CREATE TABLE NEXT_LOCK_ID (NL_NEXT BIGINT NOT NULL);
INSERT INTO NEXT_LOCK_ID VALUES (1);
CREATE TABLE NEXT_TXN_ID (NTXN_NEXT BIGINT NOT NULL);
INSERT INTO NEXT_TXN_ID VALUES (1);
CREATE TABLE AUX_TABLE (MT_KEY1 VARCHAR(128) NOT NULL, MT_KEY2 BIGINT NOT NULL, MT_COMMENT VARCHAR(255),
  PRIMARY KEY (MT_KEY1, MT_KEY2));
EXIT;
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
    java = [str(find_java(minimum=17).executable), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    java += [f"-Dderby.system.home={home}", "-cp", f"{home / 'conf'}:{jars}/*"]
    command = [*java, "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
    with (home / "log").open("wb") as log:
        made = subprocess.run(
            [*java, "org.apache.derby.tools.ij"],
            input=_LOCKS.format(home=home).encode(),
            capture_output=True,
            check=True,
        )
        assert b"ERROR" not in made.stdout, made.stdout.decode()
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
