"""The reader of one schema, which uses orjson where floats are exact enough and an exact parser elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from connect.data import Schema
from connect.errors import DataError
from converters.json.columns import Change, column_decoder, has_long_numbers
from converters.json.decode import Decode, decoder
from converters.json.errors import DoubtError, InexactError
from converters.json.nesting import SURE_BYTES, check_depth, check_depths
from converters.json.text import is_brief

if TYPE_CHECKING:
    import pyarrow as pa

    from converters.json.arrow import ArrowReader

__all__ = ["Reader"]


class Reader:
    """Reads payloads of one schema.

    orjson parses numbers with a fraction as floats, which may lose digits. That is good enough until such a number
    appears where digits matter, as in a decimal. From then on each text is checked: if its numbers are short, their
    floats determine them; otherwise the payload is parsed exactly.
    """

    __slots__ = (
        "_arrow_reader",
        "_decode",
        "_decode_brief",
        "_decode_brief_column",
        "_decode_column",
        "_replace_null",
        "schema",
    )

    def __init__(self, schema: Schema | None, replace_null: bool) -> None:
        self.schema = schema
        self._replace_null = replace_null
        self._arrow_reader: ArrowReader | None = None
        self._decode: Decode = decoder(schema, replace_null=replace_null)
        self._decode_column: Change = column_decoder(schema, replace_null=replace_null)
        self._decode_brief: Decode | None = None
        self._decode_brief_column: Change | None = None

    def read(self, payload: bytes) -> Any:
        """Return the value of valid JSON text.

        ``InexactError`` or orjson's error mean that the text must be parsed exactly; a
        :class:`~connect.errors.DataError` is final.
        """
        node = orjson.loads(payload)
        if len(payload) > SURE_BYTES:
            check_depth(payload)
        if self.schema is None:
            return self._decode(node) if has_long_numbers(payload) else node
        if self._decode_brief is not None and is_brief(payload):
            return self._decode_brief(node)
        try:
            return self._decode(node)
        except InexactError:
            if self._decode_brief is not None or not is_brief(payload):
                raise
        self._decode_brief = decoder(self.schema, replace_null=self._replace_null, brief=True)
        return self._decode_brief(orjson.loads(payload))

    def decode(self, node: Any) -> Any:
        """Return the value of exactly parsed JSON.

        Raises :class:`~connect.errors.DataError` if it does not match the schema.
        """
        return self._decode(node)

    def read_column(self, payloads: Sequence[bytes]) -> Sequence[Any]:
        """Return the values of many JSON texts. Raises ``DoubtError`` if they have to be read one by one."""
        nodes = _parsed(payloads)
        if self.schema is None:
            return self._decode_column(nodes) if has_long_numbers(b"\n".join(payloads)) else nodes
        if self._decode_brief_column is not None and is_brief(b"\n".join(payloads)):
            return self._decode_brief_column(nodes)
        try:
            return self._decode_column(nodes)
        except DoubtError:
            if self._decode_brief_column is not None or not is_brief(b"\n".join(payloads)):
                raise
        self._decode_brief_column = column_decoder(self.schema, replace_null=self._replace_null, brief=True)
        return self._decode_brief_column(_parsed(payloads))

    def read_arrow(self, payloads: Sequence[bytes]) -> pa.Array[Any]:
        """Return the values of many JSON texts in Arrow. Raises ``DoubtError`` if they have to be read one by one."""
        if self._arrow_reader is None:
            from converters.json.arrow import ArrowReader  # noqa: PLC0415 - pyarrow is optional

            if self.schema is None or not ArrowReader.can_read(self.schema):
                raise DoubtError
            decoder_of = partial(decoder, replace_null=self._replace_null, nested=True)
            self._arrow_reader = ArrowReader(self.schema, decoder_of, replace_null=self._replace_null)
        return self._arrow_reader.read(payloads)


def _parsed(payloads: Sequence[bytes]) -> list[Any]:
    try:
        nodes = list(map(orjson.loads, payloads))
        check_depths(payloads)
    except (orjson.JSONDecodeError, DataError) as error:
        raise DoubtError from error
    return nodes
