"""An archive of classes that a real Java makes for JVMs of Java plugins, and starts from."""

from __future__ import annotations

import os
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
