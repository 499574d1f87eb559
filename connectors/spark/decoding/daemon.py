"""The process from which a local Spark forks the Python processes of its tasks, with all imports done.

Spark runs this module once, and lets it fork whenever a task needs another Python process. Spark's own daemon imports
pyspark from an archive without compiled code, and leaves our imports to each process.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import PurePath

__all__ = ["without_archives"]


def without_archives(path: Sequence[str]) -> list[str]:
    """Return an import path without the archives of pyspark and py4j, if pyspark can be found without them."""
    rest = [entry for entry in path if not _is_archive(PurePath(entry).name)]
    return rest if PathFinder.find_spec("pyspark", rest) is not None else list(path)


def _is_archive(name: str) -> bool:
    return name == "pyspark.zip" or (name.startswith("py4j-") and name.endswith(".zip"))


def main() -> None:
    """Import what tasks need, then run Spark's daemon."""
    sys.path[:] = without_archives(sys.path)
    # Spark's conversion between Arrow and Python needs pandas.
    for name in ("pandas", "connectors.spark.decoding.executor"):
        import_module(name)
    from pyspark.daemon import manager  # noqa: PLC0415 - the path had to be changed before

    # Each process collects garbage after every task; the collector need not traverse all of this.
    gc.collect()
    gc.freeze()
    manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
