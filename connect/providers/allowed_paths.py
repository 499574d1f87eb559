"""Which files a config provider may read."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from connect.config import MEDIUM, Config, Long, invalid_value, option, validator
from connect.errors import ConnectError
from connect.providers.options import ttl_ms

__all__ = ["AllowedPaths", "PathProviderConfig"]


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
        "counts. Anything the worker's user can read when it is not set: set it, so that who may write a connector's "
        "configuration cannot read other files by it.",
    )
    ttl_ms: Long | None = ttl_ms()


class AllowedPaths:
    """Finds the real place of paths that a configuration names, and refuses those that are not allowed."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = tuple(Path(path) for path in allowed)

    def resolve(self, path: str | Path) -> Path:
        """The path free of ``..`` and symbolic links; a :class:`~connect.errors.ConnectError` if it is not allowed."""
        try:
            real = Path(path).resolve()
            # Resolved each time: a mounted secret is replaced by pointing a link to another folder.
            allowed = not self._allowed or any(real.is_relative_to(place.resolve()) for place in self._allowed)
        except (OSError, RuntimeError, ValueError) as error:
            raise ConnectError(f"The path {str(path)!r} cannot be followed: {error}. Correct the reference.") from error
        if not allowed:
            raise ConnectError(
                f"The path {path} is not allowed to be accessed: it, or where its links lead, is outside of "
                "allowed.paths. Name a file in there, or add the path to the provider's param.allowed.paths."
            )
        return real
