"""Opening a store costs a light process nothing."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
from connect.kits.objects.location import parse_location
from connect.kits.objects.options import ObjectOptions
from connect.kits.objects.store import open_store
for url in ("/lake", "s3://lake", "gs://lake", "abfss://lake@account.dfs.core.windows.net"):
    open_store(parse_location(url), ObjectOptions.parse({}))
print(*sorted({"boto3", "botocore", "google", "azure", "requests", "pyarrow", "numpy"} & set(sys.modules)))
"""


def test_a_library_is_imported_when_it_is_first_used() -> None:
    found = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True, timeout=60)
    assert found.stdout == "\n"
