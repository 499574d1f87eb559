"""The folder of an embedded broker: its state and its data.

The data folder is formatted like ``kafka-storage format`` does, but without a JVM. ``bootstrap.checkpoint`` holds the
feature levels (``metadata.version``, ``group.version``, ...) that a new cluster of the pinned Kafka release starts
with. They are the same for every cluster of a release: the bytes written by Kafka's own tool are shipped with this
module, and change together with ``broker.jars``.
"""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from worker.embedded.broker.settings import NODE_ID, Ports
from worker.embedded.folder import ServerFolder

__all__ = ["BrokerFolder", "BrokerState", "broker_folder", "format_storage"]

_CHECKPOINT = Path(__file__).with_name("bootstrap.checkpoint")


@dataclass(frozen=True, slots=True)
class BrokerState:
    """The state, written by the last process that started or stopped the broker."""

    pid: int
    ports: Ports
    version: str
    explicit: bool = False
    """Whether it was started explicitly, so that the end of the last lease does not stop it."""
    properties: dict[str, str] = field(default_factory=dict)
    archive: str = ""
    """The class data archive to keep when the broker has left ``partial_archive``."""
    partial_archive: str = ""

    def as_explicit(self) -> BrokerState:
        """Return the state of the same broker, started explicitly."""
        return replace(self, explicit=True)

    def as_stopped(self) -> BrokerState:
        """Return the state to keep after the broker has stopped: its address and settings."""
        return replace(self, explicit=False, archive="", partial_archive="")


BrokerFolder: TypeAlias = ServerFolder[BrokerState]


def broker_folder(path: Path) -> BrokerFolder:
    """Return the folder of the broker at ``path``."""
    return ServerFolder(path, "broker", _parse)


def format_storage(data: Path) -> None:
    """Format ``data`` as the folder of a new cluster, unless it is one already."""
    meta = data / "meta.properties"
    if meta.is_file():
        return
    data.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_CHECKPOINT, data / _CHECKPOINT.name)
    lines = (
        "version=1",
        f"node.id={NODE_ID}",
        f"cluster.id={_kafka_uuid()}",
        f"directory.id={_kafka_uuid()}",
    )
    # Written last and renamed, so its presence means that the folder is complete.
    partial = meta.with_name(meta.name + ".partial")
    partial.write_text("\n".join(lines) + "\n", encoding="ascii")
    partial.replace(meta)


def _parse(fields: Mapping[str, Any]) -> BrokerState:
    return BrokerState(**{**fields, "ports": Ports(**fields["ports"])})


def _kafka_uuid() -> str:
    """Return a random UUID in Kafka's form. A leading dash is avoided: Kafka's tools would take it for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
        if not text.startswith("-"):
            return text
