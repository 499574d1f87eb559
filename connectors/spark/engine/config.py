"""The options of the engines that run sink and source connectors on Spark (``engine=spark``)."""

from __future__ import annotations

from collections.abc import Iterable

from connect.bulk import BulkSinkConfig
from connect.bulk_source import BulkSourceConfig
from connect.config import LOW, Config, Long, at_least, option
from connect.config.errors import ConfigRuleError
from connect.errors import ConfigError
from connect.internals.extras import missing_extra

__all__ = ["SparkSinkEngineConfig", "SparkSourceEngineConfig"]


class _SparkEngineOptions(Config):
    """The options that both engines share."""

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


class SparkSinkEngineConfig(_SparkEngineOptions, BulkSinkConfig, key_prefix="engine."):
    """The options for loads in which Spark runs a sink connector, with ``engine=spark``."""


class SparkSourceEngineConfig(_SparkEngineOptions, BulkSourceConfig, key_prefix="engine."):
    """The options for loads in which Spark runs a source connector, with ``engine=spark``."""

    poll_interval_ms: Long = option(
        default=5000,
        importance=LOW,
        validator=at_least(1),
        group="Loads",
        doc=(
            "How often to poll the source while it has nothing new. A source without offsets (such as JDBC "
            "with mode=bulk) is read in full each time."
        ),
    )
    commit_interval_ms: Long = option(
        default=60_000,
        importance=LOW,
        validator=at_least(1),
        group="Loads",
        doc=(
            "The longest time between offset commits of a split whose source resumes exactly; the next load "
            "continues from there. Other sources are committed at the end of a split."
        ),
    )
