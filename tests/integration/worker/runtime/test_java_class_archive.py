"""An archive of classes that a real Java makes for JVMs of Java plugins, and starts from."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from connect.internals.jvm.class_archive import class_archive
from connect.internals.jvm.java import find_java

pytestmark = pytest.mark.integration

CLASSES = ["java/lang/Object", "org/apache/kafka/clients/consumer/KafkaConsumer", "gone/Since"]


def test_a_java_starts_from_the_archive_that_it_has_made(broker_jars: tuple[Path, ...], tmp_path: Path) -> None:
    java = find_java()
    archive = class_archive(tmp_path, java, broker_jars, ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
    archive.make(CLASSES)
    assert archive.is_made
    jars = os.pathsep.join(map(str, broker_jars))
    # A Java that is told that it has to use an archive ends if it cannot.
    command = [java.executable, *archive.flags, "-Xshare:on", "-Xmx1g", "-cp", jars, "-version"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def test_most_of_an_archive_is_shared_by_the_jvms_that_start_from_it(
    broker_jars: tuple[Path, ...], tmp_path: Path
) -> None:
    from py4j.java_gateway import find_jar_path  # noqa: PLC0415 - an optional package

    java, jars = find_java(), (Path(find_jar_path()), *broker_jars)
    archive = class_archive(tmp_path, java, jars, ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
    archive.make([*CLASSES, "py4j/GatewayServer"])
    command = [java.executable, *archive.flags, *archive.options, "-cp", os.pathsep.join(map(str, jars))]
    jvm = subprocess.Popen([*command, "py4j.GatewayServer", "0"], stdout=subprocess.PIPE)
    try:
        assert jvm.stdout is not None
        assert int(jvm.stdout.readline()) > 0, "it says its port when it has started"
        size, own = memory_of(jvm.pid, archive.path)
        assert 0 < own < size / 2
    finally:
        jvm.kill()
        jvm.communicate()


def memory_of(pid: int, file: Path) -> tuple[int, int]:
    """The size of what a process has mapped of a file, and how much of that it has changed, in KB."""
    found = {"Size": 0, "Anonymous": 0}
    own = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            own = line.endswith(str(file))
        elif own and (key := line.partition(":")[0]) in found:
            found[key] += int(line.split()[1])
    return found["Size"], found["Anonymous"]
