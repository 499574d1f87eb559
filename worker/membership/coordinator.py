"""The broker's group coordinator, reached through kafka-python; the only module that uses its internals.

Everything runs in one thread, on kafka-python's event loop, which :meth:`Coordinator.run` drives. Joining has its own
connection, because a broker answers nothing else on it during a rebalance; heartbeats use another one, also during a
rebalance.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafka import errors
from kafka.coordinator.base import BaseCoordinator, Generation
from kafka.metrics import Metrics
from kafka.net.compat import KafkaNetClient
from kafka.net.selector import NetworkSelector
from kafka.net.wakeup_notifier import WakeupNotifier
from kafka.protocol.consumer import HeartbeatRequest
from kafka.structs import MemberState

from connect.errors import DataError
from connect.internals.kafka.auth.rights import WORKER, on_group, remedy
from worker.kafka.clients.kafka_python import quieten
from worker.membership.events import GenerationLostError, MemberRefusedError, NotJoinedError
from worker.membership.protocol import PROTOCOL_TYPE
from worker.processes.clock import Clock, Moment

__all__ = ["Coordinator", "GroupMemberData", "GroupSettings", "JoinedGroup"]

_CONNECT: Final = "connect"
_CONNECT_MS: Final = 3_000
_LEAVE_MS: Final = 3_000
_BROKER: Final = (3, 0)
"""The first broker version that has static members and all requests used here."""

_REMEDIES: Final[Mapping[type[Exception], str]] = {
    errors.FencedInstanceIdError: "Another worker has the same group.instance.id: give each worker its own",
    errors.GroupMaxSizeReachedError: "Raise group.max.size on the broker, or start fewer workers",
    errors.InconsistentGroupProtocolError: "Set connect.protocol to one that all workers of the cluster offer, and "
    "make sure that nothing else, such as a sink connector's consumers, uses this group.id",
    errors.InvalidGroupIdError: "Set group.id to a valid name",
    errors.InvalidSessionTimeoutError: "Set session.timeout.ms between the broker's group.min.session.timeout.ms and "
    "group.max.session.timeout.ms",
    errors.UnsupportedSaslMechanismError: "Set sasl.mechanism to one that the broker has enabled",
    errors.UnsupportedVersionError: "Use a newer broker, 2.3 or later",
}
_AT_ONCE: Final = (
    errors.MemberIdRequiredError,
    errors.RebalanceInProgressError,
)
_LOST: Final = (errors.UnknownMemberIdError, errors.IllegalGenerationError)
_ELSEWHERE: Final = (errors.CoordinatorNotAvailableError, errors.NotCoordinatorError)


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The group and its times, in ms."""

    group_id: str
    instance_id: str | None
    session_timeout: int
    heartbeat_interval: int
    rebalance_timeout: int


@dataclass(frozen=True, slots=True)
class GroupMemberData:
    """A member as the leader sees it; ``instance_id`` is set for static members."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinedGroup:
    """A completed round."""

    generation: int
    member_id: str
    protocol: str
    assignment: bytes


Assign = Callable[[str, str, int, Sequence[GroupMemberData]], Mapping[str, bytes]]
"""Maps leader, protocol, generation and members to each member's assignment.

May block, but for less than the session.
"""


class Coordinator:
    """Joins the group, sends heartbeats, leaves.

    ``alive`` is called with the time, by ``clock``, at or shortly before which an answered request was sent.
    """

    def __init__(
        self,
        client: Mapping[str, Any],
        group: GroupSettings,
        assign: Assign,
        alive: Callable[[Moment], None],
        clock: Clock,
    ) -> None:
        quieten()
        self._group = group
        self._alive = alive
        self._clock = clock
        # The leader's assignment may block for a moment, which delays nothing else in this thread.
        self._net = NetworkSelector(client_id=client.get("client_id", ""), slow_task_threshold_secs=0)
        self._metrics = Metrics()
        self._client = KafkaNetClient(net=self._net, **client, metrics=self._metrics, metric_group_prefix=_CONNECT)
        self._member = _Member(self._client, group, assign, alive, clock)
        self._wakeup = WakeupNotifier(self._net)
        self._joining = False

    # -- the loop ----------------------------------------------------------------------------------------------------

    def run(self, main: Callable[[], Awaitable[None]], *others: Callable[[], Awaitable[None]]) -> None:
        """Run the coroutines on the loop, in this thread, until ``main`` has ended; then close."""
        try:
            for other in others:
                self._net.call_soon(other)
            self._net.run(main)
        finally:
            self._client.close()

    def wake(self) -> None:
        """Make :meth:`wait` return. May be called from any thread."""
        try:
            self._wakeup.notify()
        except RuntimeError:
            return  # the loop has ended

    async def wait(self, seconds: float | None) -> None:
        """Wait until :meth:`wake` is called, but no longer than this."""
        await self._wakeup(seconds)

    async def sleep(self, seconds: float) -> None:
        """Wait this long."""
        await self._net.sleep(seconds)

    def connection(self) -> dict[str, float]:
        """Traffic on the connections to the broker, under Kafka Connect's names."""
        known = self._metrics.metrics.items()
        values = {name.name: metric.value() for name, metric in known if name.group == f"{_CONNECT}-metrics"}
        return {name: float(value) for name, value in values.items() if math.isfinite(value)}

    # -- the group ---------------------------------------------------------------------------------------------------

    @property
    def is_member(self) -> bool:
        """Whether this member has a generation to send heartbeats for."""
        return not self._member._generation.is_lost()

    def join(self, offer: Sequence[tuple[str, bytes]]) -> Callable[[], JoinedGroup | None]:
        """Start joining with these protocols and their metadata; :meth:`wait` returns when it is done.

        Return a function that returns ``None`` while joining, and then the result, or raises an error of
        :mod:`worker.membership.events`.
        """
        attempt = self._net.call_soon_with_future(self._join, offer)
        attempt.add_both(lambda _: self.wake())

        def outcome() -> JoinedGroup | None:
            if attempt.failed():
                raise attempt.exception
            joined: JoinedGroup | None = attempt.value
            return joined

        return outcome

    async def _join(self, offer: Sequence[tuple[str, bytes]]) -> JoinedGroup:
        member = self._member
        member.offer = list(offer)
        try:
            await self._connect()
            self._joining = True
            assignment = await member._do_join_and_sync_async()
        except errors.KafkaError as error:
            raise self._failure(error) from error
        except DataError as error:
            raise NotJoinedError(str(error)) from error
        finally:
            self._joining = False
        if member.state is not MemberState.REBALANCING:
            raise NotJoinedError("The group has moved on to another generation", at_once=True)
        if not assignment:
            raise NotJoinedError("The leader did not know this worker yet")
        member.state = MemberState.STABLE
        generation = member._generation
        return JoinedGroup(generation.generation_id, generation.member_id, generation.protocol, assignment)

    async def _connect(self) -> None:
        manager = self._client._manager
        if not manager.bootstrapped:
            await manager.bootstrap_async(_CONNECT_MS)
        if not await self._member.ensure_coordinator_ready_async(_CONNECT_MS):
            raise errors.CoordinatorNotAvailableError(f"the coordinator was not found within {_CONNECT_MS / 1000:g} s")

    def _failure(self, error: errors.KafkaError) -> Exception:
        if isinstance(error, _LOST):
            return GenerationLostError(f"The group {self._group.group_id} does not know this worker any more")
        if isinstance(error, _AT_ONCE):
            return NotJoinedError(_text(error), at_once=True)
        advice = next((text for kind, text in _REMEDIES.items() if isinstance(error, kind)), "")
        advice = advice or remedy(getattr(error, "errno", None) or 0, WORKER, [on_group(self._group.group_id, "Read")])
        if advice:
            return MemberRefusedError(
                f"The broker refuses this worker in the group {self._group.group_id}: {_text(error)}. {advice}"
            )
        return NotJoinedError(_text(error))

    async def beat(self) -> bool:
        """Send a heartbeat. Return whether all members must join again; raises the errors of joining."""
        member, generation = self._member, self._member._generation
        if member.coordinator_id is None:
            await self._find()
        request = HeartbeatRequest(
            group_id=self._group.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self._group.instance_id,
        )
        sent = self._clock()
        try:
            response = await self._client._manager.send(
                request, node_id=self._node(), request_timeout_ms=self._group.session_timeout / 3
            )
        except errors.KafkaError as error:
            self._client._manager.cluster.request_update()
            if not self._joining:
                member.coordinator_dead(error)
            raise self._failure(error) from error
        return self._answered(errors.for_code(response.error_code), generation, sent)

    def _answered(self, answer: type[Exception], generation: Generation, sent: Moment) -> bool:
        if self._member._generation is not generation:
            return False  # the response is for an earlier generation
        if answer in (errors.NoError, errors.RebalanceInProgressError):
            self._alive(sent)
            return answer is errors.RebalanceInProgressError and not self._joining
        if self._joining:
            return False  # the response to the join will tell
        if answer is errors.UnknownMemberIdError:
            self._member.reset_generation()
        if answer in _ELSEWHERE:
            self._member.coordinator_dead(answer())
        raise self._failure(answer())

    async def _find(self) -> None:
        try:
            await self._connect()
        except errors.KafkaError as error:
            raise self._failure(error) from error

    def _node(self) -> int:
        return int(str(self._member.coordinator_id).removeprefix("coordinator-"))

    def forget(self) -> None:
        """Drop the generation and abort joining. The member keeps its id, which the broker may know."""
        self._abort_join()
        self._member.reset_generation(self._member._generation.member_id)

    async def leave(self, reason: str) -> None:
        """Leave the group if that takes only a moment. A static member does not leave, because it may come back."""
        self._abort_join()
        self._member.state = MemberState.STABLE
        await self._member.maybe_leave_group_async(reason, _LEAVE_MS)

    def _abort_join(self) -> None:
        if self._joining and self._member.coordinator_id is not None:
            self._client._manager.close(self._member.coordinator_id)


class _Member(BaseCoordinator):  # type: ignore[misc]
    def __init__(
        self,
        client: KafkaNetClient,
        group: GroupSettings,
        assign: Assign,
        alive: Callable[[Moment], None],
        clock: Clock,
    ) -> None:
        super().__init__(
            client,
            api_version=_BROKER,
            group_id=group.group_id,
            group_instance_id=group.instance_id,
            session_timeout_ms=group.session_timeout,
            heartbeat_interval_ms=group.heartbeat_interval,
            max_poll_interval_ms=group.rebalance_timeout,
        )
        self._assign = assign
        self._alive = alive
        self._clock = clock
        self._joined = clock()
        self.offer: list[tuple[str, bytes]] = []

    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    def group_protocols(self) -> list[tuple[str, bytes]]:
        return self.offer

    def _perform_assignment(self, leader_id: str, protocol: str, members: Sequence[Any]) -> dict[str, bytes]:
        known = [GroupMemberData(item.member_id, item.group_instance_id, bytes(item.metadata)) for item in members]
        return dict(self._assign(leader_id, protocol, self._generation.generation_id, known))

    def _process_join_group_response(self, response: Any, send_time: float) -> None:
        super()._process_join_group_response(response, send_time)
        # The next request follows at once; its own time comes from a clock that may stand still.
        self._joined = self._clock()

    def _process_sync_group_response(self, response: Any, send_time: float) -> bytes:
        try:
            assignment = bytes(super()._process_sync_group_response(response, send_time))
        except errors.InconsistentGroupProtocolError as error:
            # The group accepted the protocol when this member joined. Since then the group has moved on, or this member
            # has dropped its generation because the coordinator was silent.
            raise errors.RebalanceInProgressError(self.group_id) from error
        self._alive(self._joined)
        return assignment


def _text(error: errors.KafkaError) -> str:
    return f"{type(error).__name__.removesuffix('Error')}: {error}"
