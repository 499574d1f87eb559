"""Runs a child process: a connector, a task, several of them, or an inquiry, depending on its first command."""

from __future__ import annotations

import logging
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final, Protocol

from connect.bulk import BulkSinkTask
from connect.bulk_source import BulkSourceTask
from connect.config import Config
from connect.connector import Task
from connect.errors import ConnectError
from connect.internals.chain.sink_context import SinkContext
from connect.internals.chain.tolerance import ErrorCounts, Reporter, StopRequested, Tolerance
from connect.internals.plugins import class_name
from connect.sink import SinkTask
from connect.source import SourceTask
from worker.kafka.topics.admin import too_few_brokers
from worker.kafka.topics.creation import NewTopic
from worker.messages import messages
from worker.processes.lease import watch_lease
from worker.runtime.assembly import Assembly
from worker.runtime.bulk.bad_records import BadRecords
from worker.runtime.bulk.loads import Loads
from worker.runtime.bulk.loop import BulkLoop, BulkTaskRuntimeContext
from worker.runtime.bulk.source_context import BulkSourceTaskRuntimeContext
from worker.runtime.bulk.source_loop import BulkSourceLoop
from worker.runtime.clients import Clients, Publisher
from worker.runtime.connector import run_connector
from worker.runtime.control import Control
from worker.runtime.dead_letters.loads import LoadDeadLetters
from worker.runtime.dead_letters.queue import DeadLetterQueue, ErrorHeaders
from worker.runtime.inquiries.inquiries import answer
from worker.runtime.inquiries.long_inquiry import telling_where
from worker.runtime.java.jvm import running_jvm, when_jvm_ends
from worker.runtime.java.task import run_java_task
from worker.runtime.link import Line, Link
from worker.runtime.log import LogReporter, failure_trace, send_log, send_output
from worker.runtime.losses import Losses
from worker.runtime.metrics import TaskMetrics
from worker.runtime.providers import reload_after_ttl
from worker.runtime.shared_process import SharedProcess
from worker.runtime.sink.loop import SinkLoop
from worker.runtime.source.guarantee import guarantee_of
from worker.runtime.source.loop import SourceLoop, SourceTaskRuntimeContext
from worker.runtime.waits import Waits
from worker.runtime.watch import Watch
from worker.security.redaction import Redaction

__all__ = ["main", "run"]

logger = logging.getLogger(__name__)
_NOT_MAIN_THREAD: Final = "only works in main thread of the main interpreter"
_FEWER_BROKERS: Final = (
    " There are fewer brokers than errors.deadletterqueue.topic.replication.factor={}. Set "
    "errors.deadletterqueue.topic.replication.factor=1 for a single broker, or at most the number of brokers."
)


class Loop(Protocol):
    """The loop that runs a task."""

    def run(self) -> None:
        """Move data until the worker sends a stop."""

    def close(self) -> None:
        """Release clients and plugins."""


def main(connection: Connection, lease: str | None) -> None:
    """Run a child process, which ends with the ``lease`` of its worker, if it has one."""
    if lease is not None:
        watch_lease(lease)
    run(Line(connection), log_to_worker=True)


def run(line: Line, *, log_to_worker: bool) -> None:
    """Carry out the first command until it is done, has failed or is stopped.

    Without ``log_to_worker`` this is a thread of a test, and leaves the log and output of the process alone.
    """
    link = Link(line)
    try:
        first = link.open()
    except (EOFError, OSError):
        return  # a process that was started in advance and whose worker is gone
    if isinstance(first, messages.RunUnits):
        SharedProcess(line, _live).serve()
        return
    redaction = Redaction()
    stacks = None
    if log_to_worker:
        send_log(link, redaction)
        stacks = send_output(link, redaction)
    while True:
        _live(first, link, redaction, Watch(link.send, redaction.redacted, link.exit, stacks))
        if not (isinstance(first, messages.Inquiry) and running_jvm() is not None):
            return
        # The JVM takes seconds to start: the worker may have another inquiry, or ends this process.
        first = link.next_command()


def _live(first: messages.Command, link: Link, redaction: Redaction, watch: Watch) -> None:
    """Carry out the first command until it is done, has failed or is stopped."""
    try:
        match first:
            case messages.RunConnector():
                run_connector(first, link, redaction, watch)
            case messages.RunTask():
                _run_task(first, link, redaction, watch)
            case _ if isinstance(first, messages.Inquiry):
                _answer(first, link, redaction)
            case _:
                raise ConnectError(f"A process cannot start with the command {type(first).__name__}.")
    except BaseException as error:
        # Whatever a plugin raises, even SystemExit, is the reason for the failure (invariant I7).
        link.send(_needs_main_thread(link, error) or messages.Failed(redaction.redacted(failure_trace(error))))
    finally:
        watch.close()


def _answer(inquiry: messages.Inquiry, link: Link, redaction: Redaction) -> None:
    """Answer an inquiry, or say why that is not to be had from a JVM that ends."""
    forget = when_jvm_ends(lambda reason: link.send(messages.Failed(redaction.redacted(reason))))

    def tell(hanging: messages.Hanging) -> None:
        link.send(replace(hanging, trace=redaction.redacted(hanging.trace)))

    try:
        with telling_where(tell):
            said = answer(inquiry, link, redaction)
        link.send(said)
    finally:
        forget()


def _needs_main_thread(link: Link, error: BaseException | None) -> messages.NeedsProcess | None:
    """Return the report for a plugin that cannot install a signal handler here; in its own process it has the main
    thread.
    """
    while link.shares and error is not None:
        if isinstance(error, ValueError) and str(error).endswith(_NOT_MAIN_THREAD):
            return messages.NeedsProcess()
        error = error.__cause__ or error.__context__
    return None


def _run_task(command: messages.RunTask, link: Link, redaction: Redaction, watch: Watch) -> None:
    connector = command.connector_config
    assembly = Assembly.resolve(command.worker, connector, redaction, reload_after_ttl(link, connector))
    if assembly.is_java:
        run_java_task(command, assembly, link, redaction, watch)
        return
    assembly.hide_secrets()
    needs_process = getattr(_task_class(assembly), "needs_process", False)
    if link.shares and needs_process:
        link.send(messages.NeedsProcess())
        return
    watch.begin(assembly.hang_limits)
    link.when_stopped = watch.stopping
    control = Control(link, watch, paused=command.paused)
    control.takes_configs = issubclass(_task_class(assembly), SourceTask)
    control.takes_signals = _takes_signals(_task_class(assembly))
    clients = Clients(assembly, command.task, control.send, shares=link.shares)
    counts = ErrorCounts()
    queue = _dead_letters(command, assembly, clients, control, counts)
    log = LogReporter(command.connector, command.task, assembly.config, counts)
    reporters: list[Reporter] = [log] if queue is None else [log, queue]
    topic = assembly.config.errors_deadletterqueue_topic_name or None
    losses = Losses(control.send, counts, redaction.redacted, topic)
    policy = assembly.config.error_policy
    tolerance = Tolerance(policy, reporters, control.wait_unless_stopped, counts=counts, tell=losses.look)
    in_engine = assembly.engine_class is not None
    config = assembly.engine_config(command.config) if in_engine else assembly.task_config(command.config)
    try:
        task, loop = _task_and_loop(assembly, control, clients, tolerance, config, command.task, queue)
    except StopRequested:
        logger.info("Stopped before the task was started.")
        return
    try:
        with watch.call("start"):
            task.start()
        control.send(messages.Started(assembly.version, needs_process))
        loop.run()
    finally:
        _stop(task, loop, tolerance, watch)
        losses.look(ends=True)


def _dead_letters(
    command: messages.RunTask, assembly: Assembly, clients: Clients, control: Control, counts: ErrorCounts
) -> DeadLetterQueue | LoadDeadLetters | None:
    """Return the dead letter queue of the task, if it is configured."""
    config = assembly.config
    topic = config.errors_deadletterqueue_topic_name
    if not topic:
        return None
    for forbidden in assembly.internal_topics.refused("errors.deadletterqueue.topic.name", [topic]):
        raise forbidden
    factor = config.errors_deadletterqueue_topic_replication_factor
    try:
        clients.dlq_topic(NewTopic(topic, 1, factor))
    except ConnectError as error:
        remedy = _FEWER_BROKERS.format(factor) if too_few_brokers(error) else ""
        refused = str(error).rstrip(".")
        raise ConnectError(f"Could not initialize dead letter queue with topic={topic}: {refused}.{remedy}") from error
    headers: ErrorHeaders | None = None
    if config.errors_deadletterqueue_context_headers_enable:
        headers = ErrorHeaders(command.connector, command.task, assembly.redaction)
    if issubclass(_task_class(assembly), BulkSinkTask):
        return LoadDeadLetters(clients, topic, headers, command.connector, control.is_stopping, counts)
    return DeadLetterQueue(clients.dlq_producer(), topic, headers, counts)


def _task_and_loop(
    assembly: Assembly,
    control: Control,
    clients: Clients,
    tolerance: Tolerance,
    config: Config,
    number: int,
    queue: Reporter | None,
) -> tuple[Task[Any], Loop]:
    """Make the task, without starting it, and the loop for its kind."""
    task_class = _task_class(assembly)
    name = class_name(task_class)
    waits = Waits(control.send, assembly.redaction.redacted, assembly.config)
    if issubclass(task_class, SourceTask):
        guarantee = guarantee_of(assembly, control, clients, number)
        source_context = SourceTaskRuntimeContext(control, tolerance, name, guarantee)
        source = task_class(config, source_context)
        return source, SourceLoop(assembly, control, clients, source, source_context, tolerance, guarantee, waits)
    if issubclass(task_class, BulkSinkTask):
        metrics = TaskMetrics(control.send, tolerance.counts, tell=tolerance.tell)
        loads = Loads(control.send, assembly.redaction.redacted, metrics)
        tells = assembly.config.errors_log_enable and assembly.config.tolerates_errors
        left_out = BadRecords(tolerance, queue if isinstance(queue, LoadDeadLetters) else None, tells=tells)
        bulk = task_class(config, BulkTaskRuntimeContext(control, assembly, clients, loads, left_out))
        return bulk, BulkLoop(assembly, control, clients, bulk, loads, metrics, waits)
    if issubclass(task_class, BulkSourceTask):
        return _bulk_source(assembly, control, clients, tolerance, task_class, config, number, waits)
    if issubclass(task_class, SinkTask):
        context = SinkContext(tolerance, name, Publisher(clients), control.wait, reports=assembly.config.reports_errors)
        sink = task_class(config, context)
        return sink, SinkLoop(assembly, control, clients, sink, context, tolerance, waits)
    raise ConnectError(
        f"{name}, the task_class of {class_name(assembly.connector_class)}, has to be a subclass of SourceTask, "
        "SinkTask, BulkSourceTask or BulkSinkTask."
    )


def _task_class(assembly: Assembly) -> type[Task[Any]]:
    """Return the class of the task that runs here: the engine's, or the connector's."""
    return assembly.engine_class or assembly.connector_class.task_class


def _takes_signals(task_class: type[Task[Any]]) -> bool:
    return issubclass(task_class, SourceTask) and task_class.take_signal is not SourceTask.take_signal


def _bulk_source(
    assembly: Assembly,
    control: Control,
    clients: Clients,
    tolerance: Tolerance,
    task_class: type[BulkSourceTask[Any]],
    config: Config,
    number: int,
    waits: Waits,
) -> tuple[Task[Any], Loop]:
    metrics = TaskMetrics(control.send, tolerance.counts, tell=tolerance.tell)
    loads = Loads(control.send, assembly.redaction.redacted, metrics)
    context = BulkSourceTaskRuntimeContext(assembly, control, clients, tolerance, loads, metrics, number)
    task = task_class(config, context)
    until_drained = assembly.config.runs_until_drained
    return task, BulkSourceLoop(control, task, context, loads, metrics, waits, until_drained=until_drained)


def _stop(task: Task[Any], loop: Loop, tolerance: Tolerance, watch: Watch) -> None:
    try:
        with watch.call("stop"):
            task.stop()
    except Exception as error:
        logger.warning("The task failed to stop: %s", error, exc_info=True)
    try:
        # The record with which the task has failed, or one that it gave up while it closed.
        tolerance.flush()
    except Exception as error:
        logger.warning("Reports about the last failed records may be lost: %s", error)
    loop.close()
