from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConfigError, ConnectError
from connect.internals.jvm.repository import CENTRAL, find_repository, local_repository, redact

SETTINGS = '<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0">{}</settings>'
MIRROR = "<mirror><id>m</id><mirrorOf>{}</mirrorOf><url>{}</url></mirror>"

SERVER = "<servers><server><id>m</id><username>ann</username><password>{}</password></server></servers>"


def home_with(tmp_path: Path, content: str, frame: str = SETTINGS) -> dict[str, str]:
    settings = tmp_path / ".m2" / "settings.xml"
    settings.parent.mkdir()
    settings.write_text(frame.format(content), encoding="utf-8")
    return {"HOME": str(tmp_path)}


def mirrors(*pairs: tuple[str, str]) -> str:
    return "<mirrors>" + "".join(MIRROR.format(*pair) for pair in pairs) + "</mirrors>"


def test_maven_central_when_nothing_is_set(tmp_path: Path) -> None:
    assert find_repository({"HOME": str(tmp_path)}).url == CENTRAL


@pytest.mark.parametrize("pattern", ["central", "*", "external:*", "other,central", "*,!other", " central "])
def test_a_mirror_of_central_is_used(tmp_path: Path, pattern: str) -> None:
    environ = home_with(tmp_path, mirrors((pattern, "https://mirror.example/maven")))
    assert find_repository(environ).url == "https://mirror.example/maven/"


@pytest.mark.parametrize("pattern", ["other", "*,!central", "external:http:*", "centralized"])
def test_a_mirror_of_something_else_is_not(tmp_path: Path, pattern: str) -> None:
    environ = home_with(tmp_path, mirrors((pattern, "https://mirror.example/maven")))
    assert find_repository(environ).url == CENTRAL


def test_the_mirror_that_names_central_comes_before_a_wildcard(tmp_path: Path) -> None:
    environ = home_with(tmp_path, mirrors(("*", "https://all.example/"), ("central", "https://one.example/")))
    assert find_repository(environ).url == "https://one.example/"


def test_a_blocked_mirror_is_passed_over(tmp_path: Path) -> None:
    blocked = "<mirrors><mirror><mirrorOf>*</mirrorOf><url>http://x/</url><blocked>true</blocked></mirror></mirrors>"
    assert find_repository(home_with(tmp_path, blocked)).url == CENTRAL


def test_settings_without_a_namespace_and_with_environment_variables(tmp_path: Path) -> None:
    content = mirrors(("*", "https://${env.MIRROR_HOST}/maven/"))
    environ = home_with(tmp_path, content, frame="<settings>{}</settings>")
    assert find_repository({**environ, "MIRROR_HOST": "m.example"}).url == "https://m.example/maven/"


def test_settings_that_are_no_xml_are_an_error_naming_the_file(tmp_path: Path) -> None:
    environ = home_with(tmp_path, "<mirrors>")
    with pytest.raises(ConnectError, match=r"settings\.xml is not well-formed XML"):
        find_repository(environ)


def test_a_repository_url_comes_before_the_mirror(tmp_path: Path) -> None:
    environ = home_with(tmp_path, mirrors(("*", "https://mirror.example/")))
    environ["SLUICE_MAVEN_REPOSITORY"] = "https://mine.example/maven2"
    assert find_repository(environ).url == "https://mine.example/maven2/"


def test_the_mirror_asks_for_the_user_of_its_server(tmp_path: Path) -> None:
    environ = home_with(tmp_path, mirrors(("*", "https://mirror.example/")) + SERVER.format("${env.SECRET}"))
    repository = find_repository({**environ, "SECRET": "s3cret"})
    assert repository.auth == ("ann", "s3cret")
    assert "s3cret" not in f"{repository} {repository!r}"


def test_a_password_that_only_maven_can_read_is_refused(tmp_path: Path) -> None:
    environ = home_with(tmp_path, mirrors(("*", "https://mirror.example/")) + SERVER.format("{jSMOWnoPFgsHVpMvz5V=}"))
    with pytest.raises(ConnectError, match=r"password of server m .* is encrypted") as caught:
        find_repository(environ)
    assert "jSMOWn" not in str(caught.value)


def test_a_repository_that_is_no_url_is_refused() -> None:
    with pytest.raises(ConfigError, match="SLUICE_MAVEN_REPOSITORY: not a URL"):
        find_repository({"SLUICE_MAVEN_REPOSITORY": "mirror.example"})


def test_a_password_in_the_url_is_not_shown() -> None:
    repository = find_repository({"SLUICE_MAVEN_REPOSITORY": "https://me:secret@mine.example/"})
    assert "secret" in repository.url
    assert str(repository) == "https://[hidden]@mine.example/ (SLUICE_MAVEN_REPOSITORY)"
    assert redact("got https://a:b@c/d and http://e/f") == "got https://[hidden]@c/d and http://e/f"


def test_the_local_repository_is_the_one_of_the_settings(tmp_path: Path) -> None:
    assert local_repository({"HOME": str(tmp_path)}) == tmp_path / ".m2" / "repository"
    environ = home_with(tmp_path, "<localRepository>${user.home}/jars</localRepository>")
    assert local_repository(environ) == tmp_path / "jars"
