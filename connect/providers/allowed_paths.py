"""Which files a config provider may read."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from connect.config import MEDIUM, Config, Long, invalid_value, option, validator
from connect.errors import ConnectError
from connect.providers.options import ttl_ms

__all__ = ["AllowedPaths", "PathProviderConfig"]

_SYSTEM: Final = (Path("/proc"), Path("/sys"))


@validator("list of absolute paths that exist")
def _existing_paths(key: str, value: Collection[str]) -> None:
    for item in value:
        if not Path(item).is_absolute():
            raise invalid_value(key, item, f"Path {item} is not absolute; begin it with /")
        if not Path(item).exists():
            raise invalid_value(key, item, f"Path {item} does not exist; create or remove it")


class PathProviderConfig(Config):
    """The parameters of the providers that read files, set as ``config.providers.<name>.param.*``."""

    allowed_paths: tuple[str, ...] = option(
        default=(),
        importance=MEDIUM,
        validator=_existing_paths,
        doc="Files and folders the provider may read, and all that is in these folders; where symbolic links lead "
        "counts. Set it: without it, who may write a connector's configuration can read by it what the worker's user "
        "can read, but for the files that the worker itself needs, /proc and /sys.",
    )
    ttl_ms: Long | None = ttl_ms()


class AllowedPaths:
    """Finds the real place of paths that a configuration names, and refuses those that are not allowed.

    Where nothing says what is allowed, that is all but ``refused``, and what the system tells of processes and devices.
    """

    def __init__(self, allowed: Collection[str], refused: Collection[Path] = ()) -> None:
        self._allowed = tuple(Path(path) for path in allowed)
        self._refused = tuple(refused)

    def resolve(self, path: str | Path) -> Path:
        """The path free of ``..`` and symbolic links; a :class:`~connect.errors.ConnectError` if it is not allowed."""
        try:
            real = Path(path).resolve()
            # Resolved each time: a mounted secret is replaced by pointing a link to another folder.
            allowed = any(real.is_relative_to(place.resolve()) for place in self._allowed)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConnectError(f"The path {str(path)!r} cannot be followed: {error}. Correct the reference.") from error
        if not self._allowed:
            self._refuse(path, real)
        elif not allowed:
            raise ConnectError(
                f"The path {path} is not allowed to be accessed: it, or where its links lead, is outside of "
                "allowed.paths. Name a file in there, or add the path to the provider's param.allowed.paths."
            )
        return real

    def _refuse(self, path: str | Path, real: Path) -> None:
        if any(real.is_relative_to(place) for place in _SYSTEM):
            whose = "belongs to the system"
        elif any(_is_same(real, own) for own in self._refused):
            whose = "belongs to the worker itself"
        else:
            return
        raise ConnectError(
            f"The path {path} is not allowed to be accessed: it, or where its links lead, {whose}. Name another file, "
            "and have the provider's param.allowed.paths set to the folders that are meant for connectors."
        )


def _is_same(real: Path, own: Path) -> bool:
    """Whether two paths are of one file, by whatever links; it need not be there yet."""
    try:
        return real == own.resolve() or real.samefile(own)
    except (OSError, RuntimeError, ValueError):
        return False
