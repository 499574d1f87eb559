"""Which hosts may be reached."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.config import ConfigRuleError
from connect.errors import ConfigError
from connect.hosts import HostDeniedError, HostRules, HostsConfig, host_list

RESERVED = ["169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"]


def may_reach(rules: HostRules, host: str, *addresses: str) -> bool:
    try:
        rules.check_name(host)
        return bool(rules.permitted(host, addresses or [host]))
    except HostDeniedError:
        return False


@pytest.mark.parametrize("address", RESERVED)
def test_the_addresses_of_clouds_are_denied_unless_they_are_named(address: str) -> None:
    assert not may_reach(HostRules.of(), "any.example", address)
    # A network that happens to have it in it, or any name, does not name it.
    assert not may_reach(HostRules.of(["*", "0.0.0.0/0", "::/0", "any.example"]), "any.example", address)
    if ipaddress.ip_address(address) in ipaddress.ip_network("169.254.0.0/16"):
        assert may_reach(HostRules.of(["169.254.0.0/16"]), "any.example", address)
    assert may_reach(HostRules.of([address]), "any.example", address)
    assert not may_reach(HostRules.of([address], [address]), "any.example", address)


@given(st.sampled_from(RESERVED[:2] + RESERVED[4:]))
def test_no_wrapping_of_an_ipv4_address_hides_it(address: str) -> None:
    number = int(ipaddress.IPv4Address(address))
    wrapped = [
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address(number),
        ipaddress.IPv6Address((0x64FF9B << 96) | number),
        ipaddress.IPv6Address((0xFFFF << 48) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80)),
        ipaddress.IPv6Address((0x20010000 << 96) | (number ^ 0xFFFFFFFF)),
        ipaddress.IPv6Address((0x20010000 << 96) | (number << 64)),
    ]
    for form in wrapped:
        assert not may_reach(HostRules.of(), "any.example", str(form)), form
        assert not may_reach(HostRules.of(), f"[{form}]", str(form)), form
        assert not may_reach(HostRules.of(denied=[address]), "any.example", str(form)), form


@pytest.mark.parametrize("unspecified", ["0.0.0.0", "::", "::ffff:0.0.0.0"])
def test_no_address_is_that_of_this_machine(unspecified: str) -> None:
    assert may_reach(HostRules.of(), unspecified)
    assert not may_reach(HostRules.of(denied=["127.0.0.0/8", "::1"]), unspecified)


def test_a_link_of_a_scope_is_still_one() -> None:
    assert not may_reach(HostRules.of(), "any.example", "fe80::1%1")


def test_names_are_compared_as_they_are_resolved() -> None:
    rules = HostRules.of(denied=["*.Internal.example", "b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example"])
    for denied in ("a.internal.example", "A.INTERNAL.EXAMPLE.", "xn--bcher-kva.example", "B\xdcCHER.example"):
        assert not may_reach(rules, denied, "192.0.2.1"), denied
    for allowed in ("internal.example", "a.internal.example.org"):
        assert may_reach(rules, allowed, "192.0.2.1"), allowed


def test_only_what_is_listed_is_allowed() -> None:
    rules = HostRules.of(["api.example", "10.0.0.0/8"])
    assert may_reach(rules, "api.example", "192.0.2.1")
    assert may_reach(rules, "other.example", "10.1.2.3")
    assert may_reach(rules, "other.example", "::ffff:10.1.2.3")
    assert not may_reach(rules, "other.example", "192.0.2.1")
    # A translated address is another host than the one in it.
    assert not may_reach(rules, "other.example", "2002:a01:203::")
    assert not may_reach(HostRules.of(["api.example"]), "10.1.2.3")
    # Of several addresses those that may be reached are left.
    assert rules.permitted("other.example", ["192.0.2.1", "10.0.0.1", "169.254.1.1"]) == ["10.0.0.1"]
    assert rules.permitted("other.example", []) == []


def test_what_is_denied_is_denied_even_if_it_is_allowed() -> None:
    rules = HostRules.of(["*"], ["10.0.0.0/8", "bad.example"])
    assert may_reach(rules, "good.example", "192.0.2.1")
    assert not may_reach(rules, "bad.example", "192.0.2.1")
    assert not may_reach(rules, "good.example", "10.0.0.1")


@pytest.mark.parametrize("item", ["10.*", "1.2.3", "http://a", "a:80", "a b", "10.0.0.0/33", "a/b", ""])
def test_items_that_mean_nothing_are_refused(item: str) -> None:
    with pytest.raises((ConfigError, ConfigRuleError), match="is not a"):
        host_list("http.denied.hosts", (item,))


@pytest.mark.parametrize("item", ["*", "a", "*.example.com", "10.0.0.1", "::1", "[::1]", "10.0.0.5/8", "fe80::/10"])
def test_names_addresses_and_networks_are_items(item: str) -> None:
    host_list("http.denied.hosts", (item,))


@given(st.text(max_size=60))
def test_any_text_is_a_host_or_is_refused(text: str) -> None:
    rules = HostRules.of(["*.example"], ["10.0.0.0/8"])
    with pytest.raises(HostDeniedError):
        rules.check_name(text)
        rules.permitted(text, ["10.0.0.1"])


def test_the_rules_come_from_the_options() -> None:
    config = HostsConfig.parse({"http.allowed.hosts": "a.example, 10.0.0.0/8", "http.denied.hosts": "10.0.0.1"})
    assert may_reach(config.host_rules, "b.example", "10.0.0.2")
    assert not may_reach(config.host_rules, "a.example", "10.0.0.1")
