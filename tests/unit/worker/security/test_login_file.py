"""The file of users, found by a JAAS file as Kafka Connect finds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConfigError
from worker.security.login_file import asks_for_password, users_file

MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
EXTENSION = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


@pytest.mark.parametrize(
    "text",
    [
        f'KafkaConnect {{ {MODULE} required file="/etc/users }};"; }};',
        f"""// KafkaConnect {{ other; }};
            /* more */ KafkaClient {{ com.example.Other required password="}};"; }};
            KafkaConnect
            {{
              {MODULE} REQUIRED debug=true file='/etc/users }};' ;
            }} ;
        """,
    ],
)
def test_the_users_are_where_the_entry_says(tmp_path: Path, text: str) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(text)
    assert users_file(str(file), {}) == Path("/etc/users };")
    options = f"-Xmx1g -Djava.security.auth.login.config=/nothing '-Djava.security.auth.login.config={file}'"
    assert users_file(None, {"KAFKA_OPTS": options}) == Path("/etc/users };")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no entry KafkaConnect"),
        ("KafkaConnect {", "has no entry KafkaConnect"),
        ("KafkaConnect { };", "Login module not specified"),
        (f"KafkaConnect {{ {MODULE} required; }};", "lacks the option file"),
        (f"KafkaConnect {{ {MODULE} required file=/x }};", "cannot be read"),
        ('KafkaConnect { com.example.Ldap required file="/x"; };', "another|other than"),
    ],
)
def test_an_entry_that_names_no_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "jaas.conf"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        users_file(str(file), {})


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file of users is named"):
        users_file(None, {"KAFKA_OPTS": "-Dother=1 'unclosed"})
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        users_file(str(tmp_path / "none"), {})


def test_only_basic_authentication_is_an_extension() -> None:
    assert asks_for_password([EXTENSION])
    assert asks_for_password([" BasicAuthSecurityRestExtension"])
    assert not asks_for_password([])
    with pytest.raises(ConfigError, match="The only supported extension"):
        asks_for_password(["io.confluent.connect.security.ConnectSecurityExtension"])
