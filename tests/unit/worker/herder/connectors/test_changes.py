"""How requests change configurations, and what is refused."""

from __future__ import annotations

import pytest

from connect.internals.plugins import PluginEntry, PluginKind
from worker.errors import BadRequestError
from worker.herder.connectors.writes import check_same_class, merged, named, required_class

FILE = PluginEntry(PluginKind.CONNECTOR, "a.FileConnector", "source")
OTHER = PluginEntry(PluginKind.CONNECTOR, "a.OtherConnector", "sink")


def test_a_configuration_has_its_connectors_name() -> None:
    assert named("c", {"a": "b"}) == {"a": "b", "name": "c"}
    assert named("c", {"a": "b", "name": None}) == {"a": "b", "name": "c"}
    with pytest.raises(BadRequestError, match=r"\(d\) doesn't match connector name in the URL \(c\)"):
        named("c", {"name": "d"})


def test_null_removes_a_key_where_a_configuration_is_patched() -> None:
    assert merged({"a": "1", "b": "2"}, {"b": None, "c": "3", "d": None}) == {"a": "1", "c": "3"}


def test_a_configuration_without_a_class_is_refused_without_telling_its_values() -> None:
    with pytest.raises(BadRequestError, match=r"Connector config \{name, password\} contains no") as refused:
        required_class({"name": "n", "password": "secret"})
    assert "secret" not in str(refused.value)


def test_a_class_may_be_named_in_two_ways_but_not_be_two() -> None:
    check_same_class("File", "a.FileConnector", (FILE, FILE))
    check_same_class("no.such", "no.such", (None, None))
    with pytest.raises(BadRequestError, match="Included connector type File does not match request type Other"):
        check_same_class("File", "Other", (FILE, OTHER))
