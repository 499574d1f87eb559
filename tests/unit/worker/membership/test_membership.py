"""What a worker knows of its place after each event."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace

from worker.membership.events import Division
from worker.membership.membership import GroupMembership, Joined, Lost, Snapshot, SoloMembership, Tell
from worker.unit import Unit

A, B, C = Unit("a"), Unit("a", 0), Unit("a", 1)
OWN, OTHER = "http://own/", "http://other/"
JOINED = Joined(
    generation=3,
    member_id="m1",
    leader_url=OWN,
    mismatch=False,
    config_offset=7,
    held=frozenset((A, B)),
    revoked=frozenset(),
    protocol_version=2,
    division=Division({A: OWN, B: OWN, C: OTHER}, frozenset()),
)


class SilentMember:
    """Takes part in nothing and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def start(self) -> None:
        self.asked.append(("start",))

    def rejoin(self, reason: str, config_offset: int | None = None) -> None:
        self.asked.append(("rejoin", reason, config_offset))

    def leave(self, for_seconds: float | None) -> None:
        self.asked.append(("leave", for_seconds))

    def close(self) -> None:
        self.asked.append(("close",))

    def join(self, timeout: float | None = None) -> None:
        self.asked.append(("join",))


def made(member: SilentMember | None = None) -> GroupMembership:
    def make(tell: Tell, snapshot: Snapshot) -> SilentMember:
        return member or SilentMember()

    return GroupMembership(OWN, make)


def test_before_the_first_round_nothing_is_its_own() -> None:
    membership = made()
    assert not membership.is_leader
    assert membership.rebalancing
    assert membership.leader_url is None
    assert membership.assigned([A]) == frozenset()
    assert membership.owner_url(A) is None


def test_the_leader_knows_every_owner() -> None:
    membership = made()
    membership.happened(JOINED)
    assert membership.is_leader
    assert membership.generation == 3
    assert not membership.rebalancing
    assert membership.assigned([B, C]) == {B}
    assert (membership.owner_url(B), membership.owner_url(C)) == (OWN, OTHER)
    assert membership.owner_url(Unit("unknown")) is None


def test_another_knows_its_own_and_the_leader() -> None:
    membership = made()
    membership.happened(replace(JOINED, leader_url=OTHER, division=None))
    assert membership.leader_url == OTHER
    assert (membership.owner_url(A), membership.owner_url(C)) == (OWN, None)


def test_a_round_that_must_be_followed_by_another() -> None:
    membership = made()
    for event in (replace(JOINED, revoked=frozenset((C,))), replace(JOINED, mismatch=True)):
        membership.happened(event)
        assert membership.rebalancing


def test_a_lost_membership_leaves_nothing_but_its_generation() -> None:
    membership = made()
    membership.happened(JOINED)
    membership.happened(Lost(Future(), 1.0))
    assert not membership.is_leader
    assert membership.rebalancing
    assert membership.assigned([A, B]) == frozenset()
    assert membership.generation == 3


def test_requests_reach_the_member_once_it_is_there() -> None:
    member = SilentMember()
    membership = made(member)
    membership.rejoin("too early")
    membership.close()
    membership.start(lambda _: None, lambda _: Future())
    membership.rejoin("why", 5)
    membership.leave(2.0)
    membership.close()
    assert member.asked == [("start",), ("rejoin", "why", 5), ("leave", 2.0), ("close",), ("join",)]


def test_alone_a_worker_runs_everything() -> None:
    solo = SoloMembership()
    assert solo.is_leader
    assert solo.assigned([A, B]) == {A, B}
    assert solo.owner_url(A) is None


def test_who_may_run_tasks_yet() -> None:
    """Whoever was given one in the last round, and whoever held one when it began; after that nobody does."""
    membership = made()
    assert membership.may_run_tasks("a"), "nothing is known yet"
    membership.happened(JOINED)
    assert membership.may_run_tasks("a")
    assert not membership.may_run_tasks("b")
    stopped = replace(JOINED, held=frozenset((A,)), division=Division({A: OWN}, frozenset()), config_offset=9)
    membership.happened(replace(stopped, division=Division({A: OWN}, frozenset((C,)))))
    assert membership.may_run_tasks("a"), "a member has it to stop"
    membership.happened(stopped)
    assert not membership.may_run_tasks("a")
    membership.rejoin("there are other connectors or tasks", 12)
    assert membership.may_run_tasks("a"), "others may have been given what was made and stopped since"
    membership.happened(replace(stopped, config_offset=12))
    assert not membership.may_run_tasks("a")
    membership.happened(replace(stopped, config_offset=12, mismatch=True))
    assert membership.may_run_tasks("a"), "another round has to follow"
    membership.happened(replace(stopped, config_offset=12, division=None))
    assert membership.may_run_tasks("a"), "only the leader knows"
    assert not SoloMembership().may_run_tasks("a")
