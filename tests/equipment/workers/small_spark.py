"""A small Spark, for tests that start it again and again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from equipment.scripts import spark_driver

__all__ = ["DRIVER", "SMALL_SPARK", "sink_props"]

DRIVER: Final = Path(spark_driver.__file__)
"""A process that loads a topic as the worker does."""

SMALL_SPARK: Final = {
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
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
