"""What flows would mirror, what not and why, and what will not work."""

from __future__ import annotations

from connectors.mirror.flows import Flow, Flows
from connectors.mirror.plan import FlowPlan, PlannedGroup, PlannedTopic, plan_flow, problems_between
from connectors.mirror.survey import Survey

_IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
_WIDE = {
    "clusters": "A, B, C",
    **{f"{alias}.bootstrap.servers": f"{alias.lower()}:1" for alias in "ABC"},
    "A->B.enabled": "true",
    "replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
}


def _flow(name: str = "A->B", **props: str) -> Flow:
    given = {**_WIDE, **{key.replace("_", "."): value for key, value in props.items()}}
    return Flows(given, given.keys() | {"topics", "groups"}).flow(*name.split("->"))


def _survey(cluster: str, topics: dict[str, int], groups: dict[str, set[str]] | None = None) -> Survey:
    return Survey(cluster, 1, topics, groups or {})


def test_each_topic_and_group_has_its_place_or_a_reason() -> None:
    source = _survey(
        "a",
        {"B.back": 1, "B.loop": 1, "__consumer_offsets": 5, "orders": 3, "x.replica": 1},
        {"g1": {"orders"}, "console-consumer-1": {"orders"}, "idle": set()},
    )
    planned = plan_flow(_flow(), source, _survey("b", {"back": 1, "A.orders": 2}))
    by_name = "If it is a topic of A's own, rename it or choose another alias for the cluster"
    assert planned == FlowPlan(
        "A->B",
        (
            PlannedTopic("B.back", 1, None, "cycle: it was mirrored from B"),
            PlannedTopic("B.loop", 1, None, f"cycle by its name alone: B has no topic loop. {by_name}"),
            PlannedTopic("__consumer_offsets", 5, None, "internal: it belongs to Kafka or to a mirror"),
            PlannedTopic("orders", 3, "A.orders", None, "exists with 2 partitions and will get more"),
            PlannedTopic("x.replica", 1, None, "filter: topics does not match it, or topics.exclude does"),
        ),
        (
            PlannedGroup("console-consumer-1", "filter: groups does not match it, or groups.exclude does"),
            PlannedGroup("g1"),
            PlannedGroup("idle", "no offsets: it has committed none in a topic that topics matches"),
        ),
        (),
    )


def test_what_cannot_work_is_a_problem() -> None:
    long = "t" * 248
    topics = {long: 1}
    problems = plan_flow(_flow(replication_factor="2"), _survey("a", topics), _survey("b", {})).problems
    assert problems == (
        "replication.factor is 2, more than the cluster has brokers (1): topics cannot be created.",
        f"{long}: Kafka allows no topic A.{long}. A name has at most 249 of letters, digits, . _ -",
    )
    assert plan_flow(_flow(), _survey("a", {}), _survey("b", {})).problems == ("No topic would be mirrored.",)


def test_topics_of_connect_do_not_feed_each_other() -> None:
    topics = {"my-connect-offsets": 1, "connect-status": 5, "connections": 1}
    planned = plan_flow(_flow(topics=".*,connect-status"), _survey("a", topics), _survey("b", {}))
    assert {topic.topic: topic.remote for topic in planned.topics} == {
        "connections": "A.connections",
        "connect-status": "A.connect-status",
        "my-connect-offsets": None,
    }
    assert planned.topics[-1].reason == (
        "connect: it looks like an internal topic of Kafka Connect. If it is not, name it in topics"
    )


def test_aliases_of_one_cluster_are_told() -> None:
    surveys = {"A": _survey("same", {"t": 1}), "B": _survey("same", {"t": 1})}
    planned = plan_flow(_flow(), surveys["A"], surveys["B"])
    (problem,) = problems_between([_flow()], [planned], surveys)
    assert problem.startswith("A and B are the same cluster (same)")


def test_two_flows_into_one_topic_are_told() -> None:
    surveys = {"A": _survey("a", {"t": 1}), "B": _survey("b", {"t": 1}), "C": _survey("c", {})}
    flows = [_flow(name, replication_policy_class=_IDENTITY) for name in ("A->C", "B->C")]
    plans = [plan_flow(flow, surveys[flow.source], surveys["C"]) for flow in flows]
    assert problems_between(flows, plans, surveys) == [
        "t of C would be written by A->C (from t) and B->C (from t). Exclude it from all but one flow."
    ]


def test_names_kept_both_ways_are_a_circle_unless_records_tell_where_they_come_from() -> None:
    surveys = {"A": _survey("a", {}), "B": _survey("b", {})}
    both = {f"{name}.enabled": "true" for name in ("A->B", "B->A")}
    for header, problems in (("", 1), ("came-by", 0)):
        props = {**_WIDE, **both, "replication.policy.class": _IDENTITY, "mirror.provenance.header": header}
        made = Flows(props, props.keys())
        flows = [made.flow("A", "B"), made.flow("B", "A")]
        plans = [plan_flow(flow, surveys[flow.source], surveys[flow.target]) for flow in flows]
        assert len(problems_between(flows, plans, surveys)) == problems
