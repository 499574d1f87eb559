"""Publishes task configs: brings them from the connector to the config store. Used only in the herder's thread.

The worker that runs a connector learns its task configs, and only the leader writes them. A connector has one
publication under way at a time; newer task configs wait, and only the newest are kept. The stored task configs are
compared with the wanted ones after each publication and whenever they change, so that those of a former owner do not
stay.

Crash point: if either worker is killed before the commit record is written, the connector is started again and
publishes again. A publication of the killed worker belongs to a former generation, and the leader refuses it
(:class:`Publications`).

A worker sends the publications of a connector one after the other, but one that it has given up may still be on its
way: in the leader's queue, at a worker that forwards it, or from a worker that no longer runs the connector. Therefore
the sender numbers them, in a header beside Kafka Connect's body; Java workers neither send nor read this header. Within
a generation of the group a connector has one owner, and a new leader begins a new generation. So the leader can forget
the numbers when the generation ends, and a killed leader takes nothing with it that the next one needs.
"""

from __future__ import annotations

import itertools
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from worker.errors import BadRequestError, ConflictError, RebalanceInProgressError
from worker.herder.cluster.leadership import Leadership
from worker.herder.inbox import Inbox, Later
from worker.herder.requests import Attempt, Request, Requests, Steps
from worker.membership.membership import Membership
from worker.peers.leader import LeaderClient, Publication
from worker.stores.config.store import ConfigStore, ConnectorEntry, TargetState

__all__ = ["Publications", "Publishing"]

logger = logging.getLogger(__name__)
_FIRST_BACKOFF_SECONDS: Final = 0.25
_LONGEST_BACKOFF_SECONDS: Final = 60.0
# A connector loses its task configs just before it is stopped; after this time it usually is.
_LOOK_AGAIN_SECONDS: Final = 1.0
_PROCESS_BYTES: Final = 8

TaskConfigs: TypeAlias = tuple[Mapping[str, str], ...]


@dataclass(slots=True)
class _Taken:
    generation: int
    numbers: dict[str, int] = field(default_factory=dict)

    @property
    def last_process(self) -> str | None:
        return next(reversed(self.numbers), None)


class Publications:
    """The publications that the leader has accepted, by connector. Used only in the herder's thread."""

    def __init__(self) -> None:
        self._taken: dict[str, _Taken] = {}

    def take(self, connector: str, publication: Publication, generation: int) -> None:
        """Accept a publication in this generation, so that older ones are refused.

        Raises :class:`~worker.errors.RebalanceInProgressError` if it belongs to another generation, whose sender may
        not run the connector any more, or if a newer one was accepted.
        """
        if publication.generation != generation:
            raise RebalanceInProgressError(
                f"The task configs of connector {connector} are of generation {publication.generation} of the cluster, "
                f"but this is generation {generation}. The worker that runs the connector now will publish its own."
            )
        taken = self._taken.get(connector)
        if taken is None or taken.generation != generation:
            taken = self._taken[connector] = _Taken(generation)
        if _is_overtaken(publication, taken):
            raise RebalanceInProgressError(f"Newer task configs of connector {connector} have come before these.")
        taken.numbers[publication.process] = publication.number

    def forget(self, connector: str) -> None:
        """Forget a deleted connector."""
        self._taken.pop(connector, None)


def _is_overtaken(publication: Publication, taken: _Taken) -> bool:
    # A static member that was restarted keeps its generation; what its former process sent is older.
    number = taken.numbers.get(publication.process)
    return number is not None and (publication.process != taken.last_process or publication.number <= number)


Keep: TypeAlias = Callable[[Request[None], str, Sequence[Mapping[str, str]], Publication | None], Steps[None]]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Task configs, and the connector configuration they were made from."""

    config: Mapping[str, str]
    configs: TaskConfigs


class Publishing:
    """Stores task configs, and retries until they are stored or the connector publishes others.

    ``keep`` writes them if this worker leads, in the connector's turn: they never come between the two writes that stop
    it. ``fail`` fails a connector, with a reason, if its task configs can never be stored.
    """

    def __init__(
        self,
        configs: ConfigStore,
        membership: Membership,
        leadership: Leadership,
        inbox: Inbox,
        leader: LeaderClient | None,
        keep: Keep,
        fail: Callable[[str, str], None],
    ) -> None:
        self._configs = configs
        self._membership = membership
        self._leadership = leadership
        self._inbox = inbox
        self._requests = Requests(inbox)
        self._leader = leader
        self._keep = keep
        self._fail = fail
        self._process = secrets.token_hex(_PROCESS_BYTES)
        self._numbers = itertools.count(1)
        self._wanted: dict[str, _Wanted] = {}
        self._under_way: dict[str, Publication] = {}
        self._later: dict[str, Later] = {}

    def publish(self, connector: str, config: Mapping[str, str], configs: TaskConfigs) -> None:
        """Publish the task configs that a connector has made from its configuration."""
        self._wanted[connector] = _Wanted(config, configs)
        self._attempt(connector, _FIRST_BACKOFF_SECONDS)

    def look(self, connector: str) -> None:
        """Compare the stored task configs, which have changed, with the wanted ones in a moment."""
        if connector in self._wanted and connector not in self._later:
            self._attempt_in(_LOOK_AGAIN_SECONDS, connector, _FIRST_BACKOFF_SECONDS)

    def joined(self) -> None:
        """Publish pending task configs to the leader of the new generation.

        A former leader may never answer, and what it received is refused now.
        """
        generation = self._membership.generation
        former = {name for name, publication in self._under_way.items() if publication.generation != generation}
        for connector in former:
            del self._under_way[connector]
        for connector in former | self._later.keys():
            self._attempt(connector, _FIRST_BACKOFF_SECONDS)

    def forget(self, connector: str) -> None:
        """Forget a connector that no longer runs here: the worker that runs it publishes."""
        self._wanted.pop(connector, None)
        self._cancel(connector)

    def _attempt(self, connector: str, backoff: float) -> None:
        self._cancel(connector)
        wanted = self._wanted.get(connector)
        if wanted is None or connector in self._under_way:
            return
        entry = self._configs.connectors().get(connector)
        if entry is None or entry.target is TargetState.STOPPED or entry.config != wanted.config:
            self.forget(connector)
            return
        if is_applied(entry, wanted.configs):
            return
        publication = Publication(self._membership.generation, self._process, next(self._numbers))
        self._under_way[connector] = publication

        self._requests.start(lambda _: self._publish(connector, wanted, publication, backoff))

    def _publish(self, connector: str, wanted: _Wanted, publication: Publication, backoff: float) -> Steps[None]:
        refusal: Exception | None = None
        attempt: Request[None] = Request()
        try:
            yield Attempt(attempt, self._have_kept(attempt, connector, wanted.configs, publication))
        except Exception as error:
            refusal = error
        if self._under_way.get(connector) is publication:
            del self._under_way[connector]
            self._done(connector, wanted, refusal, backoff)

    def _have_kept(
        self, request: Request[None], connector: str, configs: TaskConfigs, publication: Publication
    ) -> Steps[None]:
        """Have the leader store task configs, and wait until this worker's view includes them."""
        if self._leadership.is_ready:
            yield from self._keep(request, connector, configs, publication)
            return
        url = self._membership.leader_url
        if self._leader is None or url is None or self._membership.is_leader:
            raise RebalanceInProgressError("The cluster has no leader at the moment.")
        yield self._leader.post_task_configs(url, connector, configs, publication, self._configs.session_key())
        yield self._configs.read_to_end()

    def _done(self, connector: str, published: _Wanted, error: Exception | None, backoff: float) -> None:
        if self._wanted.get(connector) is not published:
            self._attempt(connector, _FIRST_BACKOFF_SECONDS)
        elif isinstance(error, BadRequestError) and self._can_sign():
            self.forget(connector)
            self._fail(connector, f"Its task configs cannot be stored: {error}")
        elif error is not None or not self._is_kept(connector, published):
            # Expected between two leaders and while the connector is being stopped; others are warnings.
            expected = isinstance(error, RebalanceInProgressError | ConflictError)
            level = logging.DEBUG if expected else logging.WARNING
            reason = error or "another worker has stored others meanwhile"
            logger.log(level, "The task configs of connector %s are not stored yet: %s", connector, reason)
            self._attempt_in(backoff, connector, min(backoff * 2, _LONGEST_BACKOFF_SECONDS))

    def _can_sign(self) -> bool:
        """Return whether the error has another cause than a missing signature, on a worker that has yet to read the
        key.
        """
        return self._leadership.is_ready or self._configs.session_key() is not None

    def _is_kept(self, connector: str, published: _Wanted) -> bool:
        entry = self._configs.connectors().get(connector)
        return entry is None or entry.config != published.config or is_applied(entry, published.configs)

    def _attempt_in(self, seconds: float, connector: str, backoff: float) -> None:
        self._cancel(connector)
        self._later[connector] = self._inbox.after(seconds, lambda: self._attempt(connector, backoff))

    def _cancel(self, connector: str) -> None:
        if (later := self._later.pop(connector, None)) is not None:
            later.cancel()


def is_applied(entry: ConnectorEntry, configs: Sequence[Mapping[str, str]]) -> bool:
    """Return whether these task configs are already stored, made from the connector's current configuration."""
    return entry.task_configs == tuple(configs) and entry.applied == entry.config
