"""Files that are being made visible by another thread, and what may go wrong with them."""

from __future__ import annotations

import errno
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from connect.data import SinkBatch
from connect.errors import ConnectError, RetriableError
from connect.kits.files.rotation import Rows

__all__ = ["EARLY_PART_BYTES", "BusyError", "Publication", "from_offset", "store_error", "window"]

EARLY_PART_BYTES: Final = 5 << 20
"""The least size of a part of an upload to S3 that is not the last one."""
_PERMANENT: Final = frozenset({errno.EROFS, errno.ENAMETOOLONG, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class BusyError(RetriableError):
    """The same records have to be put again a little later; none has to be read again."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"The store takes its time: files of {topic} are still being written.", retry_after=0.05)


@dataclass(frozen=True, slots=True)
class Publication:
    """A span whose files are being made visible: how many bytes they hold until it is done."""

    held: int
    done: Future[None]

    def is_over(self, seconds: float) -> bool:
        """Whether the files are visible, after a wait for so long; raises what went wrong."""
        if not seconds and not self.done.done():
            return False
        try:
            self.done.result(seconds)
        except TimeoutError:
            if not self.done.done():
                return False
            raise
        return True

    def end(self) -> None:
        """Have it end, whatever becomes of it."""
        if not self.done.cancel():
            self.done.exception()


def store_error(error: OSError) -> ConnectError:
    """Return what an error of a folder means."""
    if isinstance(error, PermissionError) or error.errno in _PERMANENT:
        return ConnectError(
            f"The folder cannot be written: {error}. It has to be on a file system with hard links, and the user of "
            "the worker needs the right to write there."
        )
    return RetriableError(f"The files cannot be written now: {error}")


def from_offset(batch: SinkBatch, offset: int) -> SinkBatch:
    """Return the records from an offset on."""
    offsets = batch.original_offsets
    if not len(offsets) or offsets[0] >= offset:
        return batch
    first = next((at for at, found in enumerate(offsets) if found >= offset), len(offsets))
    return batch.slice(first, len(batch))


def window(rows: Rows, stop: int) -> Rows:
    """Return the first rows."""
    return Rows(rows.offsets[:stop], rows.strands[:stop], rows.places[:stop], rows.times[:stop])
