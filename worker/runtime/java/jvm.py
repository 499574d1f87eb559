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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from connect.errors import ConnectError, PluginError
from connect.internals.extras import missing_extra
from connect.internals.jvm.class_archive import ClassArchive, class_archive
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connect.internals.jvm.java import find_java
from worker.loggers import level_name
from worker.runtime.java.log_lines import JavaLog

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

__all__ = ["ExitWitness", "Jvm", "jvm_of_process", "missing_java", "running_jvm", "when_jvm_ends"]

logger = logging.getLogger(__name__)

_HERE: Final = Path(__file__).parent
_LOCK: Final = _HERE / "connect_runtime.jars"
_LOGGING: Final = _HERE / "log4j2.properties"
_FIXED_OPTIONS: Final = (
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+ErrorFileToStderr",
    # What ends it by itself, such as a lack of memory, is told with its last lines.
    "-XX:+DisplayVMOutputToStderr",
    "-XX:-CreateCoredumpOnCrash",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    # So that an idle JVM, which collects nothing by itself, gives back what its start has taken.
    "-XX:G1PeriodicGCInterval=60000",
    "-XX:MinHeapFreeRatio=10",
    "-XX:MaxHeapFreeRatio=30",
    # py4j calls the server of JMX by reflection, and its class is not exported.
    "--add-exports=java.management/com.sun.jmx.mbeanserver=ALL-UNNAMED",
)
_LOGS: Final = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
_JAVA_VERSION: Final = 17
_GIVES_BACK_SECONDS: Final = 60.0
_HOST: Final = "127.0.0.1"
_LAST_LINES: Final = 20
_EXIT: Final = ("java.lang.Runtime", "exit")
_TOKEN_BYTES: Final = 32
_EXIT_STATUS: Final = 1
_NOTHING: Final = repr(b"")
"""What was read in place of a port if the JVM has ended."""
_ENDING_SECONDS: Final = 5.0
"""After so many seconds at the latest a JVM whose connections are closed has ended."""


def missing_java() -> str | None:
    """Return what this process lacks to run Java plugins, and how to get it; ``None`` if nothing is missing."""
    return missing_extra("java-plugins", "py4j")


class ExitWitness:
    """A ``Runnable`` for the JVM to run while it exits: ``System.exit`` leaves no stack, and nothing in the log.

    ``threads`` returns the ``ThreadInfo`` of each thread.
    """

    def __init__(self, threads: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
        self.asked_by: str | None = None
        """The line of the plugin that has asked for the exit, if it was a plugin."""
        self._threads = threads

    def run(self) -> None:
        """Look for who waits for the exit."""
        self.asked_by = next(filter(None, map(_asked_by, self._threads())), None)

    class Java:
        implements = ("java.lang.Runnable",)


def _asked_by(thread: Mapping[str, Any]) -> str | None:
    """Return the line of a plugin in which a thread has asked for the exit; ``None`` if it has not.

    Only the class loaders of plugins have no name, and no named modules.
    """
    frames = thread["stackTrace"]
    if not any((frame["className"], frame["methodName"]) == _EXIT for frame in frames):
        return None
    own = (frame for frame in frames if not (frame["classLoaderName"] or frame["moduleName"]))
    told = (f"{at['className']}.{at['methodName']}({at['fileName']}:{at['lineNumber']})" for at in own)
    return next(told, None)


class Jvm:
    """A JVM with Kafka Connect's runtime. Its methods may be called from any thread.

    ``java`` is the root of its packages, as in ``jvm.java.org.apache.kafka``.
    """

    def __init__(self, options: Sequence[str], more: Sequence[str] = ()) -> None:
        """``more`` are options in addition that do not matter to an archive of classes."""
        if (missing := missing_java()) is not None:
            raise PluginError(f"A Java plugin cannot run here. {missing}")
        self.log = JavaLog()
        self._last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        self._lock = threading.Lock()
        self._witness = ExitWitness(self._threads)
        logging.getLogger("py4j").setLevel(logging.WARNING)
        self._java = find_java(_JAVA_VERSION)
        self._archive = self._archive_for(options)
        self._archives = False
        self._process, first = self._launch([*options, *more])
        threading.Thread(target=self._await_end, name="jvm", daemon=True).start()
        with self.calls():
            self._gateway = _authenticated_both_ways(*first)
            self.java: Any = _Package(self._gateway.jvm)
            self._mapper: Any = self.java.com.fasterxml.jackson.databind.ObjectMapper()
            self._map_class: Any = self.java.java.util.LinkedHashMap._java_lang_class
            lang = self.java.java.lang
            lang.Runtime.getRuntime().addShutdownHook(lang.Thread(self._witness))
        threading.Thread(target=self._give_back, name="jvm memory", daemon=True).start()

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process.pid

    @contextmanager
    def calls(self) -> Iterator[None]:
        """Raise a ``ConnectError`` if the JVM does not answer a call within the block.

        If it has ended, nobody learns of that: this process ends, too, and what ran in it starts again.
        """
        from py4j.protocol import Py4JError, Py4JJavaError  # noqa: PLC0415 - an optional package

        try:
            yield
        except Py4JJavaError:
            raise
        except Py4JError as error:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_SECONDS)
                threading.Event().wait()
            raise ConnectError(f"The JVM of this process does not answer: {error}") from error

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

    def archive_classes(self) -> None:
        """Have an archive made of the classes that are loaded after a while, if there is none for this kind of JVM."""
        with self._lock:
            begins, self._archives = not self._archives, True
        if begins:
            self._archive.make_later(self._hierarchy)

    def _threads(self) -> Any:
        threads = self.java.java.lang.management.ManagementFactory.getThreadMXBean()
        return self.to_python(threads.dumpAllThreads(False, False))

    def _hierarchy(self) -> str | None:
        """Return the classes that are loaded, if the JVM can tell."""
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - an optional package

        try:
            with self.calls():
                given = self.java.java.util.ArrayList()
                given.add(self.strings([]))
                return self._diagnose("vmClassHierarchy", given.toArray(), self.strings(["[Ljava.lang.String;"]))
        except (Py4JJavaError, ConnectError) as error:
            logger.info("This JVM does not say which classes it has loaded, so that no archive is made: %s", error)
            return None

    def _give_back(self) -> None:
        """Have unused memory outside of the heap returned to the system from time to time: compilers take much of it
        for moments, most of it after a start. Older Javas cannot.
        """
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - an optional package

        with suppress(Py4JJavaError, ConnectError), self.calls():
            none = self.java.java.util.ArrayList().toArray()
            while True:
                threading.Event().wait(_GIVES_BACK_SECONDS)
                self._diagnose("systemTrimNativeHeap", none, self.strings([]))

    def _diagnose(self, command: str, arguments: Any, types: Any) -> str:
        server = self.java.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        name = self.java.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand")
        return str(server.invoke(name, command, arguments, types))

    def _archive_for(self, options: Sequence[str]) -> ClassArchive:
        from py4j.java_gateway import find_jar_path  # noqa: PLC0415 - an optional package

        jars = resolve_jars(read_lock(_LOCK), home=sluice_home())
        return class_archive(sluice_home(), self._java, [Path(find_jar_path()), *jars], options)

    def _launch(self, options: Sequence[str]) -> tuple[subprocess.Popen[bytes], tuple[int, str]]:
        from py4j.java_gateway import launch_gateway  # noqa: PLC0415 - an optional package

        # Many threads would have an arena of their own, whose free memory others cannot use.
        os.environ.setdefault("MALLOC_ARENA_MAX", "2")
        printed, errors = os.pipe()
        reader = threading.Thread(target=self._read_errors, args=(printed,), name="jvm errors", daemon=True)
        reader.start()
        try:
            with os.fdopen(errors, "wb") as stderr:
                port, token, process = launch_gateway(
                    jarpath=self._archive.jars[0],
                    classpath=os.pathsep.join(self._archive.jars[1:]),
                    javaopts=[*self._archive.flags, _LOGS, *_FIXED_OPTIONS, *options],
                    java_path=str(self._java.executable),
                    die_on_exit=True,
                    enable_auth=True,
                    return_proc=True,
                    redirect_stdout=self.log,
                    redirect_stderr=stderr,
                    create_new_process_group=False,
                )
        except (ValueError, OSError) as error:
            reader.join(_ENDING_SECONDS)
            if _NOTHING in str(error) and not self._last_lines:
                # A JVM that cannot start says why. This one was killed, and what was to run in it starts again.
                logger.exception("The JVM of this process ended while it started, without a word.")
                os._exit(_EXIT_STATUS)
            said = " ".join(self._last_lines) or str(error)
            raise ConnectError(
                f"The JVM for Java plugins did not start: {said}. Correct java.plugins.jvm.options "
                f"({' '.join(options)}) or the Java installation in {self._java.home}."
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
        if (place := self._witness.asked_by) is not None:
            how += f", as {place} had asked for"
        last = "\n".join(self._last_lines)
        reason = f"The JVM of its process {how}.{' It last printed:' if last else ''}\n{last}".rstrip()
        logger.error("%s", reason)
        with _LOCK_OF_MOURNERS:
            mourners = list(_MOURNERS)
        for tell in mourners:
            tell(reason)
        os._exit(_EXIT_STATUS)


class _Package:
    """A package of Java. Each name in it is looked up once: that is a call, and all jars are searched."""

    def __init__(self, package: Any) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        from py4j.java_gateway import JavaPackage  # noqa: PLC0415 - an optional package

        found = getattr(self._package, name)
        if isinstance(found, JavaPackage):
            found = _Package(found)
        setattr(self, name, found)
        return found


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


_LOCK_OF_MOURNERS: Final = threading.Lock()
_MOURNERS: Final[list[Callable[[str], None]]] = []


def when_jvm_ends(tell: Callable[[str], None]) -> Callable[[], None]:
    """Have ``tell`` called with the reason if the JVM of this process ends by itself; return how to take that back."""
    with _LOCK_OF_MOURNERS:
        _MOURNERS.append(tell)

    def forget() -> None:
        with _LOCK_OF_MOURNERS:
            _MOURNERS.remove(tell)

    return forget


_LOCK_OF_PROCESS: Final = threading.Lock()
_OF_PROCESS: list[Jvm] = []


def running_jvm() -> Jvm | None:
    """Return the JVM of this process; ``None`` if it has none."""
    return next(iter(_OF_PROCESS), None)


def jvm_of_process(options: Sequence[str], more: Sequence[str] = ()) -> Jvm:
    """Return the JVM of this process, which the first call starts.

    Its threads belong to the process, and to none of the units that share it.
    """
    with _LOCK_OF_PROCESS:
        if not _OF_PROCESS:
            _OF_PROCESS.append(contextvars.Context().run(Jvm, options, more))
        return _OF_PROCESS[0]
