"""The policy for the Spark keys that connectors set: ``connector.spark.config.override.policy``.

A connector's configuration comes from whoever reaches the REST API, and many Spark keys load code, run commands or name
files. There are hundreds of keys, and every Spark plugin adds its own, so this lists what is allowed rather than what
is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from connect.config import validator
from connect.config.errors import ConfigRuleError
from connect.config.validators import matches_wildcard
from connect.errors import ConfigError

__all__ = ["SPARK_ALLOWLIST_KEY", "SPARK_POLICY_KEY", "TUNING", "known_spark_policy", "refused_spark_keys"]

SPARK_POLICY_KEY: Final = "connector.spark.config.override.policy"
SPARK_ALLOWLIST_KEY: Final = "connector.spark.config.override.allowlist"

_DEFAULT: Final = "Tuning"
_POLICIES: Final = ("Tuning", "Allowlist", "All", "None")

# Spark fills in ${env:...} and the like, so that no value has a dollar sign.
_PLAIN: Final = re.compile(r"[\w.,:%+/\[\] -]*")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_SIZE: Final = re.compile(r"-?\d+[a-zA-Z]{0,2}")
_SWITCH: Final = re.compile(r"true|false", re.IGNORECASE)
_LOCAL: Final = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?")

TUNING: Final[Mapping[str, re.Pattern[str]]] = {
    "spark.app.name": _PLAIN,
    "spark.master": _LOCAL,
    "spark.session": _PLAIN,
    "spark.sql.parquet.compression.codec": _PLAIN,
    "spark.sql.parquet.outputTimestampType": _PLAIN,
    "spark.sql.session.timeZone": _PLAIN,
    **dict.fromkeys(
        (
            "spark.driver.maxResultSize",
            "spark.driver.memory",
            "spark.driver.memoryOverhead",
            "spark.executor.heartbeatInterval",
            "spark.executor.memory",
            "spark.executor.memoryOverhead",
            "spark.executor.pyspark.memory",
            "spark.locality.wait",
            "spark.memory.offHeap.size",
            "spark.network.timeout",
            "spark.python.worker.memory",
            "spark.reducer.maxSizeInFlight",
            "spark.rpc.message.maxSize",
            "spark.shuffle.file.buffer",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes",
            "spark.sql.autoBroadcastJoinThreshold",
            "spark.sql.execution.arrow.maxBytesPerBatch",
            "spark.sql.files.maxPartitionBytes",
        ),
        _SIZE,
    ),
    **dict.fromkeys(
        (
            "spark.cores.max",
            "spark.default.parallelism",
            "spark.driver.cores",
            "spark.driver.memoryOverheadFactor",
            "spark.dynamicAllocation.initialExecutors",
            "spark.dynamicAllocation.maxExecutors",
            "spark.dynamicAllocation.minExecutors",
            "spark.executor.cores",
            "spark.executor.instances",
            "spark.executor.memoryOverheadFactor",
            "spark.memory.fraction",
            "spark.memory.storageFraction",
            "spark.sql.execution.arrow.maxRecordsPerBatch",
            "spark.sql.files.maxRecordsPerFile",
            "spark.sql.maxConcurrentOutputFileWriters",
            "spark.sql.shuffle.partitions",
            "spark.task.cpus",
            "spark.task.maxFailures",
        ),
        _NUMBER,
    ),
    **dict.fromkeys(
        (
            "spark.dynamicAllocation.enabled",
            "spark.memory.offHeap.enabled",
            "spark.python.worker.reuse",
            "spark.shuffle.compress",
            "spark.shuffle.spill.compress",
            "spark.speculation",
            "spark.sql.adaptive.coalescePartitions.enabled",
            "spark.sql.adaptive.enabled",
            "spark.sql.adaptive.skewJoin.enabled",
            "spark.sql.ansi.enabled",
            "spark.ui.showConsoleProgress",
        ),
        _SWITCH,
    ),
}
"""The keys that the policy ``Tuning`` allows, each with the form that its value must have."""


@validator(f"one of {', '.join(_POLICIES)}")
def known_spark_policy(key: str, value: str) -> None:
    """Accept only known policy names."""
    if value.strip() not in _POLICIES:
        raise ConfigError(key, value, f"String must be one of: {', '.join(_POLICIES)}")


def refused_spark_keys(worker: Mapping[str, str], props: Mapping[str, str]) -> Iterator[ConfigError]:
    """Yield an error for each Spark key in ``props`` that the worker's file does not allow connectors to set."""
    policy = worker.get(SPARK_POLICY_KEY, _DEFAULT).strip()
    known_spark_policy(SPARK_POLICY_KEY, policy)
    listed = [item.strip() for item in worker.get(SPARK_ALLOWLIST_KEY, "").split(",")]
    if policy == "All":
        return
    for key, value in props.items():
        if not key.startswith("spark.") or (policy != "None" and any(matches_wildcard(item, key) for item in listed)):
            continue
        form = TUNING.get(key) if policy == "Tuning" else None
        if form is None or not form.fullmatch(value.strip()):
            what = f"'{key}' to be set" if form is None else f"this value of '{key}'"
            remedy = f"Remove it, or allow the key with {SPARK_ALLOWLIST_KEY} in the worker's file."
            yield ConfigRuleError(
                f"The '{policy}' policy for Spark does not allow {what} in the connector configuration. {remedy}", key
            )
