"""Options for registering tables of files in a Hive metastore."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from connect.config import LOW, MEDIUM, Config, matches, option
from connect.errors import ConfigError

__all__ = ["HiveOptions"]

_HIVE = "Hive"
_FORMATS: Final = ("ParquetFormat", "OrcFormat")


class HiveOptions(Config):
    """The options of Hive, under the names of the HDFS sink."""

    hive_integration: bool = option(
        default=False,
        importance=MEDIUM,
        group=_HIVE,
        doc=(
            "Whether to register tables of Parquet or ORC files in a Hive metastore after each load. Missing "
            "tables, columns and partitions are added to it."
        ),
    )
    hive_metastore_uris: str = option(
        default="",
        importance=MEDIUM,
        validator=matches(r"(thrift://[^,/]+(,thrift://[^,/]+)*)?", "thrift://host:9083, or several with commas"),
        group=_HIVE,
        doc=(
            "The addresses of the metastore, such as thrift://hive:9083. If neither this nor hive.conf.dir is "
            "set, the task runs a metastore in its own process, with its Derby database in "
            "SLUICE_HOME/hive/NAME."
        ),
    )
    hive_conf_dir: str = option(
        default="",
        importance=LOW,
        group=_HIVE,
        doc="A folder on the worker's machine with a hive-site.xml that tells how to reach the metastore.",
    )
    hive_database: str = option(
        default="default",
        importance=MEDIUM,
        validator=matches(r"\w+", "letters, digits and _"),
        group=_HIVE,
        doc="The database for the tables. It is created if it does not exist.",
    )
    hive_table_name: str = option(
        default="${topic}",
        importance=LOW,
        validator=matches(r".*\$\{topic\}.*", "text with ${topic}"),
        group=_HIVE,
        doc=(
            "The name of a table; ${topic} stands for the name of its folder. Characters other than letters, "
            "digits and _ become _."
        ),
    )

    def hive_mistakes(self, file_format: str) -> Iterable[ConfigError]:
        """Yield an error for each violated rule that involves several of these options."""
        if not self.hive_integration:
            return
        if file_format not in _FORMATS:
            reason = (
                f"Hive tables are registered only for {' and '.join(_FORMATS)}: use one of these, or set "
                "hive.integration=false."
            )
            yield ConfigError("format.class", file_format, reason)
        if self.hive_conf_dir and not (Path(self.hive_conf_dir) / "hive-site.xml").is_file():
            yield ConfigError(
                "hive.conf.dir", self.hive_conf_dir, "This folder has no hive-site.xml: name the one that has it."
            )
