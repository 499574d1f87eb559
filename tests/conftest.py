"""Fixtures that every test may ask for."""

from __future__ import annotations

import faulthandler
import gc
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connect.internals.jvm.java import find_java
from equipment.change_data import captured_database
from equipment.examples import register_profiles
from equipment.proofs import thorough
from equipment.reports import BriefReports
from equipment.schedule import (
    UNKNOWN,
    Durations,
    UnitScheduling,
    collected_by,
    in_order,
    read_durations,
    turn_to_collect,
    unit_of,
)
from equipment.servers.azurite import AzureServer, running_azurite
from equipment.servers.gcs import GcsServer, running_gcs
from equipment.servers.hdfs import HdfsServer, running_hdfs
from equipment.servers.lease import Database, Server, leased_server, new_database
from equipment.servers.mongodb import MongoServer, mongod, mongodb_server
from equipment.servers.mosquitto import MosquittoServer, mosquitto_programs, mosquitto_server
from equipment.servers.products import MARIADB, MYSQL, POSTGRESQL, Product
from equipment.servers.rabbitmq import RabbitServer, rabbitmq_program, rabbitmq_server
from equipment.servers.redis import RedisServer, redis_program, redis_server
from equipment.servers.s3 import S3Server, running_moto, running_versitygw, versitygw
from equipment.servers.search_servers import SearchServer, running_search_server
from equipment.workers.java_connect import JavaConnect, JavaConnectJars, resolve_java_connect
from equipment.workers.shared_spark import SharedJava
from equipment.workers.small_spark import SPARK_ENVIRON, end_spark, prepare_spark
from equipment.workers.standalone import LOG_NAME, StandaloneWorker
from worker.embedded.broker import server as broker_module
from worker.embedded.broker.server import BrokerConfig, BrokerInfo, EmbeddedBroker
from worker.embedded.registry.application import application_jar
from worker.embedded.registry.launch import LEAST_JAVA
from worker.embedded.registry.server import EmbeddedRegistry, RegistryInfo, RegistryServerConfig

# In CI a property that fails does so again.
register_profiles(derandomize=os.environ.get("CI") == "true")

_LAST_SECONDS: Final = 120.0
_LAST_LINES: Final = 40


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None]:
    """Have the garbage collector pass over thousands of tests that stay anyway; collect the part of this process."""
    config = session.config
    turn: AbstractContextManager[None] = nullcontext()
    if (process := getattr(config, "workerinput", {})).get("collects_part"):
        files = [str(path.relative_to(config.rootpath)) for path in sorted(Path(__file__).parent.rglob("test_*.py"))]
        number = int(process["workerid"].removeprefix("gw"))
        mine = collected_by(number, process["workercount"], files)
        config.args = [str(config.rootpath / file) for file in mine]
        turn = turn_to_collect(config.rootpath / ".pytest_cache" / "collecting", number)
    gc.disable()
    try:
        with turn:
            return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Begin with the tests that take longest, each file's together, in the same order in each process."""
    items.sort(key=lambda item: item.path.parts)
    yield
    recorded = read_durations()
    units = {item: unit_of(item.nodeid, recorded) for item in items}
    busy = {unit for item, unit in units.items() if item.get_closest_marker("spark") is not None}
    new = {unit for item, unit in units.items() if item.get_closest_marker("cluster") is not None} | busy
    places = {
        unit: place for place, unit in enumerate(in_order(units.values(), dict.fromkeys(new, UNKNOWN) | recorded, busy))
    }
    items.sort(key=lambda item: places[units[item]])


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell each process of a whole run, if it takes units, to collect only its part."""
    config = node.config
    whole = config.args == config.getini("testpaths")
    node.workerinput["collects_part"] = whole and config.getoption("dist") == "loadscope"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> UnitScheduling | None:
    """Keep the tests of a file together where ``--dist loadscope`` asks for that."""
    session = config.pluginmanager.getplugin("session")
    return UnitScheduling(session, log) if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Have a process that does not come to its end say where it hangs, and end: the limits are those of tests alone."""
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        stderr = os.dup(2)
    faulthandler.dump_traceback_later(_LAST_SECONDS, exit=True, file=stderr)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Let a process that has ended its part of a run wait for the others."""
    if hasattr(config, "workerinput"):
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have what makes Spark start quickly before the first test that starts one."""
    if item.get_closest_marker("spark") is not None:
        prepare_spark()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Give pytest's own handlers their formatters back, after it has attached them for this test.

    A unit that has run in this process sets those of all handlers. PySpark's loggers, which are there after its
    first error, set those of the handlers they are given; pytest gives its own to each logger that does not propagate.
    """
    plugin = item.config.pluginmanager.getplugin("logging-plugin")
    for handler in (plugin.caplog_handler, plugin.report_handler):
        handler.setFormatter(plugin.formatter)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a failure what the test's workers logged last."""
    report = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and folder is not None:
        for log in sorted(folder.rglob(LOG_NAME)):
            last = log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
            report.sections.append((f"end of {log.relative_to(folder)}", "\n".join(last)))
    return report


def pytest_configure(config: pytest.Config) -> None:
    """Make the Spark of each test small; measure how long tests take, if ``SLUICE_DURATIONS=write`` asks for that."""
    os.environ |= SPARK_ENVIRON
    measures, is_part = os.environ.get("SLUICE_DURATIONS") == "write", hasattr(config, "workerinput")
    if measures and not is_part:
        config.pluginmanager.register(Durations())
    if is_part and not measures:
        config.pluginmanager.register(BriefReports())


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
    """Escape lone surrogates, such as in a failing example: no process of pytest-xdist survives to send them."""
    return _sendable((yield))


def _sendable(part: Any) -> Any:
    match part:
        case str():
            return part.encode(errors="backslashreplace").decode()
        case dict():
            return {_sendable(key): _sendable(value) for key, value in part.items()}
        case list() | tuple():
            return type(part)(map(_sendable, part))
    return part


@pytest.fixture(scope="module", autouse=True)
def _spark_of_the_module() -> Iterator[None]:
    """Let no module find the Spark of another one, which has other jars and settings."""
    yield
    end_spark()


@pytest.fixture(scope="session")
def _shared_java() -> Iterator[SharedJava]:
    with closing(SharedJava()) as java:
        yield java


@pytest.fixture(scope="module")
def shared_java(_shared_java: SharedJava) -> Iterator[None]:
    """Start the sessions of this file in a Java process that is warm from other files with this fixture."""
    with _shared_java.lent():
        yield


@pytest.fixture(scope="module")
def table_java(_shared_java: SharedJava) -> Iterator[None]:
    """Do the same for files about Delta, Iceberg and Hive: those of one kind would take a process too long."""
    with _shared_java.lent():
        yield


@pytest.fixture(scope="session")
def broker_jars() -> tuple[Path, ...]:
    """The class path of the embedded broker. Where it cannot be had the test is skipped, in CI it fails."""
    lock = Path(broker_module.__file__).with_name("broker.jars")
    try:
        find_java()
        return resolve_jars(read_lock(lock), home=sluice_home())
    except ConnectError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no embedded broker here: {error}")


IMPATIENT: Final = {
    # How often Kafka looks for transactions that are over time, by default every 10 s.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # How often it looks for something to compact, by default every 15 s. It looks at each compacted partition, of which
    # the workers of a run have a thousand.
    "log.cleaner.backoff.ms": "2000",
}


@contextmanager
def _leased_broker(name: str, factory: pytest.TempPathFactory) -> Iterator[BrokerInfo]:
    base = factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with EmbeddedBroker(BrokerConfig(folder=run / name, port=0, properties=IMPATIENT)).lease() as info:
        yield info


@pytest.fixture(scope="session")
def broker(broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInfo]:
    """A Kafka broker, one for all the processes of this test run. Do not stop it: others use it."""
    with _leased_broker("broker", tmp_path_factory) as info:
        yield info


@pytest.fixture(scope="session")
def second_broker(broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInfo]:
    """A cluster beside ``broker``, for mirrors; also one for all the processes of this test run."""
    with _leased_broker("second-broker", tmp_path_factory) as info:
        yield info


@pytest.fixture(scope="session")
def third_broker(broker_jars: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInfo]:
    """A cluster beside ``broker`` and ``second_broker``, for mirrors; also one for the whole test run."""
    with _leased_broker("third-broker", tmp_path_factory) as info:
        yield info


@pytest.fixture(scope="session")
def bootstrap(broker: BrokerInfo) -> str:
    """The bootstrap servers of the run's broker."""
    return broker.bootstrap_servers


@pytest.fixture(scope="session")
def registry_application() -> Path:
    """The application of the embedded schema registry. Where it cannot be had the test is skipped, in CI it fails."""
    try:
        find_java(LEAST_JAVA)
        return application_jar(sluice_home())
    except ConnectError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no embedded schema registry here: {error}")


@pytest.fixture(scope="session")
def registry(registry_application: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryInfo]:
    """A schema registry, one for all the processes of this test run. Do not stop it: others use it."""
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with EmbeddedRegistry(RegistryServerConfig(folder=run / "registry", port=0)).lease() as info:
        yield info


_VERSITYGW: Final = versitygw()


_SERVERS_OF_S3: Final = ["moto", *([pytest.param("versitygw", marks=pytest.mark.thorough)] if _VERSITYGW else [])]


@pytest.fixture(scope="session", params=_SERVERS_OF_S3)
def s3(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    """A server that speaks S3. The tests run once with each that there is.

    versitygw is there after ``make versitygw``.
    """
    with running_versitygw(_VERSITYGW) if _VERSITYGW and request.param == "versitygw" else running_moto() as server:
        yield server


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsServer]:
    """A server that speaks as Google Cloud Storage does."""
    with running_gcs() as server:
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[AzureServer]:
    """A server that speaks as Azure Blob Storage does. Where it cannot be had the test is skipped."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_azurite())
        except ConnectError as error:
            pytest.skip(f"no Azurite here: {error}")
        yield server


@pytest.fixture(scope="session")
def hdfs() -> Iterator[HdfsServer]:
    """An HDFS. Where it cannot be had the test is skipped, in CI it fails."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_hdfs())
        except ConnectError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"no HDFS here: {error}")
        yield server


@pytest.fixture(scope="session", params=["opensearch", *thorough("elasticsearch")])
def search(request: pytest.FixtureRequest) -> Iterator[SearchServer]:
    """A cluster of one node that takes small requests only. Where it cannot be had the test is skipped."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(running_search_server(request.param, {"http.max_content_length": "2mb"}))
        except ConnectError as error:
            pytest.skip(f"no {request.param} here: {error}")
        yield server


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """The name of a topic that no other test uses; the topic itself is yet to be made."""
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in request.node.name)
    return f"{readable[:60]}-{uuid4().hex[:12]}"


@pytest.fixture
def standalone(bootstrap: str, tmp_path: Path) -> Iterator[Callable[..., StandaloneWorker]]:
    """Makes standalone workers on the run's broker, from worker keys with underscores for dots."""
    workers: list[StandaloneWorker] = []

    def make(**props: str) -> StandaloneWorker:
        workers.append(StandaloneWorker(tmp_path / f"worker-{len(workers)}", bootstrap, **props))
        return workers[-1]

    yield make
    for worker in workers:
        worker.close()


@pytest.fixture(scope="module")
def shared_standalone(
    bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., StandaloneWorker]]:
    """Starts standalone workers that the tests of a file share, from worker keys with underscores for dots."""
    with ExitStack() as stack:

        def start(environ: Mapping[str, str] | None = None, **props: str) -> StandaloneWorker:
            worker = StandaloneWorker(tmp_path_factory.mktemp("shared") / "worker", bootstrap, **props)
            stack.callback(worker.close)
            return worker.start(environ)

        yield start


@pytest.fixture(scope="session")
def java_connect_jars() -> JavaConnectJars:
    """Apache Kafka Connect's own worker. Where it cannot be had the test is skipped, in CI it fails."""
    try:
        return resolve_java_connect()
    except ConnectError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no Apache Kafka Connect here: {error}")


@pytest.fixture
def java_connect(
    java_connect_jars: JavaConnectJars, bootstrap: str, tmp_path: Path
) -> Iterator[Callable[..., JavaConnect]]:
    """Makes Java's workers on the run's broker, from worker properties: distributed if they have a ``group.id``."""
    workers: list[JavaConnect] = []

    def make(props: Mapping[str, str], connectors: Sequence[Mapping[str, str]] = ()) -> JavaConnect:
        folder = tmp_path / f"java-{len(workers)}"
        own, classes = {"bootstrap.servers": bootstrap, **props}, sluice_home() / "tests" / "connect"
        workers.append(JavaConnect(folder, java_connect_jars, own, connectors, classes=classes))
        return workers[-1]

    yield make
    for worker in workers:
        worker.close()


@contextmanager
def _server(product: Product, factory: pytest.TempPathFactory, *, required: bool = True) -> Iterator[Server]:
    base = factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    try:
        product.binary()
    except ConnectError as error:
        if required and os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no {product.name} here: {error}")
    with leased_server(product, run) as server:
        yield server


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """PostgreSQL, one for all the processes of this test run. Ask for ``postgresql``, a database in it."""
    with _server(POSTGRESQL, tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """MariaDB, one for all the processes of this test run. Ask for ``mariadb``, a database in it."""
    with _server(MARIADB, tmp_path_factory) as server:
        yield server


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """MySQL, one for all the processes of this test run; skipped where Debian's unstable release cannot be had."""
    with _server(MYSQL, tmp_path_factory, required=False) as server:
        yield server


@pytest.fixture(scope="session")
def mongodb() -> Iterator[MongoServer]:
    """MongoDB, a replica set of one member; each test takes a database of its own."""
    with _mongodb(standalone=False) as server:
        yield server


@pytest.fixture
def own_mongodb() -> Iterator[MongoServer]:
    """A MongoDB for this test alone, which it may kill."""
    with _mongodb(standalone=False) as server:
        yield server


@pytest.fixture(scope="module")
def standalone_mongodb() -> Iterator[MongoServer]:
    """A MongoDB without a replica set: it has no transactions and no change streams."""
    with _mongodb(standalone=True) as server:
        yield server


@contextmanager
def _mongodb(*, standalone: bool) -> Iterator[MongoServer]:
    try:
        mongod()
    except ConnectError as error:
        pytest.skip(f"no MongoDB here: {error}")
    with mongodb_server(standalone=standalone) as server:
        yield server


@pytest.fixture(scope="module")
def rabbitmq() -> Iterator[RabbitServer]:
    """RabbitMQ, which keeps busy even at rest; each test takes queues of its own."""
    with _rabbitmq() as server:
        yield server


@pytest.fixture
def own_rabbitmq() -> Iterator[RabbitServer]:
    """A RabbitMQ for this test alone, which it may kill."""
    with _rabbitmq() as server:
        yield server


@contextmanager
def _rabbitmq() -> Iterator[RabbitServer]:
    try:
        rabbitmq_program()
    except ConnectError as error:
        pytest.skip(f"no RabbitMQ here: {error}")
    with rabbitmq_server() as server:
        yield server


@pytest.fixture(scope="session")
def mosquitto() -> Iterator[MosquittoServer]:
    """Mosquitto, an MQTT server; each test takes topics of its own."""
    with _mosquitto() as server:
        yield server


@pytest.fixture
def own_mosquitto() -> Iterator[MosquittoServer]:
    """A Mosquitto for this test alone, which it may end."""
    with _mosquitto() as server:
        yield server


@pytest.fixture
def newer_mosquitto() -> Iterator[MosquittoServer]:
    """A newer one for this test alone, without rules, which sends 20 messages before they are acknowledged."""
    with _mosquitto(window=20, is_newer=True, rules=False) as server:
        yield server


@contextmanager
def _mosquitto(*, window: int = 0, is_newer: bool = False, rules: bool = True) -> Iterator[MosquittoServer]:
    try:
        mosquitto_programs(is_newer=is_newer)
    except ConnectError as error:
        pytest.skip(f"no mosquitto here: {error}")
    with mosquitto_server(window=window, is_newer=is_newer, rules=rules) as server:
        yield server


@pytest.fixture(scope="session")
def redis_session() -> Iterator[RedisServer]:
    """Redis, one for this process."""
    with _redis() as server:
        yield server


@pytest.fixture
def redis(redis_session: RedisServer) -> RedisServer:
    """An empty Redis."""
    with redis_session.client() as client:
        client.flushall()
    return redis_session


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A Redis for this test alone, which it may kill."""
    with _redis() as server:
        yield server


@contextmanager
def _redis() -> Iterator[RedisServer]:
    try:
        redis_program()
    except ConnectError as error:
        pytest.skip(f"no Redis here: {error}")
    with redis_server() as server:
        yield server


@pytest.fixture
def postgresql(postgresql_server: Server) -> Iterator[Database]:
    """An empty database of PostgreSQL for this test."""
    with new_database(postgresql_server) as database:
        yield database


@pytest.fixture
def captured(postgresql_server: Server) -> Iterator[Database]:
    """An empty database of PostgreSQL whose changes are captured."""
    with captured_database(postgresql_server) as database:
        yield database


@pytest.fixture
def mariadb(mariadb_server: Server) -> Iterator[Database]:
    """An empty database of MariaDB for this test."""
    with new_database(mariadb_server) as database:
        yield database


@pytest.fixture
def mysql(mysql_server: Server) -> Iterator[Database]:
    """An empty database of MySQL for this test."""
    with new_database(mysql_server) as database:
        yield database


@pytest.fixture(params=["postgresql", "mariadb", *thorough("mysql")])
def database(request: pytest.FixtureRequest) -> Database:
    """An empty database, of each server in turn."""
    found: Database = request.getfixturevalue(request.param)
    return found
