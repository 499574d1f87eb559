"""The options by which tables of files are registered in a Hive metastore."""

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
        doc="Whether tables of Parquet or ORC files are registered in a Hive metastore after each load: tables are "
        "made, columns and partitions are added.",
    )
    hive_metastore_uris: str = option(
        default="",
        importance=MEDIUM,
        validator=matches(r"(thrift://[^,/]+(,thrift://[^,/]+)*)?", "thrift://host:9083, or several with commas"),
        group=_HIVE,
        doc="The addresses of the metastore, such as thrift://hive:9083. Without them and hive.conf.dir, one in the "
        "task's own process is used, whose Derby database is in SLUICE_HOME/hive/NAME.",
    )
    hive_conf_dir: str = option(
        default="",
        importance=LOW,
        group=_HIVE,
        doc="A folder of the worker's machine with a hive-site.xml that says how to reach the metastore.",
    )
    hive_database: str = option(
        default="default",
        importance=MEDIUM,
        validator=matches(r"\w+", "letters, digits and _"),
        group=_HIVE,
        doc="The database of the tables. It is made if there is none.",
    )
    hive_table_name: str = option(
        default="${topic}",
        importance=LOW,
        validator=matches(r".*\$\{topic\}.*", "text with ${topic}"),
        group=_HIVE,
        doc="The name of a table, in which ${topic} stands for its folder's. What is neither letter, digit nor _ "
        "becomes _.",
    )

    def hive_mistakes(self, file_format: str) -> Iterable[ConfigError]:
        """Yield an error for each rule over several of these options that is broken."""
        if not self.hive_integration:
            return
        if file_format not in _FORMATS:
            reason = f"Hive tables are made of {' and '.join(_FORMATS)}: use one of them, or hive.integration=false."
            yield ConfigError("format.class", file_format, reason)
        if self.hive_conf_dir and not (Path(self.hive_conf_dir) / "hive-site.xml").is_file():
            yield ConfigError("hive.conf.dir", self.hive_conf_dir, "There is no hive-site.xml in it.")
