"""The JVM of this process, which runs Kafka Connect's own runtime with Java plugins, and the way to call it.

A process has at most one, started by its first Java unit. Calls go both ways over the loopback device, and each side
has to show a token that the other has been given through a pipe or a connection already authenticated: no other user
of the machine can call in. The JVM ends with its process, whose end it sees at its standard input; and when it ends by
itself, so does the process, since nothing is left that could run its units.
"""

from __future__ import annotations

import contextvars
import logging
import os
import secrets
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from connect.errors import ConnectError, PluginError
from connect.internals.extras import missing_extra
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connect.internals.jvm.java import find_java
from worker.loggers import level_name
from worker.runtime.java.log_lines import JavaLog

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

__all__ = ["Jvm", "has_jvm", "jvm_of_process", "missing_java"]

logger = logging.getLogger(__name__)

_HERE: Final = Path(__file__).parent
_LOCK: Final = _HERE / "connect_runtime.jars"
_LOGGING: Final = _HERE / "log4j2.properties"
_FIXED_OPTIONS: Final = (
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+ErrorFileToStderr",
    "-XX:-CreateCoredumpOnCrash",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    # py4j calls the server of JMX by reflection, and its class is not exported.
    "--add-exports=java.management/com.sun.jmx.mbeanserver=ALL-UNNAMED",
)
_JAVA_VERSION: Final = 17
_HOST: Final = "127.0.0.1"
_LAST_LINES: Final = 20
_TOKEN_BYTES: Final = 32
_EXIT_STATUS: Final = 1


def missing_java() -> str | None:
    """Return what this process lacks to run Java plugins, and how to get it; ``None`` if nothing is missing."""
    return missing_extra("java-plugins", "py4j")


class Jvm:
    """A JVM with Kafka Connect's runtime. Its methods may be called from any thread.

    ``java`` is the root of its packages, as in ``jvm.java.org.apache.kafka``.
    """

    def __init__(self, options: Sequence[str]) -> None:
        if (missing := missing_java()) is not None:
            raise PluginError(f"A Java plugin cannot run here. {missing}")
        self.log = JavaLog()
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._mourners: list[Callable[[str], None]] = []
        self._lock = threading.Lock()
        logging.getLogger("py4j").setLevel(logging.WARNING)
        self._process, first = self._launch(options)
        self._gateway = _authenticated_both_ways(*first)
        self.java: Any = self._gateway.jvm
        self._mapper: Any = self.java.com.fasterxml.jackson.databind.ObjectMapper()
        self._map_class: Any = self.java.java.util.LinkedHashMap._java_lang_class
        threading.Thread(target=self._await_end, name="jvm", daemon=True).start()

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    def to_java(self, document: Any) -> Any:
        """Return a dict of plain values as a ``java.util.Map``, in one call however large it is."""
        return self._mapper.readValue(orjson.dumps(document).decode(), self._map_class)

    def to_python(self, value: Any) -> Any:
        """Return a Java object as plain values, in one call however large it is."""
        return orjson.loads(self._mapper.writeValueAsString(value))

    def call(self, target: Any, method: str) -> Any:
        """Call a method of a Java object whose class in Python has another one of that name."""
        from py4j.java_gateway import get_method  # noqa: PLC0415 - an optional package

        return get_method(target, method)()

    def strings(self, values: Sequence[str]) -> Any:
        """Return an array of ``String``."""
        array = self._gateway.new_array(self.java.java.lang.String, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    def trace(self, error: Any) -> str:
        """Return the stack trace of a ``Throwable`` as Java writes it."""
        text = self.java.java.io.StringWriter()
        error.printStackTrace(self.java.java.io.PrintWriter(text, True))
        return str(text.toString())

    def set_level(self, name: str, level: int) -> None:
        """Set the level of a Java logger and those below it; ``root`` is every logger."""
        log4j = self.java.org.apache.logging.log4j
        named = log4j.Level.toLevel(level_name(level))
        if name == "root":
            log4j.core.config.Configurator.setAllLevels("", named)
        else:
            log4j.core.config.Configurator.setAllLevels(name, named)

    def when_dead(self, tell: Callable[[str], None]) -> Callable[[], None]:
        """Have ``tell`` called with the reason if the JVM ends by itself; return how to take that back."""
        with self._lock:
            self._mourners.append(tell)

        def forget() -> None:
            with self._lock:
                self._mourners.remove(tell)

        return forget

    def _launch(self, options: Sequence[str]) -> tuple[subprocess.Popen[bytes], tuple[int, str]]:
        from py4j.java_gateway import launch_gateway  # noqa: PLC0415 - an optional package

        java = find_java(_JAVA_VERSION)
        jars = resolve_jars(read_lock(_LOCK), home=sluice_home())
        printed, errors = os.pipe()
        threading.Thread(target=self._read_errors, args=(printed,), name="jvm errors", daemon=True).start()
        try:
            with os.fdopen(errors, "wb") as stderr:
                port, token, process = launch_gateway(
                    classpath=os.pathsep.join(map(str, jars)),
                    javaopts=[f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *_FIXED_OPTIONS, *options],
                    java_path=str(java.executable),
                    die_on_exit=True,
                    enable_auth=True,
                    return_proc=True,
                    redirect_stdout=self.log,
                    redirect_stderr=stderr,
                    create_new_process_group=False,
                )
        except (ValueError, OSError) as error:
            said = " ".join(self._last_lines) or str(error)
            raise ConnectError(
                f"The JVM for Java plugins did not start: {said}. Correct java.plugins.jvm.options "
                f"({' '.join(options)}) or the Java installation in {java.home}."
            ) from error
        return process, (port, token if isinstance(token, str) else token.decode())

    def _read_errors(self, descriptor: int) -> None:
        """Log what the JVM itself prints; its last lines tell why it has ended."""
        with os.fdopen(descriptor, encoding="utf-8", errors="backslashreplace") as lines:
            for line in lines:
                self._last_lines.append(line.rstrip())
                self.log.plain(line)

    def _await_end(self) -> None:
        status = self._process.wait()
        how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
        last = "\n".join(self._last_lines)
        reason = f"The JVM of its process {how}.{' It last printed:' if last else ''}\n{last}".rstrip()
        logger.error("%s", reason)
        with self._lock:
            mourners = list(self._mourners)
        for tell in mourners:
            tell(reason)
        os._exit(_EXIT_STATUS)


def _authenticated_both_ways(port: int, token: str) -> JavaGateway:
    """Return a gateway by which Python and Java call each other, each with a token.

    The server that a new JVM has lets anybody be called by it, so that a second one is made through it.
    """
    from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway  # noqa: PLC0415

    first = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    both = secrets.token_hex(_TOKEN_BYTES)
    parameters = GatewayParameters(port=port, auth_token=both)
    gateway = JavaGateway(
        gateway_parameters=parameters,
        callback_server_parameters=CallbackServerParameters(
            port=0, auth_token=both, daemonize=True, daemonize_connections=True
        ),
    )
    called = gateway.get_callback_server().get_listening_port()
    loopback = first.jvm.java.net.InetAddress.getByName(_HOST)
    builder = first.jvm.py4j.GatewayServer.GatewayServerBuilder()
    server = builder.javaPort(0).javaAddress(loopback).callbackClient(called, loopback, both).authToken(both).build()
    server.start(True)
    # Nothing has been called yet: a gateway connects at its first call.
    parameters.port = gateway.gateway_client.port = server.getListeningPort()
    return gateway


_LOCK_OF_PROCESS: Final = threading.Lock()
_OF_PROCESS: list[Jvm] = []


def has_jvm() -> bool:
    """Return whether this process has a JVM."""
    return bool(_OF_PROCESS)


def jvm_of_process(options: Sequence[str]) -> Jvm:
    """Return the JVM of this process, which the first call starts.

    Its threads belong to the process, and to none of the units that share it.
    """
    with _LOCK_OF_PROCESS:
        if not _OF_PROCESS:
            _OF_PROCESS.append(contextvars.Context().run(Jvm, options))
        return _OF_PROCESS[0]
