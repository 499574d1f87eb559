"""The options of the engines that run sink and source connectors on Spark (``engine=spark``)."""

from __future__ import annotations

from collections.abc import Iterable

from connect.bulk import BulkSinkConfig
from connect.bulk_source import BulkSourceConfig
from connect.config import LOW, Long, at_least, option
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.extras import missing_extra

__all__ = ["SparkSinkEngineConfig", "SparkSourceEngineConfig"]


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


class SparkSourceEngineConfig(BulkSourceConfig, key_prefix="engine."):
    """The options of the loads in which a source connector is run by Spark, with ``engine=spark``."""

    poll_interval_ms: Long = option(
        default=5000,
        importance=LOW,
        validator=at_least(1),
        group="Loads",
        doc="Interval at which the source is asked for more while it has nothing new. A source that keeps no offsets "
        "(such as JDBC with mode=bulk) is read whole that often.",
    )
    commit_interval_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(1),
        group="Loads",
        doc="Longest time that a split of a source that resumes exactly is read before its offsets are committed. It "
        "then goes on from them. Other sources are committed at the end of a split.",
    )
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
