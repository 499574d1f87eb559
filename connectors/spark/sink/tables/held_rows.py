"""The rows and state of open windows, for tables whose own log holds the offsets: files in the store.

A table's log has room for a number beside the offsets, but not for the names of folders. So the state of a load's
windows is a file with that number, which counts once the load's commit names it::

    _sluice/<connector>/windows/<driver>-<random>/...parquet    the held rows
    _sluice/<connector>/windows/<driver><count>.json            a state: by the loader's table names, what is open, the
                                                                folders, and the schema of the rows

==========================  ========================================================================================
killed                      then
==========================  ========================================================================================
before the commit           the table names the previous state: its folders exist, those of the load are removed
after it                    the table names the new state; what only the previous one named is removed
==========================  ========================================================================================
"""

from __future__ import annotations

import itertools
import json
import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from connect.data import Schema
from connect.errors import ConnectError, SchemaError
from connect.kits.schema_json import schema_from_json, schema_to_json
from connectors.spark.sink.ledger.ledger import folder_name
from connectors.spark.sink.sql.windows import OpenWindows, WindowPolicy, WindowState
from connectors.spark.stores.store import Store

__all__ = ["NO_STATE", "HeldRows", "HeldTable", "TopicWindows"]

NO_STATE: Final = 0
"""The number that means that a load has left nothing open."""

_DRIVER_BITS: Final = 36
_COUNT_BITS: Final = 24
_DRIVER: Final = "{:09x}"
_STATE: Final = "{:015x}.json"


@dataclass(frozen=True, slots=True)
class HeldTable:
    """The open windows of a table, and the schema of the rows they hold."""

    windows: OpenWindows
    records: Schema


class HeldRows:
    """The rows that one driver of a connector holds in a store, and their states by number."""

    def __init__(self, files: Store, connector: str) -> None:
        self._files = files
        self._place = f"_sluice/{folder_name(connector)}/windows"
        driver = 1 + secrets.randbelow(2**_DRIVER_BITS - 1)
        self._driver = _DRIVER.format(driver)
        self._numbers = itertools.count(driver << _COUNT_BITS)
        self._inherited: set[str] = set()

    def uri(self, folder: str) -> str:
        """Return the URI of a folder, as Spark needs it."""
        return self._files.uri(folder)

    def new_folder(self) -> str:
        """Return the path of a new folder for rows, never used before."""
        return f"{self._place}/{self._driver}-{uuid.uuid4().hex}"

    def read(self, number: int, table: str) -> dict[str, HeldTable]:
        """Return the state to which ``table`` refers by its number."""
        if number == NO_STATE:
            return {}
        name = _STATE.format(number)
        try:
            document: Mapping[str, Any] = json.loads(self._files.read(f"{self._place}/{name}"))
            state = {each: _held(held) for each, held in document.items()}
        except FileNotFoundError:
            raise ConnectError(
                f"Table {table} refers to rows held by windows in {self._place}/{name} of the store, which is "
                "missing: the table was set back to an older version, or the folder was removed. Restore "
                "either, or load the topic into another table under another connector name."
            ) from None
        except (ValueError, TypeError, KeyError, AttributeError, SchemaError) as error:
            raise ConnectError(
                f"The window state {self._place}/{name} of the store cannot be read ({error!r}); it was "
                "changed from outside. Restore it: it records which rows are held."
            ) from error
        self._inherited |= {name, *_folders(state)}
        return state

    def save(self, before: Mapping[str, HeldTable], after: Mapping[str, HeldTable]) -> int:
        """Make a state and its rows durable, and return its number for the commit. ``before`` is durable already."""
        if not after:
            return NO_STATE
        for folder in _folders(after) - _folders(before):
            path = f"{self._place}/{folder}"
            self._files.sync_files(f"{path}/{file}" for file in self._files.files(path))
        number = next(self._numbers)
        document = {table: _document(held) for table, held in sorted(after.items())}
        self._files.create(f"{self._place}/{_STATE.format(number)}", json.dumps(document, indent=1).encode() + b"\n")
        return number

    def tidy(self, named: Iterable[int]) -> None:
        """Remove what this driver has written or read and no table refers to any more."""
        kept = self._kept(named)
        for name in self._files.names(self._place):
            if name not in kept and (name.startswith(self._driver) or name in self._inherited):
                self._remove(name)

    def clear(self, named: Iterable[int], check: Callable[[], None]) -> None:
        """Remove what earlier drivers have left and no table refers to.

        ``check`` raises if another driver has taken over; whatever was found before it passes does not belong to that
        driver.
        """
        found = self._files.names(self._place)
        kept = self._kept(named)
        check()
        for name in found:
            if name not in kept:
                self._remove(name)

    def _kept(self, named: Iterable[int]) -> set[str]:
        numbers = set(named) - {NO_STATE}
        states = [self.read(number, "of the connector") for number in numbers]
        return {_STATE.format(number) for number in numbers}.union(*map(_folders, states))

    def _remove(self, name: str) -> None:
        path = f"{self._place}/{name}"
        if name.endswith(".json"):
            self._files.remove(path)
        else:
            self._files.remove_tree(path)


class TopicWindows:
    """The windows of one topic, during a load into tables that refer to their states by number.

    ``before`` are each table's states, by the loader's table names; ``table_of`` maps such a name to its table. After
    the load, ``numbers`` are those of the states that its commits have to refer to.
    """

    def __init__(
        self,
        rows: HeldRows,
        before: Mapping[str, Mapping[str, HeldTable]],
        table_of: Callable[[str], str],
        is_done: Callable[[str], bool],
    ) -> None:
        self._rows = rows
        self._before = before
        self._states = dict(before)
        self._table_of = table_of
        self._is_done = is_done
        self.numbers: dict[str, int] = {}

    @property
    def records(self) -> dict[str, Schema]:
        """The schemas of the held rows, by the loader's names."""
        return {name: held.records for state in self._before.values() for name, held in state.items()}

    def state(self, policy: WindowPolicy | None) -> WindowState:
        """Return what the loader needs to know."""
        before = {name: held.windows for state in self._before.values() for name, held in state.items()}
        return WindowState(policy, before, self._rows.new_folder, self._rows.uri, self._keep, self._is_done)

    def _keep(self, name: str, windows: OpenWindows, records: Schema) -> None:
        table = self._table_of(name)
        others = {other: held for other, held in self._states.get(table, {}).items() if other != name}
        mine = {} if windows == OpenWindows() else {name: HeldTable(windows, records)}
        self._states[table] = others | mine
        self.numbers[table] = self._rows.save(self._before.get(table, {}), self._states[table])


def _folders(state: Mapping[str, HeldTable]) -> set[str]:
    """Return the names of the folders with rows."""
    return {folder.rpartition("/")[2] for held in state.values() for folder in held.windows.folders}


def _document(held: HeldTable) -> dict[str, Any]:
    return {**held.windows.to_json(), "records": schema_to_json(held.records)}


def _held(document: Mapping[str, Any]) -> HeldTable:
    return HeldTable(OpenWindows.from_json(document), schema_from_json(document["records"]))
