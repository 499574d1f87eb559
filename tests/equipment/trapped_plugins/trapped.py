"""Connectors that run into a trap at one of their calls: a file whose text says what happens then."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import time
from pathlib import Path

from connect.config import HIGH, LOW, Config, Password, option
from connect.data import Schema, SinkBatch, SourceRecord
from connect.sink import SinkConnector, SinkTask
from connect.source import SourceConnector, SourceTask

_LOOK_SECONDS = 0.02
_WORK_SECONDS = 0.05
_FOR_EVER = 3600


class TrapConfig(Config):
    """The file of the trap, and the call that runs into it."""

    trap: str = option(importance=HIGH, doc="File; while it is there the call of trap.in does what its text says.")
    trap_in: str = option(importance=HIGH, doc="The call: connector, start, poll, put or commit.")
    secret: Password | None = option(default=None, importance=LOW, doc="What a print tells.")

    def go(self, call: str) -> None:
        """Run into the trap if this is its call and the file exists."""
        file = Path(self.trap)
        if call != self.trap_in or not file.exists():
            return
        what = file.read_text()
        if what == "hang":
            while file.exists():
                time.sleep(_LOOK_SECONDS)
            return
        if what == "work":
            until = time.thread_time() + _WORK_SECONDS
            while time.thread_time() < until:
                pass
            return
        if what == "hold for a while":
            # Unlike a subprocess, this lets no other thread run Python.
            ctypes.PyDLL(None).system(f"while [ -e {shlex.quote(self.trap)} ]; do sleep {_LOOK_SECONDS}; done".encode())
            return
        file.unlink()
        match what:
            case "hang once":
                time.sleep(_FOR_EVER)
            case "hold":
                # Unlike time.sleep, this lets no other thread run Python.
                ctypes.PyDLL(None).sleep(_FOR_EVER)
            case "crash":
                ctypes.string_at(0)
            case "print":
                print("printed by Python:", self.secret and self.secret.value)
                libc = ctypes.CDLL(None)
                libc.puts(b"printed by C")
                libc.fflush(None)
                subprocess.run(["echo", "printed by a program"], check=True)


class CountConfig(TrapConfig):
    """The topic to which a source counts."""

    topic: str = option(importance=HIGH, doc="Topic to publish the numbers to.")


class TrappedSourceTask(SourceTask[CountConfig]):
    """Publishes the numbers from 1 on, and continues where it stopped."""

    def start(self) -> None:
        self.config.go("start")
        last = self.context.offset_storage_reader.offset({"of": "numbers"})
        self.number = last["number"] if last else 0

    def poll(self) -> list[SourceRecord]:
        self.config.go("poll")
        if not self.context.wait(0.01):
            return []
        self.number += 1
        record = SourceRecord(self.config.topic, str(self.number), Schema.string())
        return [record.replace(source_partition={"of": "numbers"}, source_offset={"number": self.number})]

    def commit(self) -> None:
        self.config.go("commit")


class TrappedSourceConnector(SourceConnector[CountConfig]):
    """A source that counts."""

    task_class = TrappedSourceTask

    def start(self) -> None:
        self.config.go("connector")


class WriteConfig(TrapConfig):
    """The file to which a sink writes."""

    file: str = option(importance=HIGH, doc="File to append the values to.")


class TrappedSinkTask(SinkTask[WriteConfig]):
    """Appends values to a file."""

    def put(self, records: SinkBatch) -> None:
        if records:
            self.config.go("put")
        with Path(self.config.file).open("a") as file:
            file.writelines(f"{record.value}\n" for record in records)
            file.flush()
            os.fsync(file.fileno())


class TrappedSinkConnector(SinkConnector[WriteConfig]):
    """A sink that writes."""

    task_class = TrappedSinkTask
