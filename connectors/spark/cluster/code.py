"""The code that executors on a cluster need: a zip of Sluice's packages and the plugin folders, sent by the driver.

Spark unpacks it in the working folder of each executor, where Python finds it before anything installed. So the code is
always the driver's; the packages that it needs, such as pyarrow, are not sent.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import connect
from connect.errors import ConfigError, os_reason
from connect.internals.jvm.home import file_lock
from connect.internals.plugins import built_in_file

__all__ = ["SHIPPED_VARIABLE", "is_local", "plugin_folders", "shipped_folders", "shipping_settings"]

SHIPPED_VARIABLE: Final = "SLUICE_SHIPPED"
"""The environment variable that tells an executor the folder of the code it received."""

_NAME: Final = "sluice-code"
_PACKAGES: Final = ("connect", "converters", "connectors")
_LEFT_OUT: Final = frozenset({"__pycache__", ".git", ".venv"})
_MOST_BYTES: Final = 256 * 1024 * 1024
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def is_local(master: str) -> bool:
    """Return whether Spark's executors are in the driver's process."""
    return master == "local" or master.startswith("local[")


def plugin_folders(props: Mapping[str, str]) -> list[str]:
    """Return the folders of ``plugin.path``."""
    return [item.strip() for item in props.get("plugin.path", "").split(",") if item.strip()]


def shipped_folders(folders: Sequence[str], environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the folders of ``plugin.path`` in this process; in an executor that received code, the folders in that
    code.
    """
    shipped = environ.get(SHIPPED_VARIABLE)
    return [str(Path(shipped, _place(folder))) for folder in folders] if shipped else list(folders)


def shipping_settings(props: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the settings with which Spark sends the code to executors on a cluster; none for a local master.

    The zip is created once for the same code, and kept in ``home``.
    """
    if is_local(props.get("spark.master", "local[*]")):
        return {}
    archive = _archive(plugin_folders(props), home / "spark" / "code")
    paths = [_NAME, props.get("spark.executorEnv.PYTHONPATH", "")]
    archives = [props.get("spark.archives", ""), f"{archive}#{_NAME}"]
    return {
        "spark.archives": ",".join(filter(None, archives)),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, paths)),
        f"spark.executorEnv.{SHIPPED_VARIABLE}": _NAME,
    }


def _archive(folders: Sequence[str], place: Path) -> Path:
    """Return the zip of the current code."""
    files = list(_files(folders))
    digest = hashlib.sha256()
    for name, path in files:
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    archive = place / f"sluice-{digest.hexdigest()[:16]}.zip"
    with file_lock(place / ".lock"):
        if not archive.is_file():
            partial = archive.with_suffix(".partial")
            _write(partial, files)
            partial.replace(archive)
    return archive


def _write(path: Path, files: Sequence[tuple[str, Path]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in files:
            # Without timestamps, the same code gives the same zip, whichever worker has created it.
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), source.read_bytes(), zipfile.ZIP_DEFLATED)


def _files(folders: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """Yield the files to send, each with its name in the zip."""
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        yield from _below(Path(spec.origin).parent, package)
    yield f"{connect.__name__}/{built_in_file().name}", built_in_file()
    for folder in folders:
        found = list(_below(Path(folder), _place(folder)))
        size = sum(path.stat().st_size for _, path in found)
        if size > _MOST_BYTES:
            raise ConfigError(
                "plugin.path",
                folder,
                f"The folder has {size >> 20} MB, but at most {_MOST_BYTES >> 20} MB can be sent to Spark's "
                "executors: name a folder that holds only the connector's plugins.",
            )
        yield from found


def _below(root: Path, name: str) -> Iterator[tuple[str, Path]]:
    try:
        paths = sorted(path for path in root.rglob("*") if path.is_file())
    except OSError as error:
        raise ConfigError("plugin.path", root, f"It cannot be read: {os_reason(error)}.") from error
    for path in paths:
        within = path.relative_to(root)
        listed_already = name == connect.__name__ and path.name == built_in_file().name
        if not listed_already and not _LEFT_OUT.intersection(within.parts):
            yield f"{name}/{within.as_posix()}", path


def _place(folder: str) -> str:
    """Return the folder in the zip that stands for one of ``plugin.path``."""
    return f"plugins/{hashlib.sha256(folder.encode()).hexdigest()[:16]}"
