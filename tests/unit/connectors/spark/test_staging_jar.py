"""The jar that comes with the store in S3 is what its source says."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pyspark
import pytest

from connectors.spark.stores import s3

HERE = Path(s3.__file__).parent
CLASS = "sluice/StagingCommitter.class"


def test_the_jar_is_compiled_from_the_source_beside_it(tmp_path: Path) -> None:
    javac = shutil.which("javac")
    if javac is None or not subprocess.check_output([javac, "-version"]).decode().startswith("javac 17."):
        pytest.skip("no javac of Java 17 here, with which the jar was made")
    hadoop = next(Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar"))
    options = ["--release", "17", "-g:none", "-nowarn", "-cp", str(hadoop), "-d", str(tmp_path)]
    subprocess.run([javac, *options, str(HERE / "StagingCommitter.java")], check=True, capture_output=True)
    with zipfile.ZipFile(HERE / "staging.jar") as jar:
        assert jar.namelist() == [CLASS]
        assert jar.read(CLASS) == (tmp_path / CLASS).read_bytes()
