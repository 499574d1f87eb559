from __future__ import annotations

from pathlib import Path

import pytest

from connect.errors import ConnectError
from connect.internals.jvm.lock import Jar, parse_lock, read_lock

SHA = "0123456789abcdef" * 4


def test_reads_jars_in_order_without_comments_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "some.jars"
    path.write_text(f"# all of it\n\norg.b:b:2 {SHA}  # why\n  org.a:a:1:linux {SHA}\n", encoding="utf-8")
    assert read_lock(path) == (Jar("org.b", "b", "2", None, SHA), Jar("org.a", "a", "1", "linux", SHA))


def test_names_a_jar_as_maven_and_spark_do() -> None:
    plain = Jar("org.apache.kafka", "kafka_2.13", "4.3.1", None, SHA)
    assert plain.coordinates == "org.apache.kafka:kafka_2.13:4.3.1"
    assert plain.file_name == "org.apache.kafka_kafka_2.13-4.3.1.jar"
    assert plain.maven_path == Path("org/apache/kafka/kafka_2.13/4.3.1/kafka_2.13-4.3.1.jar")
    classified = Jar("a.b", "c", "1", "linux-x86_64", SHA)
    assert classified.coordinates == "a.b:c:1:linux-x86_64"
    assert classified.maven_path.name == "c-1-linux-x86_64.jar"


@pytest.mark.parametrize(
    "line", [f"a:b {SHA}", f"a:b:1:c:d {SHA}", f"a::1 {SHA}", "a:b:1", f"a:b:1 {SHA} more", f"a:b:1: {SHA}"]
)
def test_a_malformed_line_is_refused_with_its_place(line: str) -> None:
    with pytest.raises(ConnectError, match=r"some\.jars, line 2: .*group:artifact:version"):
        parse_lock(f"# head\n{line}\n", "some.jars")


@pytest.mark.parametrize("digest", ["abc", SHA.upper(), SHA + "0", "g" * 64])
def test_a_checksum_that_is_no_sha256_is_refused(digest: str) -> None:
    with pytest.raises(ConnectError, match=r"line 1: .*SHA-256"):
        parse_lock(f"a:b:1 {digest}")


def test_a_jar_listed_twice_is_refused() -> None:
    with pytest.raises(ConnectError, match="line 2: a:b:1 is listed twice"):
        parse_lock(f"a:b:1 {SHA}\na:b:1 {SHA}\n")


def test_an_archive_that_is_no_jar_says_so() -> None:
    (archive,) = parse_lock(f"a.b:c:1:all@tar.gz {SHA}")
    assert archive == Jar("a.b", "c", "1", "all", SHA, "tar.gz")
    assert archive.coordinates == "a.b:c:1:all@tar.gz"
    assert archive.file_name == "a.b_c-1-all.tar.gz"
    assert archive.maven_path == Path("a/b/c/1/c-1-all.tar.gz")
    with pytest.raises(ConnectError, match=r"line 1: .*extension"):
        parse_lock(f"a:b:1@ {SHA}")
