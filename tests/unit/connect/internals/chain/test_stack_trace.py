"""Stack traces are those that Python writes."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable

import pytest

from connect.errors import DataError
from connect.internals.chain.stack_trace import error_text, stack_trace


def plain() -> None:
    raise DataError("bad")


def silent() -> None:
    raise KeyError


def caused() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        raise DataError("not JSON") from error


def in_context() -> None:
    try:
        caused()
    except DataError:
        raise RuntimeError("and then") from RuntimeError("unraised")


def meanwhile() -> None:
    try:
        caused()
    except DataError:
        plain()


def without_context() -> None:
    try:
        plain()
    except DataError:
        raise ValueError("alone") from None


def noted() -> None:
    error = DataError("bad")
    error.add_note("see there")
    raise error


@pytest.mark.parametrize("fail", [plain, silent, caused, in_context, meanwhile, without_context, noted])
def test_it_is_what_python_writes(fail: Callable[[], None]) -> None:
    for _ in range(2):
        with pytest.raises(Exception) as raised:
            fail()
        assert stack_trace(raised.value) == "".join(traceback.format_exception(raised.value))


def test_errors_of_one_place_keep_their_own_texts() -> None:
    texts: list[str] = []
    for text in ("[1", "{"):
        with pytest.raises(ValueError, match=r".") as raised:
            json.loads(text)
        texts.append(stack_trace(raised.value).splitlines()[-1])
    assert texts[0] != texts[1]


class MuteError(Exception):
    """An error that cannot tell its message, as Spark's without its Java process."""

    def __init__(self, told: str | None) -> None:
        super().__init__()
        self._desc = told

    def __str__(self) -> str:
        raise AssertionError


@pytest.mark.parametrize(
    ("told", "shown"),
    [("[UNRESOLVED_COLUMN] nope", "[UNRESOLVED_COLUMN] nope"), (None, "(its message cannot be read: AssertionError)")],
)
def test_the_trace_of_an_error_without_a_readable_message_is_built_all_the_same(told: str | None, shown: str) -> None:
    assert error_text(MuteError(told)) == shown
    try:
        raise ValueError("outer") from MuteError(told)
    except ValueError as error:
        trace = stack_trace(error)
    assert f"{__name__}.MuteError: {shown}\n" in trace
    assert trace.endswith("ValueError: outer\n")
