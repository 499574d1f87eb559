"""A member's side of the group protocol, against a real broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from worker.membership.coordinator import Coordinator, GroupMemberData, GroupSettings, JoinedGroup
from worker.membership.events import NotJoinedError
from worker.processes.clock import Moment

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),  # kafka-python's import
]


def test_a_member_that_drops_its_generation_while_it_joins_can_join_again(bootstrap: str, topic: str) -> None:
    rounds: list[int] = []

    def assign(leader: str, protocol: str, generation: int, members: Sequence[GroupMemberData]) -> Mapping[str, bytes]:
        rounds.append(generation)
        if len(rounds) == 1:
            coordinator.forget()
        return {member.member_id: b"work" for member in members}

    group = GroupSettings(topic, None, session_timeout=6000, heartbeat_interval=500, rebalance_timeout=6000)
    coordinator = Coordinator({"bootstrap_servers": bootstrap}, group, assign, lambda _: None, Moment.now)
    joined: list[JoinedGroup] = []
    failures: list[str] = []

    async def attempt() -> None:
        outcome = coordinator.join([("sessioned", b"state")])
        try:
            while (done := outcome()) is None:
                await coordinator.wait(5)
        except NotJoinedError as error:
            failures.append(str(error))
        else:
            joined.append(done)

    async def join() -> None:
        while not joined:
            await attempt()

    coordinator.run(join)
    # Before its first round the broker may not be ready for the group yet.
    assert failures[-1].startswith("RebalanceInProgress")
    assert [(each.protocol, each.assignment) for each in joined] == [("sessioned", b"work")]
