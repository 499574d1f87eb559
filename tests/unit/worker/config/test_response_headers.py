"""Rules for the headers of answers."""

from __future__ import annotations

import pytest

from worker.config.response_headers import HeaderRule, parse_header_rules


def test_rules_are_read_as_java_reads_them() -> None:
    text = '"set Cache-Control: no-cache, no-store", add X-A: b, setDate Expires: 0'
    assert parse_header_rules(text) == (
        HeaderRule("Cache-Control", "no-cache, no-store", replaces=True),
        HeaderRule("X-A", "b", replaces=False),
        HeaderRule("Expires", "Thu, 01 Jan 1970 00:00:00 GMT", replaces=True),
    )
    assert parse_header_rules(" ") == ()


@pytest.mark.parametrize("text", ["X-A: b", "set X-A", "drop X-A: b", "setDate X-A: tomorrow", "set X-A: a\x01b"])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Header|Action|Date"):
        parse_header_rules(text)
