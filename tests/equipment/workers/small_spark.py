"""A small Spark, for tests that start it again and again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from equipment.scripts import spark_driver, spark_java

__all__ = ["DRIVER", "SMALL_SPARK", "sink_props", "spark_java_for"]

DRIVER: Final = Path(spark_driver.__file__)
"""A process that loads a topic as the worker does."""

_JAVA: Final = Path(spark_java.__file__)
SMALL_SPARK: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    # Compiling code for each of a few small loads takes longer than it saves.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData "
    "-Dspark.sql.codegen.wholeStage=false -Dspark.sql.codegen.factoryMode=NO_CODEGEN",
}


def sink_props(store: Path) -> dict[str, str]:
    """The configuration of a Spark sink that loads JSON."""
    return {
        "store.url": str(store),
        "key.converter": "converters.byte_array.ByteArrayConverter",
        "value.converter": "converters.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        **SMALL_SPARK,
    }


@contextmanager
def spark_java_for(props: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment of drivers that share one Java, which survives them; starting it is most of what they do."""
    with subprocess.Popen(
        [sys.executable, str(_JAVA), json.dumps(dict(props))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        environ: dict[str, str] = json.loads(process.stdout.readline())
        yield environ
