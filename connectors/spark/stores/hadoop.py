"""HDFS, through the Hadoop of Spark's own Java: the name node renames files to their names only if the name is free.

The name node decides each of these in one step and has logged it before it answers: a rename that fails if the target
exists, a file that is closed, a deletion. So the ledger's table of crash points applies unchanged. A manifest that a
kill cuts short is a hidden file beside its final name, and is left there.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

from connect.errors import ConnectError, RetriableError
from connect.kits.objects.location import Location
from connect.kits.objects.ranges import open_ranges
from connectors.spark.errors import root_cause
from connectors.spark.stores.store import Store, Upload

__all__ = ["HadoopStore", "Java"]

_PASSING: Final = (
    "ConnectException",
    "SocketException",
    "SocketTimeoutException",
    "ConnectTimeoutException",
    "NoRouteToHostException",
    "StandbyException",
    "RetriableException",
    "SafeModeException",
    "EOFException",
)


class Java:
    """Spark's Java: its classes through ``jvm``, and its Hadoop configuration."""

    def __init__(self, jvm: Any, configuration: Any) -> None:
        self.jvm = jvm
        self.configuration = configuration


class HadoopStore(Store):
    """A folder of HDFS; a :class:`~connectors.spark.stores.store.Store`.

    The data nodes hold what executors wrote, in as many copies as ``dfs.replication`` says. They write it through to
    their disks if ``dfs.datanode.synconclose`` is set.
    """

    def __init__(self, java: Callable[[], Java], location: Location) -> None:
        self._start = java
        self._location = location
        self._java: Java | None = None
        self._files: Any = None
        self._context: Any = None

    @property
    def url(self) -> str:
        """The URI of the folder."""
        return self._location.uri

    def create(self, path: str, data: bytes) -> None:
        """Write a hidden file beside it, and rename that if the name is free."""
        folder, _, name = path.rpartition("/")
        beside = f"{folder}/.{name}.{uuid.uuid4().hex}"
        with self._hadoop(path):
            self._files.mkdirs(self._path(folder))
            stream = self._files.create(self._path(beside), False)
            try:
                stream.write(bytearray(data))
                stream.hsync()
            finally:
                stream.close()
        try:
            self._rename(beside, path)
        except BaseException:
            self.remove(beside)
            raise

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        with self._hadoop(path):
            stream = self._files.open(self._path(path))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def open(self, path: str) -> BinaryIO:
        """Open a file."""
        size = self.size(path)
        if size is None:
            raise FileNotFoundError(path)
        with self._hadoop(path):
            stream = self._files.open(self._path(path))

        def read(first: int, length: int) -> bytes:
            with self._hadoop(path):
                stream.seek(first)
                return bytes(stream.readNBytes(length))

        return open_ranges(size, read, stream.close)

    def names(self, path: str) -> list[str]:
        """List the names in a folder."""
        try:
            with self._hadoop(path):
                return sorted(status.getPath().getName() for status in self._files.listStatus(self._path(path)))
        except FileNotFoundError:
            return []

    def below(self, path: str) -> Iterator[tuple[str, int]]:
        """List the files below a folder."""
        try:
            with self._hadoop(path):
                found = [
                    (status.getPath().getName(), bool(status.isDirectory()), int(status.getLen()))
                    for status in self._files.listStatus(self._path(path))
                ]
        except FileNotFoundError:
            return
        for name, is_folder, size in sorted(found, key=lambda status: status[0] + "/" * status[1]):
            inside = f"{path}/{name}" if path else name
            if is_folder:
                yield from self.below(inside)
            else:
                yield inside, size

    def size(self, path: str) -> int | None:
        """Return the size of a file."""
        try:
            with self._hadoop(path):
                return int(self._files.getFileStatus(self._path(path)).getLen())
        except FileNotFoundError:
            return None

    def remove(self, path: str) -> None:
        """Delete a file."""
        with self._hadoop(path):
            self._files.delete(self._path(path), False)

    def remove_tree(self, path: str) -> None:
        """Delete a folder."""
        with self._hadoop(path):
            self._files.delete(self._path(path), True)

    # -- loads -----------------------------------------------------------------------------------------------

    def publish(self, staged: str, target: str, upload: Upload | None = None) -> None:  # noqa: ARG002
        """Rename a file, unless that is done already."""
        with self._hadoop(target):
            self._files.mkdirs(self._path(target.rpartition("/")[0]))
        try:
            self._rename(staged, target)
        except FileNotFoundError:
            if self.size(target) is None:
                raise
        except FileExistsError:
            if self.size(staged) is not None:
                raise

    # -- Hadoop ----------------------------------------------------------------------------------------------

    def _rename(self, source: str, target: str) -> None:
        with self._hadoop(target):
            java = self._connected()
            options = java.jvm.java.lang.reflect.Array.newInstance(
                java.jvm.java.lang.Class.forName("org.apache.hadoop.fs.Options$Rename"), 0
            )
            self._context.rename(self._path(source), self._path(target), options)

    def _path(self, path: str) -> Any:
        return self._connected().jvm.org.apache.hadoop.fs.Path(self.uri(path).rstrip("/"))

    def _connected(self) -> Java:
        java = self._start()
        # After a restart, Spark has another Java process.
        if self._java is None or self._java.jvm is not java.jvm:
            place = java.jvm.java.net.URI(self._location.uri)
            self._files = java.jvm.org.apache.hadoop.fs.FileSystem.get(place, java.configuration)
            self._context = java.jvm.org.apache.hadoop.fs.FileContext.getFileContext(place, java.configuration)
            self._java = java
        return self._java

    @contextmanager
    def _hadoop(self, path: str) -> Iterator[None]:
        """Translate Hadoop's exceptions."""
        # The import takes half a second, and only tasks need it.
        from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # noqa: PLC0415
        from pyspark.errors import PySparkException  # noqa: PLC0415

        try:
            self._connected()
            yield
        except Py4JJavaError as error:
            raise self._meaning(error.java_exception, path) from error
        except PySparkException as error:
            # What PySpark turns some Java exceptions into.
            raise self._unusable(path, root_cause(error)) from error
        except (Py4JNetworkError, Py4JError, ConnectionError) as error:
            raise ConnectError(
                "Spark's Java process ended: it was killed, or ran out of memory (spark.driver.memory). "
                "Nothing is lost; restart the task to continue."
            ) from error

    def _meaning(self, exception: Any, path: str) -> Exception:
        name = exception.getClass().getSimpleName()
        if name == "RemoteException":
            name = exception.getClassName().rpartition(".")[2]
        if name == "FileNotFoundException":
            return FileNotFoundError(path)
        if name == "FileAlreadyExistsException":
            return FileExistsError(path)
        text = str(exception.getMessage()).partition("\n")[0]
        if name in _PASSING:
            return RetriableError(f"{self.url} cannot be reached ({name}: {text}).")
        if name == "AccessControlException":
            return ConnectError(f"{self.url} refuses the connector: {text}. Give its user the right to write there.")
        return self._unusable(path, f"{name}: {text}")

    def _unusable(self, path: str, why: str) -> ConnectError:
        return ConnectError(f"{path} in {self.url} cannot be used ({why}). Check store.url and hadoop.conf.dir.")
