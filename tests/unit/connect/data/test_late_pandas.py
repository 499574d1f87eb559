"""Arrow and pandas: a process that has no use for pandas does not import it, and nothing else changes."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest


@pytest.mark.parametrize(
    "code",
    [
        """
        from connect.kits.files.formats.arrow_files import ParquetFormat
        schema = Schema.struct({"a": Schema.int64(), "b": Schema.array(Schema.string(optional=True))})
        for given in (schema, None):
            writer = ParquetFormat().writer(len, given, "")
            writer.write(ValueColumn([{"a": 1, "b": ["x", None]}], given))
            writer.close()
        to_values(to_array([1, None], Schema.int64(optional=True)), Schema.int64(optional=True))
        assert "pandas" not in sys.modules
        """,
        """
        import pandas
        assert pa.array(pandas.Series([1.0, float("nan")])).null_count == 1
        assert pa.types.is_dictionary(pa.array(pandas.Categorical(["a", "b"])).type)
        assert pandas.__spec__.loader is pandas.__loader__
        assert type(pandas.__loader__).__name__ == "SourceFileLoader"
        """,
        """
        from importlib.util import find_spec
        assert find_spec("pandas") is not None
        assert pa.table({"a": [1]}).to_pandas()["a"].sum() == 1
        assert pa.array(sys.modules["pandas"].Series([1.0, float("nan")])).null_count == 1
        """,
        """
        assert pa.scalar(1, pa.timestamp("s")).as_py().year == 1970
        assert "pandas" not in sys.modules
        assert pa.RecordBatch.from_pandas(__import__("pandas").DataFrame({"a": [None, 1.5]})).num_rows == 2
        """,
    ],
    ids=["arrow alone", "pandas later", "pandas by arrow", "frames"],
)
def test_pandas_is_imported_by_those_who_need_it(code: str) -> None:
    head = """
        import sys
        import pyarrow as pa
        from connect.data import Schema, ValueColumn
        from connect.data.arrow import to_array, to_values
        """
    done = subprocess.run(
        [sys.executable, "-c", dedent(head) + dedent(code)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
