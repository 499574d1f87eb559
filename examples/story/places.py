"""The systems of the story, each a real server on this machine, started for it and ended with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The servers are those that the tests run on.
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "examples" / "timeline")]

from server import serving  # noqa: E402

import worker.embedded.broker as broker_module  # noqa: E402
from connect.internals.jvm.home import sluice_home  # noqa: E402
from connect.internals.jvm.jars import read_lock, resolve_jars  # noqa: E402
from equipment.brokers.proxied_broker import ProxiedBroker  # noqa: E402
from equipment.servers.hdfs import HdfsServer, running_hdfs  # noqa: E402
from equipment.servers.hive import hive_metastore  # noqa: E402
from equipment.servers.killable import KillableServer, killable_server  # noqa: E402
from equipment.servers.products import MARIADB, PASSWORD, USER  # noqa: E402
from equipment.servers.s3 import S3Server, running_moto  # noqa: E402
from equipment.servers.search_servers import SearchServer, running_search_server  # noqa: E402
from worker.embedded.broker.server import BrokerConfig, EmbeddedBroker  # noqa: E402
from worker.embedded.registry.server import EmbeddedRegistry, RegistryServerConfig  # noqa: E402

__all__ = ["PASSWORD", "USER", "Places", "running"]

DURABLE = ("--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1")


@dataclass(frozen=True)
class Places:
    """Where everything is. Kafka and the database can be killed."""

    kafka: ProxiedBroker
    copy: str
    registry: str
    database: KillableServer
    hdfs: HdfsServer
    hive: str
    s3: S3Server
    search: SearchServer
    timeline: str

    def variables(self) -> dict[str, str]:
        """The variables to which the files of the workers and connectors refer."""
        keys = self.s3.props
        return {
            "STORY_KAFKA": self.kafka.bootstrap,
            "STORY_COPY": self.copy,
            "STORY_REGISTRY": self.registry,
            "STORY_DATABASE_PORT": str(self.database.server.port),
            "STORY_DATABASE_USER": USER,
            "STORY_DATABASE_PASSWORD": PASSWORD,
            "STORY_HDFS": self.hdfs.url,
            "STORY_HIVE": self.hive,
            "STORY_S3": self.s3.endpoint,
            "STORY_S3_KEY": keys["aws.access.key.id"],
            "STORY_S3_SECRET": keys["aws.secret.access.key"],
            "STORY_BUCKET": self.s3.bucket,
            "STORY_SEARCH": self.search.url,
            "STORY_TIMELINE": self.timeline,
        }


@contextmanager
def running(folder: Path) -> Iterator[Places]:
    """Start everything; end it with the block."""
    jars = resolve_jars(read_lock(Path(broker_module.__file__).with_name("broker.jars")), home=sluice_home())
    with ExitStack() as stack:
        enter = stack.enter_context
        yield Places(
            kafka=enter(ProxiedBroker.running(folder / "kafka", jars, clients=0)),
            copy=enter(EmbeddedBroker(BrokerConfig(folder=folder / "copy", port=0)).lease()).bootstrap_servers,
            registry=enter(EmbeddedRegistry(RegistryServerConfig(folder=folder / "registry", port=0)).lease()).url,
            database=enter(killable_server(MARIADB, *DURABLE)),
            hdfs=enter(running_hdfs()),
            hive=enter(hive_metastore(folder / "hive")),
            s3=enter(running_moto()),
            search=enter(running_search_server("opensearch")),
            timeline=enter(serving()).url,
        )
