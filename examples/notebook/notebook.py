"""A notebook in cells: a REST API to a DataFrame, and a DataFrame into a database, with neither worker nor broker.

Open it in an editor that knows ``# %%`` cells, paste it into a ``pyspark`` shell, or run it:
``python examples/notebook/notebook.py``. It needs no network: the API is in ``api.py``.
"""

# %% The session. A notebook or a shell has one already.
from __future__ import annotations

import sqlite3
import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parent))
from api import serving

spark = globals().get("spark") or SparkSession.builder.master("local[2]").getOrCreate()
cleanup = ExitStack()
url = cleanup.enter_context(serving())
folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory()))

# %% A REST API to a DataFrame. The connector turns the pages, and finds the columns in the first answer.
orders = (
    spark.read.format("sluice")
    .option("connector.class", "HttpSource").option("kafka.topic", "orders")
    .option("http.request.url", url).option("http.response.list.pointer", "/orders")
    .option("http.paging", "page").option("http.paging.size", "2").option("http.request.params", "page=${page.number}")
    .load()
)  # fmt: skip
orders = orders.cache()
orders.printSchema()
orders.orderBy("id").show()

# %% Spark does with it what it does with any DataFrame.
by_region = orders.groupBy("region").count().orderBy("region")
totals = [tuple(row) for row in by_region.collect()]
print(totals)

# %% A DataFrame into a database. Any sink takes it: HttpSink, a plugin of your own, ...
(
    by_region.write.format("sluice")
    .option("connector.class", "JdbcSink").option("topics", "totals")
    .option("connection.url", f"jdbc:sqlite:{folder / 'shop.db'}").option("auto.create", "true")
    .option("insert.mode", "upsert").option("pk.mode", "record_value").option("pk.fields", "region")
    .mode("append").save()
)  # fmt: skip
with closing(sqlite3.connect(folder / "shop.db")) as database:
    kept = database.execute("SELECT region, count FROM totals ORDER BY region").fetchall()
print(kept)

# %% The end.
cleanup.close()
