"""The host process of a shared Spark application: starts Spark's Java, and ends it when nobody uses it any more.

Run as ``python -m connectors.spark.cluster.host --shared-by-connectors FOLDER LOG``, with the settings, the salt and
the name of the first connector as JSON on standard input. It writes one line: empty when the application can be joined,
or the reason it did not start. If Java ends, so does this process; the first member to notice starts both again.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final

from connect.internals.jvm.shared_process import has_members
from connectors.spark.cluster.application import Application, ApplicationFolder, Terms
from connectors.spark.errors import root_cause
from connectors.spark.gateway import launch_java
from connectors.spark.java_log import java_output

__all__ = ["main"]

_LOOK_SECONDS: Final = 0.5
_LOG_BYTES: Final = 4 * 1024 * 1024


def main() -> None:
    """Host the application until its last member has left or its Java has ended."""
    folder, log = ApplicationFolder(Path(sys.argv[2])), Path(sys.argv[3])
    order = json.load(sys.stdin)
    if os.fork():
        # The parent exits at once, so that nobody has to reap the host when it ends.
        os._exit(0)
    if folder.host() is None:
        _answer("Another process is already its host.")
        return
    _log_to(log)
    try:
        with java_output() as descriptor:
            spark, gateway = _start(order["settings"], descriptor)
    except Exception as error:
        _answer(root_cause(error))
        return
    found = gateway.gateway_parameters
    terms = Terms.of(order["connector"], order["salt"], order["terms"])
    folder.write(Application(found.port, found.auth_token, gateway.proc.pid, terms))
    _answer("")
    _host(folder, spark, gateway.proc)


def _start(settings: dict[str, str], descriptor: int) -> tuple[Any, Any]:
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - not before the process has forked
    from pyspark.sql import SparkSession  # noqa: PLC0415

    conf = SparkConf().setAll(list(settings.items()))
    gateway = launch_java(settings, descriptor)
    SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm
    return SparkSession.builder.config(conf=conf).getOrCreate(), gateway


def _host(folder: ApplicationFolder, spark: Any, java: Any) -> None:
    while not _has_ended(spark, java):
        with folder.turn():
            if not has_members(folder.path):
                folder.clear()
                with suppress(Exception):
                    spark.stop()
                break
        time.sleep(_LOOK_SECONDS)
    folder.clear()
    java.kill()
    java.wait()


def _has_ended(spark: Any, java: Any) -> bool:
    try:
        return java.poll() is not None or bool(spark.sparkContext._jsc.sc().isStopped())
    except Exception:
        return True


def _answer(text: str) -> None:
    """Answer the waiting process, and close everything shared with it."""
    os.write(1, text.replace("\n", " ").encode() + b"\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)


def _log_to(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("[%(asctime)s] %(levelname)s %(message)s"))
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)


if __name__ == "__main__":
    main()
