"""The archive of classes from which Spark's Java process starts: it loads some 15,000 before the first record moves."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from connect.internals.jvm.class_archive import ClassArchive, class_archive
from connect.internals.jvm.java import Java

__all__ = ["loaded_classes", "make_archive", "spark_archive", "with_archive"]

logger = logging.getLogger(__name__)

_OPTIONS: Final = "spark.driver.extraJavaOptions"
_EXPORT: Final = "--add-exports=java.management/com.sun.jmx.mbeanserver=ALL-UNNAMED"
"""py4j calls the server of JMX by reflection, and its class is not exported."""
_COMMANDS: Final = "com.sun.management:type=DiagnosticCommand"


def spark_archive(java: Java, home: Path, settings: Mapping[str, str]) -> ClassArchive:
    """Return the archive below ``home`` for a Java, the installed Spark and the settings of a session."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 - half a second, and only tasks need it

    jars = sorted(Path(_find_spark_home(), "jars").glob("*.jar"))  # type: ignore[no-untyped-call]
    return class_archive(home, java, jars, shlex.split(settings.get(_OPTIONS, "")), "spark")


def with_archive(settings: Mapping[str, str], archive: ClassArchive) -> dict[str, str]:
    """Return the settings with which Java starts from the archive if there is one, and can be asked for its classes."""
    options = [*map(shlex.quote, archive.flags), _EXPORT, settings.get(_OPTIONS, "")]
    return {**settings, _OPTIONS: " ".join(options).rstrip()}


def make_archive(archive: ClassArchive, gateway: Any) -> None:
    """Have the archive made of the classes that the Java process has loaded in a while, if there is none."""
    jars = str(gateway.jvm.System.getProperty("java.class.path")).split(os.pathsep)
    replace(archive, jars=tuple(jars)).make_later(partial(loaded_classes, gateway))


def loaded_classes(gateway: Any) -> str | None:
    """Return what the Java process answers to ``VM.class_hierarchy``, unless it has ended or cannot tell."""
    java: Any = gateway.jvm.java
    strings = java.lang.String
    try:
        server = java.lang.management.ManagementFactory.getPlatformMBeanServer()
        kinds = gateway.new_array(strings, 1)
        kinds[0] = "[Ljava.lang.String;"
        given = gateway.new_array(java.lang.Object, 1)
        given[0] = gateway.new_array(strings, 0)
        bean = gateway.jvm.javax.management.ObjectName(_COMMANDS)
        return str(server.invoke(bean, "vmClassHierarchy", given, kinds))
    except Exception as error:
        logger.debug("Spark's Java does not say which classes it has loaded, so that no archive is made: %s", error)
        return None
