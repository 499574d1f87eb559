"""PySpark's data source ``sluice``: any connector, chosen by its ``connector.class``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    SimpleDataSourceStreamReader,
)

from connectors.spark.datasource.deployment import Deployment
from connectors.spark.datasource.reader import SourceReader, first_shape
from connectors.spark.datasource.rows import RowShape
from connectors.spark.datasource.stream import SourceStream
from connectors.spark.datasource.writer import SinkStreamWriter, SinkWriter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["SluiceDataSource"]


class SluiceDataSource(DataSource):
    """Reads any source connector and writes any sink connector: ``spark.read.format("sluice")``.

    Spark creates one in each of its planning processes, from the options of the query.
    """

    _seen: RowShape | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "sluice"

    def schema(self) -> StructType:
        """Return the columns of the first records; not called if the user declares the columns."""
        self._seen = first_shape(self.options)
        return self._seen.spark_schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader for the current records."""
        return SourceReader(self.options, self._shape(schema))

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream, which resumes from its checkpoint."""
        return SourceStream(self.options, self._shape(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer for a DataFrame; it can only append."""
        return SinkWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - as above
        """Return the writer for each micro-batch; it can only append."""
        return SinkStreamWriter(self.options, schema, overwrite=overwrite)

    def _shape(self, schema: StructType) -> RowShape:
        # Spark pickles this object after calling schema(), and uses the copy from then on.
        return self._seen or RowShape.declared(schema, Deployment.of_source(self.options).config)
