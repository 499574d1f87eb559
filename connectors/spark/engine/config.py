"""The configuration of what runs sink connectors on Spark."""

from __future__ import annotations

from collections.abc import Iterable

from connect.bulk import BulkSinkConfig
from connect.config import LOW, option
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.extras import missing_extra

__all__ = ["SparkSinkEngineConfig"]


class SparkSinkEngineConfig(BulkSinkConfig, key_prefix="engine."):
    """The options of the loads in which a sink connector is run by Spark, with ``engine=spark``."""

    hadoop_conf_dir: str | None = option(
        default=None,
        importance=LOW,
        group="Loads",
        doc="Folder with the core-site.xml and yarn-site.xml of a Hadoop cluster, for spark.master=yarn. If it is "
        "missing, it is the HADOOP_CONF_DIR of the worker's environment.",
    )

    def check(self) -> Iterable[ConfigError]:
        """Yield an error if Spark is not installed."""
        if reason := missing_extra("spark", "pyspark", "pandas", "pyarrow"):
            yield ConfigRuleError(f"Spark cannot run a connector here. {reason}", "engine")
