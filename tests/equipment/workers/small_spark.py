"""A small Spark that starts quickly, for tests that start it again and again."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyspark

from connect.jvm.java import find_java
from equipment.brokers.topics import create_topic, produce
from equipment.scripts import spark_driver
from equipment.waiting import wait_until
from equipment.workers.standalone import descendants, runs

__all__ = ["DRIVER", "sink_props", "small_spark"]

DRIVER: Final = Path(spark_driver.__file__)
"""A process that loads a topic as the worker does."""

_OPTIONS: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_SETTINGS: Final = {"spark.master": "local[2]", "spark.driver.memory": "512m"}
_RECORDS: Final = 20


def small_spark(archives: Path, bootstrap: str, scratch: Path) -> dict[str, str]:
    """The settings of a small JVM that starts from an archive of the classes that the sink loads.

    This halves what a start costs. The first test run makes the archive in ``archives``, and later ones find it there.
    """
    archive = archives / f"{_key()}.jsa"
    with (archives / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.is_file():
            for other in archives.glob("*.jsa"):
                other.unlink()
            _make(archive, bootstrap, scratch)
    return _settings(f"-XX:SharedArchiveFile={archive}")


def _settings(option: str) -> dict[str, str]:
    return _SETTINGS | {"spark.driver.extraJavaOptions": f"{_OPTIONS} {option}"}


def _key() -> str:
    java = find_java(minimum=17)
    text = "\n".join((str(java.executable), str(java.version), pyspark.__version__, _OPTIONS))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _make(archive: Path, bootstrap: str, scratch: Path) -> None:
    """Have Spark load a few records, and write down its classes when it ends."""
    partial = archive.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    topic = f"classes-{uuid4().hex[:12]}"
    create_topic(bootstrap, topic)
    produce(bootstrap, topic, [json.dumps({"id": number}).encode() for number in range(_RECORDS)])
    order = {
        "name": topic,
        "topic": topic,
        "bootstrap": bootstrap,
        "flush": _RECORDS // 2,
        "props": sink_props(scratch, _settings(f"-XX:ArchiveClassesAtExit={partial}")),
    }
    process = subprocess.Popen(
        [sys.executable, str(DRIVER), json.dumps(order)], stdout=subprocess.PIPE, env=dict(os.environ)
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        below = descendants(process.pid)
        assert process.wait(120) == 0
        # The JVM writes the archive after the driver has ended.
        wait_until("Spark has ended", lambda: not any(map(runs, below)), 120)
    partial.replace(archive)


def sink_props(store: Path, spark: Mapping[str, str]) -> dict[str, str]:
    """The configuration of a Spark sink that loads JSON."""
    return {
        "store.url": str(store),
        "key.converter": "converters.byte_array.ByteArrayConverter",
        "value.converter": "converters.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        **spark,
    }
