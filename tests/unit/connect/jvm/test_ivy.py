from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

from connect.jvm.ivy import ivy_module, ivy_settings
from connect.jvm.lock import Jar
from connect.jvm.repository import Repository


def test_the_module_depends_on_each_jar_alone() -> None:
    jars = [Jar("org.a", "a", "1", None, ""), Jar("org.b", "b&c", "2", "linux", "")]
    root = ET.fromstring(ivy_module(jars))
    dependencies = root.findall("dependencies/dependency")
    assert [d.attrib["org"] + ":" + d.attrib["name"] + ":" + d.attrib["rev"] for d in dependencies] == [
        "org.a:a:1",
        "org.b:b&c:2",
    ]
    assert {d.attrib["transitive"] for d in dependencies} == {"false"}
    classifiers = [d[0].get("{http://ant.apache.org/ivy/maven}classifier") for d in dependencies]
    assert classifiers == [None, "linux"]


def test_the_settings_name_the_repository_and_read_no_poms() -> None:
    root = ET.fromstring(ivy_settings(Repository("https://mine.example/a?b=1&c=2", "test", Path())))
    resolver = root.find("resolvers/ibiblio")
    assert resolver is not None
    assert resolver.attrib["root"] == "https://mine.example/a?b=1&c=2"
    assert resolver.attrib["usepoms"] == "false"
