"""The transformations and predicates of a configuration, as all who ask are told of them."""

from __future__ import annotations

from connect.internals.chain.specs import PredicateSpec, TransformationSpec, predicate_specs, transformation_specs

PROPS = {
    "transforms": " b, a,,b",
    "transforms.a.type": "A",
    "transforms.a.predicate": "p",
    "transforms.a.negate": "TRUE",
    "transforms.a.key": "1",
    "transforms.ab.key": "of another",
    "predicates": "p",
    "predicates.p.type": "P",
    "predicates.p.pattern": "x",
}


def test_transformations_come_in_the_order_of_their_list_once_each() -> None:
    predicate = PredicateSpec("p", "P", {"pattern": "x"})
    assert transformation_specs(PROPS) == (
        TransformationSpec("b", "", {}),
        TransformationSpec("a", "A", {"key": "1"}, predicate, negate=True),
    )
    assert predicate_specs(PROPS) == (predicate,)


def test_specs_know_the_prefix_of_their_keys() -> None:
    prefixes = [spec.prefix for spec in (*transformation_specs(PROPS), *predicate_specs(PROPS))]
    assert prefixes == ["transforms.b.", "transforms.a.", "predicates.p."]


def test_a_configuration_without_transformations_has_none() -> None:
    assert transformation_specs({}) == predicate_specs({"transforms": "a"}) == ()
