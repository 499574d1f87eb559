"""A connector's session in a shared Spark application, which is started if it is not running."""

from __future__ import annotations

import json
import logging
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession, SQLContext

from connect.errors import ConfigError, ConnectError
from connect.internals.jvm.shared_process import SHARED_MARK, Membership
from connectors.spark.cluster.application import (
    SESSION_KEY,
    Application,
    ApplicationFolder,
    agree,
    application_name,
    split_settings,
)
from connectors.spark.gateway import attach_gateway

__all__ = ["SharedSession", "join_application"]

logger = logging.getLogger(__name__)
_GOING_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.1


class SharedSession(SparkSession):
    """A session in an application that other connectors use as well; :meth:`stop` only leaves it."""

    def __init__(self, context: SparkContext, java_session: Any, membership: Membership, java: int) -> None:
        super().__init__(context, java_session)
        self._membership = membership
        self._java = java
        self._own: dict[str, str] = {}

    def configure(self, settings: Mapping[str, str], name: str) -> None:
        """Apply the connector's own settings; raise :class:`~connect.errors.ConfigError` for one that all members must
        share.
        """
        for key, value in settings.items():
            _set(self, key, value, name)
        self._own |= settings

    def newSession(self) -> SparkSession:  # noqa: N802 - Spark's name
        """Return another session with the connector's own settings; leave the application through this one."""
        session = SparkSession(self.sparkContext, self._jsparkSession.newSession())
        for key, value in self._own.items():
            session.conf.set(key, value)
        return session

    def stop(self) -> None:
        """Leave the application, which ends when its last member has left."""
        server: Any = self.sparkContext._accumulatorServer
        gateway: Any = SparkContext._gateway
        with suppress(Exception):
            server.shutdown()
        with suppress(Exception):
            gateway.close()
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        SQLContext._instantiatedContext = None
        self._membership.give_up()

    def end_application(self) -> None:
        """End an application that is no longer of use to any member, and leave it."""
        with suppress(ProcessLookupError):
            os.kill(self._java, signal.SIGKILL)
        self.stop()


@dataclass(frozen=True, slots=True)
class _ApplicationRequest:
    """A connector's requirements for the application."""

    session: str
    connector: str
    settings: Mapping[str, str]
    terms: Mapping[str, str]
    log: Path


def join_application(
    session: str,
    table_format: str,
    connector: str,
    settings: Mapping[str, str],
    besides: Mapping[str, str],
    home: Path,
) -> SharedSession:
    """Join the application that this worker's connectors with a table format call ``session``, or start it.

    ``besides`` are further values that all of its connectors must have in common. Raises
    :class:`~connect.errors.ConfigError` if they differ.
    """
    name = application_name(session, table_format)
    whole, own = split_settings({**settings, "spark.app.name": f"sluice-session-{name}"})
    whole = {"spark.scheduler.mode": "FAIR", **whole}
    log = home / "spark" / "logs" / f"{name}.log"
    request = _ApplicationRequest(name, connector, whole, {**whole, **besides}, log)
    folder = ApplicationFolder.of(name)
    with folder.turn():
        membership = Membership(folder.path)
        try:
            application = _running(folder) or _start(folder, request)
            agree(application.terms, session, connector, request.terms)
            return _attach(application, membership, own, session)
        except BaseException:
            membership.give_up()
            raise


def _running(folder: ApplicationFolder) -> Application | None:
    """Return the running application, if any; waits for one whose Java has ended to be gone."""
    deadline = time.monotonic() + _GOING_SECONDS
    while folder.has_host():
        application = folder.read()
        if application is not None and _lives(application.java):
            return application
        if time.monotonic() > deadline:
            raise ConnectError(
                f"The shared Spark application in {folder.path} is neither running nor ended: restart the worker."
            )
        time.sleep(_PAUSE_SECONDS)
    return None


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state not in (b"Z", b"X")


def _start(folder: ApplicationFolder, request: _ApplicationRequest) -> Application:
    name, log = request.session, request.log
    logger.info("Starting the Spark application that connectors share as %s; its log is %s", name, log)
    folder.clear()
    order = {
        "settings": dict(request.settings),
        "terms": dict(request.terms),
        "connector": request.connector,
        "salt": secrets.token_hex(16),
    }
    command = [sys.executable, "-m", "connectors.spark.cluster.host", SHARED_MARK, str(folder.path), str(log)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environ,
        start_new_session=True,
    ) as process:
        answer, _ = process.communicate(json.dumps(order).encode())
    application = folder.read()
    if application is None or answer.strip():
        why = answer.decode(errors="replace").strip() or "its process has ended"
        raise ConnectError(f"The Spark application {name} did not start: {why}. Its log is {log}.")
    return application


def _attach(application: Application, membership: Membership, own: Mapping[str, str], name: str) -> SharedSession:
    """Create a session in the application, with the connector's own settings."""
    gateway = attach_gateway(application.port, application.secret)
    SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm
    classes = getattr(gateway.jvm, "org.apache.spark.sql.classic.SparkSession")
    first = classes.getDefaultSession().get()
    java_context = gateway.jvm.JavaSparkContext(first.sparkContext())
    context = SparkContext(gateway=gateway, jsc=java_context, conf=SparkConf(_jconf=java_context.sc().conf()))
    # pyspark takes a process's first session for that of the whole application, which the connector's is not.
    SparkSession(context, first)
    session = SharedSession(context, first.newSession(), membership, application.java)
    session.configure(own, name)
    return session


def _set(session: SparkSession, key: str, value: str, name: str) -> None:
    if session.conf.get(key, None) == value:
        return
    try:
        session.conf.set(key, value)
    except Exception as error:
        reason = (
            f"It is a setting of the whole Spark application, which the connectors with {SESSION_KEY}={name} share: "
        )
        raise ConfigError(key, value, f"{reason}remove it, or remove {SESSION_KEY}.") from error
