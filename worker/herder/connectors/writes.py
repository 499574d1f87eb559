"""Creates, changes, stops and deletes connectors, as the leader. Used only in the herder's thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from connect.errors import AlreadyExistsError
from connect.internals.plugins import PluginEntry
from worker.errors import (
    BadRequestError,
    ChangedMeanwhileError,
    ConflictError,
    InvalidConnectorError,
    UnknownConnectorError,
)
from worker.herder.cluster.leadership import Leadership
from worker.herder.cluster.publishing import Publications
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.connectors.connectors import Connectors
from worker.herder.connectors.drains import stop_connector
from worker.herder.inbox import Inbox
from worker.herder.inquiries import Inquiries
from worker.herder.requests import Attempt, Request, Steps
from worker.membership.membership import Membership
from worker.messages import messages
from worker.peers.leader import Publication
from worker.stores.config.store import ConfigStore, TargetState

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
            "`/connector-plugins/{connectorType}/config/validate`" + "".join(f"\n{warning}" for warning in warnings),
            reports[0].infos,
            warnings,
        )


def _each_once(lists: Iterable[Sequence[str]]) -> list[str]:
    """Return all texts of several lists without those that are in an earlier list."""
    found: list[str] = []
    for texts in lists:
        known = frozenset(found)
        found += [text for text in texts if text not in known]
    return found


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
        target: TargetState | None = None,
        author: str | None = None,
    ) -> Steps[Document]:
        """Validate a configuration, create a connector with it, and return its info. ``author`` is the signed-in user.

        Raises :class:`~connect.errors.AlreadyExistsError` if a connector of this name exists or is being created.
        """
        yield from self._leadership.lead(request)
        self._check_new(name, is_new=name not in self._creating)
        given = named(name, config)
        self._creating.add(name)
        try:
            checked = yield from self._validated(request, name, given)
            yield from self._turn(request, name)
            self._check_new(name)
            yield self._put(name, checked, author, target)
        finally:
            self._creating.discard(name)
        return self._connectors.info(name)

    def put(
        self,
        request: Request[tuple[bool, Document]],
        name: str,
        config: GivenConfig,
        revision: int | None = None,
        author: str | None = None,
    ) -> Steps[tuple[bool, Document]]:
        """Validate a configuration and create or update a connector; return whether it is new, and its info.

        If a ``revision`` is given and is not the current one, raises :class:`~worker.errors.ChangedMeanwhileError`.
        """
        yield from self._leadership.lead(request)
        self._check_revision(name, revision)
        checked = yield from self._validated(request, name, named(name, config))
        yield from self._turn(request, name)
        self._check_revision(name, revision)
        is_new = not self._connectors.exists(name)
        yield self._put(name, checked, author)
        return is_new, self._connectors.info(name)

    def patch(
        self,
        request: Request[Document],
        name: str,
        patch: GivenConfig,
        revision: int | None = None,
        author: str | None = None,
    ) -> Steps[Document]:
        """Merge keys into a connector's configuration, even if other keys change during validation.

        With a ``revision``, only if that is current. The merged configuration is validated, and written if merging
        still gives the same result. The first attempts of several patches run concurrently. Those that were overtaken
        follow one after the other, so that each change that is written costs at most two of them a validation. A
        validation takes no turn of the connector, so others may change or stop it meanwhile.
        """
        merge = partial(self._merge, name, patch, revision)
        overtaken = False
        while True:
            yield from self._leadership.lead(request)
            config = merge()
            checked = yield from self._validated(request, name, config)
            attempt: Request[Document | None] = Request()
            info: Document | None
            info = yield Attempt(attempt, self._write_merged(attempt, name, checked, author, config, merge))
            if info is not None:
                return info
            if not overtaken:
                yield from self._overtaken.turn(name, request)
                overtaken = True

    def _write_merged(
        self,
        attempt: Request[Document | None],
        name: str,
        checked: Checked,
        author: str | None,
        config: GivenConfig,
        merge: Callable[[], GivenConfig],
    ) -> Steps[Document | None]:
        """Write a configuration and return the connector's info, unless merging gives another by now."""
        yield from self._turn(attempt, name)
        if merge() != config:
            return None
        yield self._put(name, checked, author)
        return self._connectors.info(name)

    def _merge(self, name: str, patch: GivenConfig, revision: int | None) -> dict[str, str | None]:
        self._check_revision(name, revision)
        return named(name, merged(self._connectors.entry(name).config, patch))

    def delete(self, request: Request[None], name: str, author: str | None = None) -> Steps[None]:
        """Stop and delete a connector. Its offsets stay, for a new connector of the same name."""
        yield from self._leadership.lead(request)
        self._connectors.entry(name)
        yield from self._turn(request, name, f"deleting connector {name}")
        self._connectors.entry(name)
        self._removes(name, author)
        yield self._configs.remove_connector(name)

    def set_target_state(self, request: Request[None], name: str, target: TargetState) -> Steps[None]:
        """Pause, resume or stop a connector. The answer does not wait for its tasks."""
        yield from self._leadership.lead(request)
        self._check_known(name)
        yield from self._turn(request, name, f"writing the target state of connector {name}")
        self._check_known(name)
        if target is TargetState.STOPPED:
            yield from stop_connector(self._configs, name)
        else:
            yield self._configs.put_target_state(name, target)

    def put_task_configs(
        self,
        request: Request[None],
        name: str,
        configs: Sequence[Mapping[str, str]],
        publication: Publication | None,
    ) -> Steps[None]:
        """Store the task configs that a connector has published, unless a newer publication has arrived."""
        yield from self._leadership.lead(request)
        yield from self._turn(request, name, f"writing the task configs of connector {name}")
        if self._connectors.entry(name).target is TargetState.STOPPED:
            raise ConflictError(f"Connector {name} is stopped and has no tasks")
        if publication is not None:
            self._publications.take(name, publication, self._membership.generation)
        yield self._configs.put_task_configs(name, configs)

    def check(self, request: Request[Any], configs: Mapping[str, GivenConfig]) -> Steps[Mapping[str, Checked]]:
        """Validate the configurations of several connectors, and return them as the leader if all are valid."""
        for config in configs.values():
            required_class(config)
        request.enter(f"waiting for the validation of the connectors {', '.join(configs)}")
        inquiries = [messages.ValidateConfig(dict(config), self._worker_props) for config in configs.values()]
        reports = yield from self._inquiries.ask_all(inquiries, messages.Validated)
        check_validated(*reports)
        yield from self._leadership.lead(request)
        return {name: _checked(config, report) for (name, config), report in zip(configs.items(), reports, strict=True)}

    def write(self, request: Request[None], name: str, checked: Checked, author: str | None) -> Steps[None]:
        """Write a validated configuration of a new or existing connector, unless it has this one already."""
        yield from self._turn(request, name)
        if not (self._connectors.exists(name) and self._connectors.entry(name).config == checked.config):
            yield self._put(name, checked, author)

    def forget(self, name: str) -> None:
        """Forget a deleted connector."""
        self._publications.forget(name)

    def _validated(self, request: Request[Any], name: str, config: GivenConfig) -> Steps[Checked]:
        """Return a configuration that a validation has found valid, as the leader."""
        required_class(config)
        request.enter(f"waiting for {config['connector.class']} to validate connector {name}'s configuration")
        inquiry = messages.ValidateConfig(dict(config), self._worker_props)
        report = yield from self._inquiries.ask(inquiry, messages.Validated)
        check_validated(report)
        # Another worker may have become the leader.
        yield from self._leadership.lead(request)
        return _checked(config, report)

    def _turn(self, request: Request[Any], name: str, stage: str | None = None) -> Steps[None]:
        """Wait until the view has all earlier writes to the connector, so that the next one can rely on it."""
        yield from self._changes.turn(name, request)
        request.enter(stage or f"writing the configuration of connector {name}")

    def _put(self, name: str, checked: Checked, author: str | None, target: TargetState | None = None) -> Future[None]:
        drained = None
        if target is None and checked.config.get("schedule") and not self._connectors.exists(name):
            # A scheduled connector runs at its time, not when it is created.
            target, drained = TargetState.STOPPED, time.time_ns() // 1_000_000
        return self._configs.put_connector(name, checked.config, target, drained, checked.type, author)

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
