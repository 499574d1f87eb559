"""What a table format needs in the Spark session: jars and settings, only for connectors that use the format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

__all__ = ["FormatSession", "format_session"]

_SPARK: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class FormatSession:
    """What a table format needs: lists of jars, settings, and Spark extensions, which are added to others."""

    jars: tuple[Path, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    extensions: tuple[str, ...] = ()
    own_jars: tuple[Path, ...] = ()
    """Jars that come with Sluice."""


_ICEBERG: Final = FormatSession((_SPARK / "iceberg/iceberg.jars",))
_DRIVERS: Final = {
    "jdbc:sqlite:": _SPARK / "iceberg/sqlite.jars",
    "jdbc:postgresql:": _SPARK / "iceberg/postgresql.jars",
}
_AWS: Final = _SPARK / "iceberg/aws.jars"
_DELTA: Final = FormatSession(
    (_SPARK / "delta/delta.jars",),
    {
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A table gets a new column in the commit of the rows that need it.
        "spark.databricks.delta.typeWidening.allowAutomaticWidening": "always",
        # If two drivers write the same version of a log to S3, the second is refused.
        "spark.delta.logStore.s3a.impl": "sluice.ConditionalLogStore",
        # Merges and checkpoints read the state of the log: split into 50 parts of a few actions each, as is Delta's
        # default, that takes longer than a small load.
        "spark.databricks.delta.snapshotPartitions": "4",
        # VACUUM lists folders in this many tasks, even if there are few folders: with Spark's default of 10,000 it
        # takes minutes.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
        # Column names may contain a $ followed by braces.
        "spark.sql.variable.substitute": "false",
    },
    ("io.delta.sql.DeltaSparkSessionExtension",),
    (_SPARK / "delta/log_store.jar",),
)


def format_session(props: Mapping[str, str]) -> FormatSession:
    """Return what the connector's table format needs in the session."""
    if props.get("table.format") == "iceberg":
        uri = props.get("iceberg.catalog.uri", "")
        drivers = [jars for prefix, jars in _DRIVERS.items() if uri.startswith(prefix)]
        amazon = [_AWS] if _needs_amazon(props) else []
        return replace(_ICEBERG, jars=(*_ICEBERG.jars, *drivers, *amazon))
    return _DELTA if props.get("table.format") == "delta" else FormatSession()


def _needs_amazon(props: Mapping[str, str]) -> bool:
    """Return whether Iceberg itself reaches S3 or Glue. Hadoop's S3A includes Amazon's client, but not for Glue."""
    classes = (props.get(f"iceberg.catalog.{key}", "").rpartition(".")[2] for key in ("io-impl", "catalog-impl"))
    return props.get("iceberg.catalog.type") == "glue" or not {"S3FileIO", "GlueCatalog"}.isdisjoint(classes)
