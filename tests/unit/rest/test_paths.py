"""The rules by which paths of requests are matched."""

from __future__ import annotations

from werkzeug.routing import Map

from rest.http.paths import EscapedName, MatchingRule


def test_a_rule_matches_paths_and_builds_them_where_somebody_asks() -> None:
    rules = [MatchingRule("/connectors/<name:name>/status", endpoint="status"), MatchingRule("/", endpoint="root")]
    adapter = Map(rules, converters={"name": EscapedName}).bind("localhost")
    assert adapter.match("/connectors/a%2Fb/status") == ("status", {"name": "a/b"})
    assert adapter.build("status", {"name": "a/b"}) == "/connectors/a%2Fb/status"
    assert adapter.build("root", {"page": "2"}) == "/?page=2"
