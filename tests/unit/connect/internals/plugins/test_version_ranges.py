"""Versions and ranges of them: vectors that Maven's own library has answered, and what is no range."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from connect.internals.plugins.versions import Version, VersionRange, VersionSpecError
from equipment.growth import assert_grows_evenly

IN_ORDER = (
    "1-alpha-1",
    "1.0a2",
    "1-alpha-10",
    "1-beta",
    "1-m2",
    "1-rc1",
    "1.0.0-rc2",
    "1-SNAPSHOT",
    "1",
    "1-sp",
    "1-foo2",
    "1-foo10",
    "1.0.0-jre",
    "1-1-SNAPSHOT",
    "1-1",
    "1-2",
    "1.0.1",
    "1.1-rc.1",
    "1.1",
    "1.2",
    "1.10",
    "1.10.0.1",
    "2",
    "10",
    "99999999999999999999999999999999999998",
    "99999999999999999999999999999999999999",
)
EQUAL = (
    ("1", "1.0", "1.0.0", "1-0", "1.ga", "1-GA", "1.0.Final", "1.0-RELEASE", "1.", "1-", "01"),
    ("1-rc1", "1-rc-1", "1.0-CR1", "1.0.cr1"),
    ("1-a1", "1-alpha-1", "1.0.0-Alpha1"),
    ("1-snapshot", "1-SNAPSHOT", "1.0-Snapshot"),
    ("1.foo", "1-foo", "1foo"),
)


@pytest.mark.parametrize(("less", "more"), list(pairwise(IN_ORDER)))
def test_versions_are_in_the_order_of_maven(less: str, more: str) -> None:
    assert Version(less) < Version(more)
    assert not Version(more) < Version(less)
    assert Version(less) != Version(more)


@pytest.mark.parametrize(("one", "other"), [pair for group in EQUAL for pair in combinations(group, 2)])
def test_what_means_the_same_is_equal(one: str, other: str) -> None:
    assert Version(one) == Version(other)
    assert hash(Version(one)) == hash(Version(other))
    assert not Version(one) < Version(other)


@pytest.mark.parametrize(
    ("spec", "shown", "within", "without"),
    [
        ("1.0", "[1.0,1.0]", ["1.0", "1", "1.0.0-ga"], ["1.0.1", "0.9", "1.0-SNAPSHOT"]),
        ("[1.0]", "[1.0,1.0]", ["1.0"], ["1.1"]),
        (" [1.0 , 2.0) ", "[1.0,2.0)", ["1.0", "1.9", "2.0-rc1"], ["2.0", "1.0-rc1", "undefined"]),
        ("(1.0,2.0]", "(1.0,2.0]", ["2.0"], ["1.0", "2.0.1"]),
        ("(,1.5]", "(,1.5]", ["0.1", "1.5"], ["1.6"]),
        ("[1.5,)", "[1.5,)", ["1.5", "99"], ["1.4"]),
        ("(,1.0],[1.2,)", "(,1.0],[1.2,)", ["0.9", "1.0", "1.2", "2"], ["1.1"]),
        ("[1,2],[2,3]", "[1,2],[2,3]", ["2", "3"], ["4"]),
        ("undefined", "[undefined,undefined]", ["undefined"], ["1"]),
    ],
)
def test_a_range_holds_the_versions_between_its_bounds(
    spec: str, shown: str, within: list[str], without: list[str]
) -> None:
    found = VersionRange.parse(spec)
    assert found is not None
    assert str(found) == shown
    assert [version for version in [*within, *without] if Version(version) in found] == within


@pytest.mark.parametrize("spec", [None, "latest"])
def test_the_newest_is_no_range(spec: str | None) -> None:
    assert VersionRange.parse(spec) is None


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ("[1.0", "is not a version range"),
        ("1.0,2.0", "is not a version range"),
        ("[1,2)x", "is not a version range"),
        ("[1,2),,[3,4)", "is not a version range"),
        ("", "is not a version range"),
        ("(1.0)", "A single version must be surrounded by"),
        ("[]", "A single version must be surrounded by"),
        ("[2,1]", "Range defies version ordering"),
        ("[1,1)", "Range defies version ordering"),
        ("[1,2,3]", "A range has two bounds at most"),
        ("[1,3],[2,4]", "Ranges overlap"),
        ("[3,4],[1,2]", "Ranges overlap"),
        ("(,1],(,2]", "Ranges overlap"),
    ],
)
def test_what_is_no_range_is_refused(spec: str, wrong: str) -> None:
    with pytest.raises(VersionSpecError, match=wrong):
        VersionRange.parse(spec)


@pytest.mark.growth
@pytest.mark.parametrize("part", ["1-", "1.", "a1", "9", "-", ".0", "[1],", "(", "[1,"])
def test_hostile_versions_cost_no_more_than_their_length(part: str) -> None:
    def read(text: str) -> None:
        assert not Version(text) < Version(text)
        try:
            VersionRange.parse(text)
        except VersionSpecError as error:
            assert len(str(error)) < len(text) + 200

    assert_grows_evenly(read, lambda size: part * size, 2_000)
