"""``sasl.jaas.config`` is read as Java reads it, and never repeated."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from connect.internals.kafka.auth.jaas import parse_jaas_config

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('x.Y required username="u" password="p";', {"username": "u", "password": "p"}),
        ("x.Y required username='u' password='p\"q';", {"username": "u", "password": 'p"q'}),
        (r'x.Y required password="a\"b\\c";', {"password": 'a"b\\c'}),
        (r'x.Y required password="a\tb\101";', {"password": "a\tbA"}),
        ('x.Y required password="a=b;c // d /* e";', {"password": "a=b;c // d /* e"}),
        ("x.Y required useKeyTab=true storeKey = true;", {"useKeyTab": "true", "storeKey": "true"}),
        ("x.Y REQUIRED\n  a=b\n  c=d ;  \n", {"a": "b", "c": "d"}),
        ("// of the team\nx.Y required /* none */ a=b; // end", {"a": "b"}),
        ("x.Y optional;", {}),
        ('x.Y required password="pässwört€";', {"password": "pässwört€"}),
        ('x.Y required password="";', {"password": ""}),
    ],
)
def test_options_are_read_with_java_s_quoting(text: str, options: dict[str, str]) -> None:
    module = parse_jaas_config(text)
    assert (module.class_name, module.options) == ("x.Y", options)


def test_a_module_has_a_simple_name() -> None:
    assert parse_jaas_config(f"{PLAIN} required;").simple_name == "PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Login module not specified"),
        (PLAIN, "control flag not specified"),
        (f'{PLAIN} username="s3cret";', "control flag not specified"),
        (f'{PLAIN} required password="s3cret"', "not terminated by semi-colon"),
        (f"{PLAIN} required s3cret;", "Value not specified"),
        (f"{PLAIN} required password=;", "Value not specified"),
        (f'{PLAIN} required password="s3"cret";', "not closed"),
        (f'{PLAIN} required password="s3"cret"";', "Value not specified"),
        (f'{PLAIN} required password="s3cret;', "not closed"),
        (f"{PLAIN} required password=/s3cret;", "Value not specified"),
        (f'{PLAIN} required a=b; {PLAIN} required password="s3cret";', "more than one login module"),
    ],
)
def test_a_malformed_config_is_told_without_its_secrets(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        parse_jaas_config(text)
    assert "s3" not in str(caught.value)
    assert caught.value.key == "sasl.jaas.config"


def test_a_module_does_not_show_its_options() -> None:
    assert "s3cret" not in repr(parse_jaas_config('x.Y required password="s3cret";'))
