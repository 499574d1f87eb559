"""The archive from which JVMs of one kind start: which one belongs to a JVM, and how it is made."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from connect.internals.jvm.class_archive import ClassArchive, class_archive, class_names, has_room
from connect.internals.jvm.java import Java
from equipment.waiting import wait_until

HIERARCHY = """\
1234:
java.lang.Object/null
|--java.util.List/null (intf)
|--org.apache.kafka.connect.runtime.Worker/0x00007f85240793b0
|  |--org.apache.kafka.connect.runtime.Worker$ConnectorStatusMetricsGroup/0x00007f85240793b0
|--org.apache.kafka.common.protocol.Errors$$Lambda$333/0x00007faa312d3c50/0x00007f85240793b0
|--jdk.proxy2.$Proxy12/0x00007f85240793b0
|--jdk.internal.reflect.GeneratedMethodAccessor7/0x00007f852407a000
"""
DUMPS = """\
#!/bin/sh
for each; do case $each in
-XX:SharedArchiveFile=*) echo "$@" > "${each#*=}" ;;
-XX:SharedClassListFile=*) cp "${each#*=}" "$0.classes" ;;
esac; done
"""
ENDLESS = '#!/bin/sh\necho $$ > "$0.new"; mv "$0.new" "$0.pid"; exec sleep 600\n'
ENDS = """\
import sys, threading, time
from pathlib import Path
from connect.internals.jvm.class_archive import class_archive
from connect.internals.jvm.java import Java
folder = Path(sys.argv[1])
made = class_archive(Path(sys.argv[2]), Java(folder / "java", 17, folder, bundled=False), [], [])
threading.Thread(target=made.make, args=(["java/lang/Object"],), daemon=True).start()
while not (folder / "java.pid").exists():
    time.sleep(0.01)
"""
FAILS = "#!/bin/sh\necho 'no CDS here' >&2; exit 1\n"


def archive(folder: Path, options: Sequence[str] = (), *, script: str = DUMPS) -> ClassArchive:
    """The archive for a ``java`` that is this script, and a jar."""
    java, jar = folder / "java", folder / "connect.jar"
    if not java.exists():
        java.write_text(script)
        java.chmod(0o755)
        jar.write_bytes(b"jar")
    return class_archive(folder / "home", Java(java, 17, folder, bundled=False), [jar], options)


def test_classes_are_those_that_come_from_jars() -> None:
    worker = "org/apache/kafka/connect/runtime/Worker"
    assert class_names(HIERARCHY) == [
        "java/lang/Object",
        "java/util/List",
        worker,
        f"{worker}$ConnectorStatusMetricsGroup",
    ]


def test_an_archive_is_used_once_it_is_made(tmp_path: Path) -> None:
    made = archive(tmp_path, ["-Xmx2G"])
    assert (made.is_made, made.flags) == (False, ())
    made.make(["java/lang/Object", "acme/Orders"])
    assert made.is_made
    assert made.flags[0] == f"-XX:SharedArchiveFile={made.path}"
    said = made.path.read_text()
    assert "-Xmx2G " in said
    assert " -Xshare:dump " in said
    assert said.rstrip().endswith(f"-cp {tmp_path / 'connect.jar'}")
    assert (tmp_path / "java.classes").read_text() == "java/lang/Object\nacme/Orders\n"


def test_an_archive_is_made_once(tmp_path: Path) -> None:
    made = archive(tmp_path)
    made.make(["java/lang/Object"])
    (tmp_path / "java").write_text(FAILS)
    made.make(["java/lang/Object"])
    assert made.is_made


def test_each_kind_of_jvm_has_its_own(tmp_path: Path) -> None:
    first = archive(tmp_path).path
    assert archive(tmp_path).path == first
    assert archive(tmp_path, ["-XX:+UseZGC"]).path != first
    os.utime(tmp_path / "connect.jar", (1, 1))
    assert archive(tmp_path).path != first, "a JVM refuses an archive of a jar that was written anew"


@pytest.mark.parametrize("option", ["-agentlib:jdwp=server=y", "-javaagent:agent.jar", "-Xlog:gc", "-Dport=9999"])
def test_options_that_do_something_else_are_not_those_of_the_archive(option: str, tmp_path: Path) -> None:
    assert archive(tmp_path, ["-Xmx1G", option]) == archive(tmp_path, ["-Xmx1G"])


def test_a_java_that_makes_none_is_told_of_and_leaves_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    failing = archive(tmp_path, script=FAILS)
    with caplog.at_level(logging.INFO):
        failing.make(["java/lang/Object"])
    assert not failing.is_made
    assert "no CDS here" in caplog.text
    assert [each.suffix for each in failing.path.parent.iterdir()] == [".lock"]


def test_what_makes_it_does_not_outlive_its_process(tmp_path: Path) -> None:
    place = archive(tmp_path, script=ENDLESS).path.parent.parent
    subprocess.run([sys.executable, "-c", ENDS, str(tmp_path), str(place)], check=True, timeout=60)
    pid = int((tmp_path / "java.pid").read_text())
    wait_until("it has ended", lambda: not Path(f"/proc/{pid}").exists(), seconds=30)


def test_where_nothing_can_be_written_none_is_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "home").write_text("no folder")
    with caplog.at_level(logging.INFO):
        archive(tmp_path).make(["java/lang/Object"])
    assert "without an archive" in caplog.text


def test_what_killed_processes_have_left_is_removed(tmp_path: Path) -> None:
    made = archive(tmp_path)
    archives = made.path.parent
    own, others, at_work = (archives / f".{name}-1" for name in (made.path.stem, "runtime-0", "runtime-1"))
    for left in (own, others, at_work):
        left.mkdir(parents=True)
        (left / "classes").touch()
    os.utime(others, (1, 1))
    made.make(["java/lang/Object"])
    assert made.is_made
    assert [left.exists() for left in (own, others, at_work)] == [False, False, True]


def test_archives_of_former_jars_are_removed(tmp_path: Path) -> None:
    made = [archive(tmp_path, [f"-Xmx{size}G"]) for size in range(1, 7)]
    for age, each in enumerate(reversed(made)):
        each.make(["java/lang/Object"])
        os.utime(each.path, (100 + age, 100 + age))
    made[0].path.unlink()
    made[0].make(["java/lang/Object"])
    assert [each.is_made for each in made] == [True, True, True, True, False, False]


@pytest.mark.parametrize(
    ("limit", "used", "fits"),
    [("max", 10**12, True), (str(10**9), 3 * 10**8, True), (str(10**9), 7 * 10**8, False), ("odd", 0, True)],
)
def test_none_is_made_where_its_process_does_not_fit(limit: str, used: int, *, fits: bool, tmp_path: Path) -> None:
    assert has_room(tmp_path), "a machine without such files has no limit"
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text(f"{used}\n")
    assert has_room(tmp_path) is fits
