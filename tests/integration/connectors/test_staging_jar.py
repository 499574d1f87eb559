"""The jars that come with Sluice are what the sources beside them say."""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pyspark
import pytest

from connect.errors import ConnectError
from connect.internals.jvm.home import sluice_home
from connect.internals.jvm.jars import read_lock, resolve_jars
from connectors import spark

pytestmark = pytest.mark.integration

HERE = Path(spark.__file__).parent


def delta() -> list[Path]:
    try:
        return list(resolve_jars(read_lock(HERE / "delta/delta.jars"), home=sluice_home()))
    except ConnectError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no Delta here: {error}")


@pytest.mark.parametrize(
    ("source", "jar"),
    [("stores/StagingCommitter.java", "stores/staging.jar"), ("delta/ConditionalLogStore.java", "delta/log_store.jar")],
)
def test_a_jar_is_compiled_from_the_source_beside_it(source: str, jar: str, tmp_path: Path) -> None:
    javac = shutil.which("javac")
    if javac is None or not subprocess.check_output([javac, "-version"]).decode().startswith("javac 17."):
        pytest.skip("no javac of Java 17 here, with which the jar was made")
    jars = [next(Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar"))]
    jars += delta() if source.startswith("delta") else []
    options = ["--release", "17", "-g:none", "-nowarn", "-cp", os.pathsep.join(map(str, jars)), "-d", str(tmp_path)]
    subprocess.run([javac, *options, str(HERE / source)], check=True, capture_output=True)
    name = f"sluice/{Path(source).stem}.class"
    with zipfile.ZipFile(HERE / jar) as packed:
        assert packed.namelist() == [name]
        assert packed.read(name) == (tmp_path / name).read_bytes()
