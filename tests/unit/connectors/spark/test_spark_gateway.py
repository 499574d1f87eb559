"""The start of Spark's Java, with scripts in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from connectors.spark.gateway import launch_java
from equipment.waiting import wait_until


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark whose ``spark-submit`` is what a test writes."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    return tmp_path


def submit(spark_home: Path, script: str) -> None:
    path = spark_home / "bin" / "spark-submit"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def launch(patience: float = 60.0) -> None:
    launch_java({"spark.master": "local[2]"}, subprocess.DEVNULL, patience)


def test_a_java_that_ends_is_not_waited_for(spark_home: Path) -> None:
    submit(spark_home, f'echo "$@" > {spark_home}/arguments; exit 7')
    with pytest.raises(ChildProcessError, match="Java exited with status 7"):
        launch()
    assert (spark_home / "arguments").read_text() == "--conf spark.master=local[2] pyspark-shell\n"


def test_a_java_that_does_not_come_up_is_ended(spark_home: Path) -> None:
    # A shell cannot take a signal that it was started without; Java can.
    (spark_home / "java.py").write_text(
        f"""import os, pathlib, signal, time
signal.signal(signal.SIGQUIT, lambda *_: pathlib.Path("{spark_home}/stacks").touch())
pathlib.Path("{spark_home}/pid").write_text(str(os.getpid()))
time.sleep(600)
"""
    )
    submit(spark_home, f"exec {sys.executable} {spark_home}/java.py")
    with pytest.raises(TimeoutError, match="Java did not start within 5 s and was killed"):
        launch(patience=5)
    assert (spark_home / "stacks").exists(), "it was asked for the stacks of its threads"
    pid = int((spark_home / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_java_that_does_not_answer_is_ended(spark_home: Path) -> None:
    secret = "\\000\\000\\000\\001s"
    submit(
        spark_home,
        f"""echo $$ > {spark_home}/pid
        printf '\\000\\000\\000\\001{secret}' > {spark_home}/place
        mv {spark_home}/place "$_PYSPARK_DRIVER_CONN_INFO_PATH"; exec sleep 600""",
    )
    with pytest.raises(Exception, match="refused"):
        launch()
    pid = int((spark_home / "pid").read_text())
    wait_until("it has ended", lambda: not Path(f"/proc/{pid}").exists())


def test_an_interrupt_is_not_for_java(spark_home: Path) -> None:
    submit(spark_home, "kill -INT $$; exit 9")
    with pytest.raises(ChildProcessError, match="status 9"):
        launch()
