"""Creates, changes, stops and deletes connectors, as the leader. Used only in the herder's thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from connect.errors import AlreadyExistsError
from connect.plugins import PluginEntry
from worker.errors import (
    BadRequestError,
    ChangedMeanwhileError,
    ConflictError,
    InvalidConnectorError,
    UnknownConnectorError,
)
from worker.herder.cluster.leadership import Leadership
from worker.herder.cluster.publishing import Publication, Publications
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.drains import stop_connector
from worker.herder.inbox import Inbox, Request, Requests
from worker.herder.inquiries import Inquiries
from worker.membership.membership import Membership
from worker.stores.config.store import ConfigStore, TargetState
from worker.supervisor.messages import messages
from worker.supervisor.messages.messages import Report

__all__ = [
    "Checked",
    "GivenConfig",
    "Writes",
    "check_same_class",
    "check_validated",
    "initial_target",
    "merged",
    "named",
    "required_class",
]

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
GivenConfig: TypeAlias = Mapping[str, str | None]
"""A configuration as a user gives it: null is an error or, in a patch, removes a key."""

_NAME: Final = "name"
_CLASS: Final = "connector.class"
_INITIAL_STATES: Final = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


def named(name: str, config: GivenConfig) -> dict[str, str | None]:
    """Add the connector's name to a configuration, which may already have it but no other name; null means none."""
    said = config.get(_NAME)
    if said is not None and said != name:
        raise BadRequestError(f"Connector name configuration ({said}) doesn't match connector name in the URL ({name})")
    return {**config, _NAME: name}


def initial_target(initial_state: object) -> TargetState | None:
    """Return the target state for a new connector with this ``initial_state`` (KIP-980), if given."""
    if initial_state is None:
        return None
    target = _INITIAL_STATES.get(initial_state.upper()) if isinstance(initial_state, str) else None
    if target is None:
        raise BadRequestError(f"initial_state is {initial_state!r}; it must be one of {', '.join(_INITIAL_STATES)}.")
    return target


def merged(config: Mapping[str, str], patch: GivenConfig) -> dict[str, str | None]:
    """Apply a JSON merge patch to a configuration (KIP-477): null removes a key."""
    changed = {**config, **patch}
    return {key: value for key, value in changed.items() if value is not None}


def required_class(config: GivenConfig) -> str:
    """Return the class that a configuration names. The error for a missing one shows no values (invariant I8)."""
    named_class = config.get(_CLASS)
    if not named_class or not named_class.strip():
        keys = ", ".join(sorted(config))
        raise BadRequestError(
            f"Connector config {{{keys}}} contains no connector type. Set {_CLASS}; GET /connector-plugins lists them."
        )
    return named_class


def check_same_class(in_config: str, in_path: str, entries: tuple[PluginEntry | None, PluginEntry | None]) -> None:
    """Refuse to validate a configuration as another class than it names.

    ``entries`` are the plugins that the two names refer to, if they exist.
    """
    ours, asked = entries
    same = ours.class_name == asked.class_name if ours and asked else in_config == in_path
    if not same and (asked is not None or ours is not None):
        raise BadRequestError(f"Included connector type {in_config} does not match request type {in_path}")


def check_validated(*reports: messages.Validated) -> None:
    """Refuse configurations with validation errors, and list each distinct error once.

    Warnings follow the errors, because they may explain them.
    """
    errors = _each_once(
        [text for key in report.infos["configs"] for text in key["value"]["errors"]] for report in reports
    )
    if errors:
        listed = "\n".join(errors)
        warnings = _each_once(report.warnings for report in reports)
        raise InvalidConnectorError(
            f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n{listed}\nYou can "
            "also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`" + "".join(f"\n{told}" for told in warnings),
            reports[0].infos,
        )


def _each_once(lists: Iterable[Sequence[str]]) -> list[str]:
    """Return all texts of several lists without those that are in an earlier list."""
    told: list[str] = []
    for texts in lists:
        known = frozenset(told)
        told += [text for text in texts if text not in known]
    return told


@dataclass(frozen=True, slots=True)
class Checked:
    """A valid configuration and its type, ``source`` or ``sink``."""

    config: Mapping[str, str]
    type: str


def _tell_nobody(_name: str, _author: str | None) -> None:
    """Do nothing: nobody asks who has removed a connector."""


class Writes:
    """Writes configurations. Each write takes a turn of its connector, so it sees what the one before it wrote.

    ``author`` is the signed-in user who requested a change. ``removes`` is called with the user who deletes a
    connector.
    """

    def __init__(
        self,
        worker_props: Mapping[str, str],
        configs: ConfigStore,
        membership: Membership,
        connectors: Connectors,
        leadership: Leadership,
        inquiries: Inquiries,
        inbox: Inbox,
        changes: ChangeQueue,
        removes: Callable[[str, str | None], None] = _tell_nobody,
    ) -> None:
        self._worker_props = dict(worker_props)
        self._configs = configs
        self._membership = membership
        self._connectors = connectors
        self._leadership = leadership
        self._inquiries = inquiries
        self._inbox = inbox
        self._requests = Requests(inbox)
        self._changes = changes
        self._removes = removes
        self._overtaken = ChangeQueue(leadership, inbox.post)
        self._creating: set[str] = set()
        self._publications = Publications()

    def create(
        self,
        request: Request[Document],
        name: str,
        config: GivenConfig,
        target: TargetState | None,
        author: str | None = None,
    ) -> None:
        """Validate a configuration and create a connector with it."""

        def begin() -> None:
            self._check_new(name, is_new=name not in self._creating)
            given = named(name, config)
            self._creating.add(name)
            request.add_done_callback(lambda _: self._creating.discard(name))
            self._validated(request, name, given, go_on)

        def write(checked: Checked) -> Future[None]:
            self._check_new(name)
            return self._put(name, checked, author, target)

        def go_on(checked: Checked) -> None:
            self._configure(request, name, lambda: write(checked), lambda: self._connectors.info(name))

        self._leadership.as_leader(request, begin)

    def put(
        self,
        request: Request[tuple[bool, Document]],
        name: str,
        config: GivenConfig,
        revision: int | None = None,
        author: str | None = None,
    ) -> None:
        """Validate a configuration and create or update a connector; with a ``revision``, only if that is current."""
        is_new = False

        def write(checked: Checked) -> Future[None]:
            nonlocal is_new
            self._check_revision(name, revision)
            is_new = not self._connectors.exists(name)
            return self._put(name, checked, author)

        def go_on(checked: Checked) -> None:
            self._configure(request, name, lambda: write(checked), lambda: (is_new, self._connectors.info(name)))

        def begin() -> None:
            self._check_revision(name, revision)
            self._validated(request, name, named(name, config), go_on)

        self._leadership.as_leader(request, begin)

    def patch(
        self,
        request: Request[Document],
        name: str,
        patch: GivenConfig,
        revision: int | None = None,
        author: str | None = None,
    ) -> None:
        """Merge keys into a connector's configuration, even if other keys change during validation.

        With a ``revision``, only if that is current.
        """
        self._leadership.as_leader(request, lambda: self._patch(request, name, patch, revision, author, again=False))

    def _patch(
        self,
        request: Request[Document],
        name: str,
        patch: GivenConfig,
        revision: int | None,
        author: str | None,
        *,
        again: bool,
    ) -> None:
        """Validate the merged configuration, and write it if merging still gives the same result.

        The first attempts of several patches run concurrently. Those that were overtaken follow one after the other, so
        that each change that is written costs at most two of them a validation. A validation takes no turn of the
        connector, so others may change or stop it meanwhile.
        """
        config = self._patched(name, patch, revision)

        def retry() -> None:
            self._patch(request, name, patch, revision, author, again=True)

        def checked(config_checked: Checked) -> None:
            attempt: Request[None] = Request()

            def write() -> None:
                if self._patched(name, patch, revision) == config:
                    attempt.enter(f"writing the configuration of connector {name}")
                    written = self._put(name, config_checked, author)
                    self._requests.answer_when_written(attempt, written, answer)
                    return
                attempt.set_result(None)
                if again:
                    self._inbox.post(lambda: self._leading(request, retry))
                else:
                    self._overtaken.take(name, request, retry)

            attempt.add_done_callback(lambda done: _pass_on_failure(done, request))
            self._changes.take(name, attempt, write)

        def answer() -> None:
            request.set_result(self._connectors.info(name))

        self._validated(request, name, config, checked)

    def _patched(self, name: str, patch: GivenConfig, revision: int | None) -> dict[str, str | None]:
        self._check_revision(name, revision)
        return named(name, merged(self._connectors.entry(name).config, patch))

    def delete(self, request: Request[None], name: str, author: str | None = None) -> None:
        """Delete a connector."""

        def begin() -> None:
            self._connectors.entry(name)
            self._change(request, name, f"deleting connector {name}", write, _nothing)

        def write() -> Future[None]:
            self._connectors.entry(name)
            self._removes(name, author)
            return self._configs.remove_connector(name)

        self._leadership.as_leader(request, begin)

    def set_target_state(self, request: Request[None], name: str, target: TargetState) -> None:
        """Pause, resume or stop a connector."""

        def begin() -> None:
            self._check_known(name)
            self._change(request, name, f"writing the target state of connector {name}", write, _nothing)

        def write() -> Future[None]:
            self._check_known(name)
            if target is TargetState.STOPPED:
                return stop_connector(self._configs, name, self._inbox)
            return self._configs.put_target_state(name, target)

        self._leadership.as_leader(request, begin)

    def put_task_configs(
        self,
        request: Request[None],
        name: str,
        configs: Sequence[Mapping[str, str]],
        publication: Publication | None,
    ) -> None:
        """Store the task configs that a connector has published, unless a newer publication has arrived."""

        def write() -> Future[None]:
            if self._connectors.entry(name).target is TargetState.STOPPED:
                raise ConflictError(f"Connector {name} is stopped and has no tasks")
            if publication is not None:
                self._publications.take(name, publication, self._membership.generation)
            return self._configs.put_task_configs(name, configs)

        stage = f"writing the task configs of connector {name}"
        self._leadership.as_leader(request, lambda: self._change(request, name, stage, write, _nothing))

    def check(
        self,
        request: Request[Any],
        configs: Mapping[str, GivenConfig],
        go_on: Callable[[Mapping[str, Checked]], None],
    ) -> None:
        """As the leader, validate the configurations of several connectors and continue if all are valid."""
        reports: dict[str, messages.Validated] = {}
        for config in configs.values():
            required_class(config)

        def decide(name: str, report: Report) -> None:
            assert isinstance(report, messages.Validated)
            reports[name] = report
            if len(reports) == len(configs):
                check_validated(*(reports[each] for each in configs))
                checked = {each: _checked(given, reports[each]) for each, given in configs.items()}
                self._leadership.as_leader(request, lambda: go_on(checked))

        request.enter(f"waiting for the validation of the connectors {', '.join(configs)}")
        for name, config in configs.items():
            inquiry = messages.ValidateConfig(dict(config), self._worker_props)
            self._inquiries.answer(inquiry, request, partial(decide, name))

    def write(self, request: Request[None], name: str, checked: Checked, author: str | None) -> None:
        """Write a validated configuration of a new or existing connector, unless it has this one already."""

        def write() -> Future[None]:
            if self._connectors.exists(name) and self._connectors.entry(name).config == checked.config:
                return _done()
            return self._put(name, checked, author)

        self._configure(request, name, write, _nothing)

    def forget(self, name: str) -> None:
        """Forget a deleted connector."""
        self._publications.forget(name)

    def _validated(
        self, request: Request[Any], name: str, config: GivenConfig, go_on: Callable[[Checked], None]
    ) -> None:
        """As the leader, continue with a configuration that a validation has found valid."""
        required_class(config)

        def decide(report: Report) -> None:
            assert isinstance(report, messages.Validated)
            check_validated(report)
            # Another worker may have become the leader.
            self._leadership.as_leader(request, lambda: go_on(_checked(config, report)))

        request.enter(f"waiting for {config['connector.class']} to validate connector {name}'s configuration")
        inquiry = messages.ValidateConfig(dict(config), self._worker_props)
        self._inquiries.answer(inquiry, request, decide)

    def _configure(
        self, request: Request[T], name: str, write: Callable[[], Future[None]], result: Callable[[], T]
    ) -> None:
        self._change(request, name, f"writing the configuration of connector {name}", write, result)

    def _put(self, name: str, checked: Checked, author: str | None, target: TargetState | None = None) -> Future[None]:
        drained = None
        if target is None and checked.config.get("schedule") and not self._connectors.exists(name):
            # A scheduled connector runs at its time, not when it is created.
            target, drained = TargetState.STOPPED, time.time_ns() // 1_000_000
        return self._configs.put_connector(name, checked.config, target, drained, checked.type, author)

    def _change(
        self,
        request: Request[T],
        name: str,
        stage: str,
        write: Callable[[], Future[None]],
        result: Callable[[], T],
    ) -> None:
        """Call ``write`` when the view has all earlier writes to the connector, and answer when it has this one.

        So ``write`` can rely on the view.
        """

        def begin() -> None:
            request.enter(stage)
            self._requests.answer_when_written(request, write(), result)

        self._changes.take(name, request, begin)

    def _leading(self, request: Request[Any], action: Callable[[], None]) -> None:
        """Call ``action`` as the leader; the request fails with what it raises."""
        try:
            self._leadership.as_leader(request, action)
        except Exception as error:
            request.set_exception(error)

    def _check_new(self, name: str, *, is_new: bool = True) -> None:
        if not is_new or self._connectors.exists(name):
            raise AlreadyExistsError(f"Connector {name} already exists")

    def _check_revision(self, name: str, revision: int | None) -> None:
        if revision is not None and self._connectors.entry(name).revision != revision:
            raise ChangedMeanwhileError(
                f"The configuration of connector {name} has been changed since it was read. Read it again, and make "
                "your change to what is there now."
            )

    def _check_known(self, name: str) -> None:
        if not self._connectors.exists(name):
            raise UnknownConnectorError(f"Unknown connector {name}")


def _checked(config: GivenConfig, report: messages.Validated) -> Checked:
    return Checked({key: value for key, value in config.items() if value is not None}, report.type)


def _nothing() -> None:
    """Answer with nothing."""


def _done() -> Future[None]:
    done: Future[None] = Future()
    done.set_result(None)
    return done


def _pass_on_failure(done: Future[None], request: Request[Any]) -> None:
    if (error := done.exception()) is not None:
        request.set_exception(error)
