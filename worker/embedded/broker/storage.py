"""Formatting the data folder of an embedded broker, as ``kafka-storage format`` does but without a JVM.

``bootstrap.checkpoint`` holds the feature levels (``metadata.version``, ``group.version``, ...) that a new
cluster of the pinned Kafka release starts with. It is the same for every cluster of one release: the bytes
that Kafka's own tool wrote are shipped with this module, and change together with ``broker.jars``.
"""

from __future__ import annotations

import base64
import shutil
import uuid
from pathlib import Path

__all__ = ["NODE_ID", "format_storage"]

NODE_ID = 1

_CHECKPOINT = Path(__file__).with_name("bootstrap.checkpoint")


def format_storage(data: Path) -> None:
    """Make ``data`` the folder of a new cluster, unless it is the folder of one already."""
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
    # Written last and renamed: its presence says that the folder is whole.
    partial = meta.with_name(meta.name + ".partial")
    partial.write_text("\n".join(lines) + "\n", encoding="ascii")
    partial.replace(meta)


def _kafka_uuid() -> str:
    """A random UUID as Kafka writes it; no leading dash, which its command line tools take for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")
        if not text.startswith("-"):
            return text
