"""Workers, their processes and the broker are killed at random moments: nothing is lost, and nothing doubled where
exactly-once is promised.

The kills follow from a seed, which is printed: ``SLUICE_CHAOS_SEED`` gives it back. ``SLUICE_CHAOS_KILLS`` is how many
there are, 10 if it is not set; one in eight is one of the Spark sink. With ``SLUICE_CHAOS_ENGINE=java`` Kafka's own
file connectors run in JVMs in place of ours.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.chaos.conductor import Conductor
from cluster.chaos.lake import Lake
from cluster.chaos.phases import AIMED
from cluster.chaos.plan import Kind, Victim, draw
from cluster.chaos.report import missed, report
from cluster.chaos.workload import Workload
from equipment.brokers.proxied_broker import ProxiedBroker
from equipment.workers.cluster import WATCHED_PLUGINS, Cluster
from equipment.workers.java_plugins import file_plugin
from worker.supervisor.hosts.placement import FEW

pytestmark = [pytest.mark.cluster, pytest.mark.integration, pytest.mark.usefixtures("visible")]

KILLS = int(os.environ.get("SLUICE_CHAOS_KILLS", "10"))
SPARK_KILLS = KILLS // 8
"""Spark takes its time to start, and has more kills of its own in ``test_spark_kills.py``."""
JAVA = os.environ.get("SLUICE_CHAOS_ENGINE") == "java"
WORKERS = 2
CROWD = WORKERS * (FEW + 1) if os.environ.get("SLUICE_TEST_ISOLATION") == "auto" else 0
"""With so many idle tasks, all tasks of a cluster share processes with ``task.isolation=auto``, as few would not."""
AT_ONCE = 15
"""After so many kills everything has to run again before the next."""
LONGEST = 600 + (30 if JAVA else 15) * KILLS
"""Seconds a test may take."""
PHASES = () if JAVA else AIMED
"""What has to be hit. What a JVM does is not seen, and fencing for its tasks takes too short a time to be aimed at."""
LOOKING = Path(__file__).with_name("looking")
RECORDS = 10_000
MOST_LOADS = 2
"""Fewer loads than this are waited for before a kill of the Spark sink."""
SHORT = {"session_timeout_ms": "6000" if JAVA else "3000", "heartbeat_interval_ms": "500"}
"""The quicker workers are missed, the more kills there are in the same time."""

JVMS = (
    *(Victim(Kind.JVM, "exact", "files-"),) * 3,
    Victim(Kind.JVM, "plain", "out|task"),
)
VICTIMS = (
    *(Victim(Kind.UNIT, "exact", "files-" if JAVA else "files|task"),) * 3,
    *(Victim(Kind.UNIT, "exact", "table|task"),) * 3,
    *(Victim(Kind.UNIT, "plain", "lines|task"),) * 2,
    *(Victim(Kind.UNIT, "plain", "out|task"),) * 2,
    *(JVMS if JAVA else (Victim(Kind.UNIT, "exact", "files|worker"),)),
    Victim(Kind.WORKER, "exact", "leader"),
    Victim(Kind.MACHINE, "exact", "leader"),
    Victim(Kind.WORKER, "exact", "follower"),
    Victim(Kind.MACHINE, "exact", "follower"),
    Victim(Kind.WORKER, "plain", "leader"),
    Victim(Kind.MACHINE, "plain", "follower"),
    *(Victim(Kind.BROKER),) * 2,
)
SPARK_VICTIMS = (
    *(Victim(Kind.UNIT, "lake", "lake|task"),) * 2,
    Victim(Kind.JVM, "lake", "lake|task"),
    Victim(Kind.WORKER, "lake", "lake|task"),
    Victim(Kind.MACHINE, "lake", "lake|task"),
    Victim(Kind.BROKER),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """What the kills are of."""

    conductor: Conductor
    workload: Workload


@pytest.fixture
def visible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what the test starts be looked at."""
    path = [str(LOOKING), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))


@pytest.fixture
def seed() -> int:
    """The seed of the kills, printed."""
    chosen = int(os.environ.get("SLUICE_CHAOS_SEED", random.randrange(1 << 32)))
    print(f"SLUICE_CHAOS_SEED={chosen}")
    return chosen


def java_props(plugins: Path) -> dict[str, str]:
    """The properties of workers that run Kafka's file connectors, too."""
    return {
        "plugin_path": f"{WATCHED_PLUGINS},{file_plugin(plugins)}",
        "java_plugins_jvm_options": "-Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }


@pytest.fixture
def scene(mortal: ProxiedBroker, tmp_path: Path) -> Iterator[Scene]:
    """Two clusters of two workers each, with five pipelines under way."""
    props = SHORT | (java_props(tmp_path / "plugins") if JAVA else {})
    exact = Cluster(tmp_path / "exact", mortal.bootstrap, WORKERS, exactly_once_source_support="enabled", **props)
    plain = Cluster(tmp_path / "plain", mortal.bootstrap, WORKERS, **props)
    files = tmp_path / "files"
    files.mkdir()
    workload = Workload(files, mortal.bootstrap, exact, plain, CROWD, java=JAVA)
    conductor = Conductor(mortal, {"exact": exact, "plain": plain}, workload.reconfigure)
    try:
        exact.start()
        plain.start()
        workload.create()
        yield Scene(conductor, workload)
    finally:
        conductor.close()
        exact.close()
        plain.close()


@pytest.mark.timeout(LONGEST)
@pytest.mark.thorough
def test_nothing_is_lost_and_nothing_doubled_that_may_not_be(scene: Scene, seed: int) -> None:
    conductor = scene.conductor
    steps = draw(seed, KILLS - SPARK_KILLS, VICTIMS)
    with scene.workload.input:
        for first in range(0, len(steps), AT_ONCE):
            for step in steps[first : first + AT_ONCE]:
                conductor.carry_out(step)
            conductor.settle()
        for phase in missed(conductor.hits, PHASES):
            conductor.aim(phase)
            conductor.settle()
    account = scene.workload.account()
    print("\n".join([report(seed, conductor.hits), *account]))
    assert not missed(conductor.hits, PHASES)


@pytest.mark.spark
@pytest.mark.timeout(LONGEST)
@pytest.mark.thorough
def test_spark_loads_everything_once(mortal: ProxiedBroker, tmp_path: Path, seed: int) -> None:
    allowed = {"connector.spark.config.override.allowlist": "spark.driver.extraJavaOptions"}
    cluster = Cluster(tmp_path / "lake", mortal.bootstrap, 2, **SHORT, **allowed)
    lake = Lake(tmp_path / "store", mortal.bootstrap, cluster, RECORDS)
    conductor = Conductor(mortal, {"lake": cluster}, lake.reconfigure)
    try:
        cluster.start()
        lake.create()
        for step in draw(seed, SPARK_KILLS, SPARK_VICTIMS):
            lake.wait_for_loads(int(step.choice * MOST_LOADS))
            conductor.carry_out(step)
            lake.check()
        conductor.settle()
        print("\n".join([report(seed, conductor.hits), *lake.account()]))
    finally:
        conductor.close()
        cluster.close()
