"""This worker's membership of the cluster's group: one thread that joins, sends heartbeats and leaves.

It sends its decisions to the herder as events, and the herder says when units have stopped. No state survives a ``kill
-9`` at any instant: the broker notices after ``session.timeout.ms``, and a new process joins without units. A unit
never belongs to another worker while it may still run here (invariant I6): revoked units are stopped before this member
joins again. A member that loses its generation, or has not heard from the broker for two thirds of its session, has the
herder drop all units, waits for that, and then joins without units.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from connect.internals.kafka.settings.client import ClientKind
from worker.config.worker import DistributedConfig
from worker.kafka.clients.roles import internal_properties
from worker.membership.events import (
    Division,
    Event,
    GenerationLostError,
    GroupCounts,
    Joined,
    Lost,
    MemberRefusedError,
    NotJoinedError,
    Refused,
)
from worker.membership.leader import Leader
from worker.membership.protocol import (
    EAGER,
    NO_ERROR,
    VERSIONS,
    Assignment,
    MemberMetadata,
    decode_assignment,
    encode_metadata,
    offered,
)
from worker.processes.clock import LONG_AGO, Clock, Moment
from worker.stores.config.store import ConfigSnapshot
from worker.unit import Unit

if TYPE_CHECKING:
    from worker.membership.coordinator import Coordinator, JoinedGroup

__all__ = ["GroupMember"]

logger = logging.getLogger(__name__)

_OFFSET_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = (0.1, 0.2, 0.5, 1.0)
_BEATS: Final = ((5.0, 0.2), (60.0, 0.5), (math.inf, 1.0))
"""The seconds between heartbeats, up to so many seconds after a round."""
_BEAT_LOOK_SECONDS: Final = 0.5
"""How soon the heartbeats notice that a round has ended."""
_MOST_SILENT: Final = 2 / 3
_MARGIN: Final = 0.1
"""Fractions of the session: the permitted silence of the broker, and the reserve at the session's end."""


class GroupMember:
    """This worker's group membership. Methods may be called from any thread and return at once.

    ``props`` are the worker's resolved properties; other workers reach it at ``url``. ``tell`` receives the events, in
    the member's thread. ``snapshot`` returns the configurations, read at least to the given offset if possible; -1
    means as far as they were read already. ``on_session`` is called with the time until which the session certainly
    lasts, ``LONG_AGO`` if it is over.
    """

    def __init__(
        self,
        config: DistributedConfig,
        props: Mapping[str, str],
        url: str,
        tell: Callable[[Event], None],
        snapshot: Callable[[int], Future[ConfigSnapshot]],
        on_session: Callable[[Moment], None] = lambda _: None,
        clock: Clock = Moment.now,
    ) -> None:
        self._config = config
        self._props = props
        self._url = url
        self._tell = tell
        self._snapshot = snapshot
        self._on_session = on_session
        self._clock = clock
        self._session = config.session_timeout_ms / 1000
        self._leader = Leader(config, snapshot)
        self.counts = GroupCounts()
        """The member's counts. Its thread replaces the value at each change, so any thread may read it."""
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._coordinator: Coordinator | None = None
        self._thread: threading.Thread | None = None
        # Everything below belongs to the member's thread.
        self._ended = False
        self._refused = False
        self._failure: Exception | None = None
        self._held: frozenset[Unit] = frozenset()
        self._last: Assignment | None = None
        self._joined = False
        self._version = -1
        self._alive = LONG_AGO
        self._lapsed = False
        self._lost: Lost | None = None
        self._stopping = False
        self._wanted = True
        self._wanted_offset = -1
        self._round_offset = -1
        self._read_offset = -1
        self._round_at = time.monotonic()
        self._join_at: float | None = None
        self._leaving: float | None = None
        self._away = False
        self._draining = False
        self._failures = 0

    # -- for every thread --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start joining. Raises ``ConfigError`` if the Kafka client settings cannot be used for it."""
        self._coordinator = self._new_coordinator()
        self._thread = threading.Thread(target=self._run, args=(self._coordinator,), name="group-member", daemon=True)
        self._thread.start()

    def rejoin(self, reason: str, config_offset: int | None = None) -> None:
        """Join another round.

        Without ``config_offset``, this also says that the revoked units of the last round are gone. With it, there are
        newer configurations; nothing happens if the last round already used them.
        """
        self._post(lambda: self._asked_to_join(reason, config_offset))

    def leave(self, for_seconds: float | None) -> None:
        """Drop all units, leave the group, and join again after ``for_seconds``; if ``None``, stay away."""
        self._post(lambda: self._asked_to_leave(for_seconds))

    def drain(self, *, draining: bool) -> None:
        """Ask the leader to give this worker's units to others and assign it no more; or take units again."""
        self._post(lambda: self._asked_to_drain(draining=draining))

    def close(self) -> None:
        """Leave the group and end. All units must have stopped before. :meth:`join` waits for the end."""
        self._post(self._asked_to_end)

    def join(self, timeout: float | None = None) -> None:
        """Wait until the member has left and its thread has ended, at most ``timeout`` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)

    def _post(self, command: Callable[[], None]) -> None:
        self._inbox.put(command)
        self._wake()

    def _wake(self) -> None:
        if self._coordinator is not None:
            self._coordinator.wake()

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self, coordinator: Coordinator) -> None:
        try:
            coordinator.run(
                lambda: self._live(coordinator),
                lambda: self._guarded(self._beat(coordinator)),
                lambda: self._guarded(self._watch(coordinator)),
            )
        except Exception as error:
            logger.exception(
                "This worker's membership of the group %s has failed. This is a bug in Sluice: please report it with "
                "this trace",
                self._config.group_id,
            )
            self._drop("its membership of the group has failed", 0)
            self._tell(Refused(f"The membership of the group {self._config.group_id} has failed: {error}"))

    def _new_coordinator(self) -> Coordinator:
        # Imported here: kafka-python takes 20 MB, which only distributed workers should use.
        from worker.kafka.clients.kafka_python import kafka_python_settings  # noqa: PLC0415
        from worker.membership.coordinator import Coordinator, GroupSettings  # noqa: PLC0415

        config = self._config
        return Coordinator(
            kafka_python_settings(internal_properties(self._props, ClientKind.ADMIN, "membership")),
            GroupSettings(
                config.group_id,
                config.group_instance_id,
                config.session_timeout_ms,
                config.heartbeat_interval_ms,
                config.rebalance_timeout_ms,
            ),
            self._leader.assign,
            self._signed,
            self._clock,
        )

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            self._failure = error
            self._wake()

    async def _live(self, coordinator: Coordinator) -> None:
        while not self._ended:
            try:
                await self._next(coordinator)
            except MemberRefusedError as error:
                self._refuse(str(error))
            if self._failure is not None:
                raise self._failure
        # A refused worker may still run its units; its session lasts until the process is gone.
        if not self._refused:
            await coordinator.leave("the worker is stopping")

    async def _next(self, coordinator: Coordinator) -> None:
        """Take the next step, or wait until there is one."""
        if self._lost is not None:
            await self._wait_until_gone(coordinator, self._lost)
        elif self._leaving is not None:
            await self._leave(coordinator)
        elif self._has_to_join():
            await self._join(coordinator)
        else:
            at = None if self._stopping else self._join_at
            await self._pause(coordinator, None if at is None else max(0.0, at - time.monotonic()))

    async def _pause(self, coordinator: Coordinator, seconds: float | None) -> None:
        if self._inbox.empty():
            await coordinator.wait(seconds)
        while not self._inbox.empty():
            self._inbox.get()()

    async def _until(self, coordinator: Coordinator, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not (met := condition()) and not self._ended and (left := deadline - time.monotonic()) > 0:
            await self._pause(coordinator, left)
        return met

    def _has_to_join(self) -> bool:
        if self._stopping:
            return False
        if self._join_at is not None and time.monotonic() >= self._join_at:
            return True
        return not self._away and (self._wanted or self._wanted_offset > self._round_offset)

    # -- what is asked -----------------------------------------------------------------------------------------------

    def _asked_to_join(self, reason: str, config_offset: int | None) -> None:
        if config_offset is not None:
            self._wanted_offset = max(self._wanted_offset, config_offset)
        elif self._joined:
            self._stopping = False
            self._wanted = True
        if self._has_to_join():
            logger.info("Joining the group %s again: %s", self._config.group_id, reason)

    def _asked_to_drain(self, *, draining: bool) -> None:
        if self._draining != draining:
            self._draining, self._wanted = draining, True

    def _asked_to_leave(self, for_seconds: float | None) -> None:
        self._leaving = float("inf") if for_seconds is None else for_seconds

    def _asked_to_end(self) -> None:
        self._ended = True

    # -- joining -----------------------------------------------------------------------------------------------------

    async def _join(self, coordinator: Coordinator) -> None:
        if self._version == EAGER and self._joined:
            self._drop("the eager protocol starts each round with nothing", self._session_left(), is_loss=False)
            return
        metadata = MemberMetadata(self._url, await self._offset(coordinator), self._reported(), self._draining)
        if self._lost is not None or self._ended:
            return
        self._wanted, self._away, self._join_at = False, False, None
        began = time.monotonic()
        offer = [(name, encode_metadata(metadata, VERSIONS[name])) for name in offered(self._config.connect_protocol)]
        try:
            joined = await self._joined_by(coordinator, offer)
        except GenerationLostError as error:
            self._wanted = True
            self.counts = self.counts.not_joined()
            self._generation_lost(coordinator, str(error))
        except NotJoinedError as error:
            self._wanted = True
            self.counts = self.counts.not_joined()
            await self._retry(coordinator, error)
        else:
            if joined is not None and self._lost is None:
                self._failures = 0
                self.counts = self.counts.joined(began, time.monotonic())
                self._apply(joined)

    async def _joined_by(self, coordinator: Coordinator, offer: Sequence[tuple[str, bytes]]) -> JoinedGroup | None:
        outcome = coordinator.join(offer)
        while (joined := outcome()) is None and not self._ended:
            await self._pause(coordinator, None)
        return joined

    async def _offset(self, coordinator: Coordinator) -> int:
        answer = self._snapshot(-1)
        answer.add_done_callback(lambda _: self._wake())
        if await self._until(coordinator, answer.done, _OFFSET_SECONDS):
            self._read_offset = answer.result().offset
        return self._read_offset

    def _reported(self) -> Assignment | None:
        """Return the units held after the last round, in the form of an assignment."""
        if self._last is None:
            return None
        return replace(self._last, assigned=self._held, revoked=frozenset(), delay=0, error=NO_ERROR)

    async def _retry(self, coordinator: Coordinator, error: NotJoinedError) -> None:
        if error.at_once:
            return
        if self._failures == 0:
            logger.warning(
                "The group %s cannot be joined through %s yet (%s); trying again",
                self._config.group_id,
                ",".join(self._config.bootstrap_servers),
                str(error),  # the traceback of the error keeps sockets alive, and logging keeps its arguments
            )
        seconds = _RETRY_SECONDS[min(self._failures, len(_RETRY_SECONDS) - 1)]
        self._failures += 1
        await self._until(coordinator, lambda: self._lost is not None, seconds)

    def _apply(self, joined: JoinedGroup) -> None:
        """Apply the leader's assignment."""
        assignment, version = decode_assignment(joined.assignment), VERSIONS[joined.protocol]
        if version == EAGER and self._held:
            # The group has just become eager, so others may have been given units that still run here.
            self._drop("the group has become eager", 0, is_loss=False)
            return
        is_first, revoked = not self._joined, assignment.revoked & self._held
        self._held = (self._held - revoked) | assignment.assigned
        self._last, self._version, self._joined = assignment, version, True
        self._round_at = time.monotonic()
        self._stopping = bool(revoked)
        mismatch = assignment.error != NO_ERROR
        self._round_offset = -1 if mismatch else assignment.config_offset
        self._join_at = time.monotonic() + assignment.delay / 1000 if assignment.delay > 0 else None
        is_leader = assignment.leader == joined.member_id
        if is_first and self._config.group_instance_id is not None and not is_leader:
            # A static member that restarts gets its old assignment from the broker, of which the leader does not hear.
            # After another round it leads again, if it did, and all know its address, which may have changed. A group
            # that is eager would stop all units for that.
            self._wanted = self._wanted or version != EAGER or assignment.leader_url == self._url
        self._leader.completed(joined.generation)
        self._tell(
            Joined(
                generation=joined.generation,
                member_id=joined.member_id,
                protocol_version=version,
                leader_url=assignment.leader_url,
                mismatch=mismatch,
                config_offset=assignment.config_offset,
                held=self._held,
                revoked=revoked,
                division=self._division() if is_leader else None,
            )
        )

    def _division(self) -> Division:
        leader = self._leader
        return Division(leader.owners, leader.reported, leader.members, leader.draining)

    # -- losing and leaving ------------------------------------------------------------------------------------------

    def _drop(self, reason: str, within: float, *, is_loss: bool = True) -> None:
        """Give up all units, and have the herder stop them; unless it ``is_loss``, as part of a round."""
        if not self._joined:
            return
        logger.warning("Stopping all connectors and tasks of this worker: %s", reason)
        self._held, self._last, self._version = frozenset(), None, -1
        self._joined, self._stopping, self._wanted = False, False, True
        self._join_at, self._lapsed = None, False
        stopped: Future[None] = Future()
        stopped.add_done_callback(lambda _: self._wake())
        self._lost = Lost(stopped, within, reason if is_loss else "")
        self._tell(self._lost)
        if within == 0:  # others may run the units by now, so the processes do not wait for the herder
            self._on_session(LONG_AGO)

    def _generation_lost(self, coordinator: Coordinator, reason: str) -> None:
        coordinator.forget()
        self._drop(reason, 0)
        self._wake()

    async def _wait_until_gone(self, coordinator: Coordinator, lost: Lost) -> None:
        longest = lost.within + self._config.rebalance_timeout_ms / 1000
        if await self._until(coordinator, lost.stopped.done, longest):
            self._lost = None
        elif not self._ended:
            raise MemberRefusedError(
                f"Connectors or tasks did not stop within {longest:g} s after this worker lost its place in the group "
                f"{self._config.group_id}, and other workers may run them already. Restart this worker"
            )

    async def _leave(self, coordinator: Coordinator) -> None:
        if self._joined:
            self._drop("this worker leaves the group", self._session_left())
            return
        seconds = self._leaving or 0.0
        await coordinator.leave("the worker was asked to leave")
        self._leaving, self._away = None, True
        if seconds != float("inf"):
            self._join_at = time.monotonic() + seconds

    def _refuse(self, message: str) -> None:
        self._drop("the broker refuses this worker", 0)
        self._ended = self._refused = True
        self._tell(Refused(message))

    # -- heartbeats --------------------------------------------------------------------------------------------------

    def _signed(self, sent: Moment) -> None:
        if self._joined and sent.since(self._alive) > self._certain:
            # The processes have noticed that too and ended; the watch drops their units.
            self._lapsed = True
        if not self._lapsed:
            self._alive = max(self._alive, sent)
            self._on_session(self._alive.after(self._certain))

    @property
    def _certain(self) -> float:
        """How long a session certainly lasts, in seconds after a heartbeat."""
        return self._session * (1 - _MARGIN)

    def _session_left(self) -> float:
        return max(0.0, self._certain - self._clock().since(self._alive))

    async def _beat(self, coordinator: Coordinator) -> None:
        beaten = time.monotonic()
        while not self._ended:
            if (left := beaten + self._between_beats() - time.monotonic()) > 0:
                await coordinator.sleep(min(left, _BEAT_LOOK_SECONDS))
                continue
            if coordinator.is_member:
                await self._beat_once(coordinator)
            beaten = time.monotonic()

    def _between_beats(self) -> float:
        """Return the seconds between two heartbeats.

        Members learn of a new round only from heartbeats, and all members wait for the last one to join. A round that
        revoked units is soon followed by another, and other changes seldom come alone, so heartbeats are more frequent
        for a while.
        """
        since = time.monotonic() - self._round_at
        often = next(seconds for until, seconds in _BEATS if since <= until)
        return min(self._config.heartbeat_interval_ms / 1000, self._session / 3, often)

    async def _beat_once(self, coordinator: Coordinator) -> None:
        """Send a heartbeat, repeated until it is answered or the membership is lost."""
        while coordinator.is_member and not self._ended:
            try:
                has_to_join = await coordinator.beat()
                self.counts = self.counts.beaten(time.monotonic(), coordinator.connection())
                if has_to_join:
                    self._wanted = True
                    self._wake()
            except GenerationLostError as error:
                self._generation_lost(coordinator, str(error))
            except MemberRefusedError as error:
                self._refuse(str(error))
                self._wake()
            except NotJoinedError as error:
                logger.debug("A heartbeat failed and is repeated: %s", error)
                await coordinator.sleep(_RETRY_SECONDS[0])
                continue
            return

    def _until_next_watch(self) -> float:
        """Return the seconds until the silence may be too long. Never far ahead: a machine may be suspended."""
        silence_left = self._session * _MOST_SILENT - self._clock().since(self._alive)
        return max(self._session / 30, min(silence_left, self._session / 10))

    async def _watch(self, coordinator: Coordinator) -> None:
        """Stop all units before the session ends if the broker does not answer."""
        while not self._ended:
            await coordinator.sleep(self._until_next_watch())
            now = self._clock()
            silent = now.since(self._alive)
            if self._joined and (self._lapsed or silent > self._session * _MOST_SILENT):
                coordinator.forget()
                silence = now.known_since(self._alive)
                self._drop(f"the group's coordinator has not answered {silence}", self._session_left())
                self._wake()
