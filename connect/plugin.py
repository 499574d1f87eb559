"""The base class of every kind of plugin, which binds a plugin to its typed config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin

from connect.config import Config

__all__ = ["Plugin"]

C = TypeVar("C", bound=Config)


class Plugin(Generic[C]):
    """A class that the runtime instantiates from a configuration: a connector, a task, a converter and so on.

    ``class Cast(Transformation[CastConfig])`` sets ``Cast.config_class`` and gives each instance a typed
    ``self.config``. A plugin without options omits the type argument.
    """

    config_class: ClassVar[type[Config]] = Config
    version: ClassVar[str] = "undefined"
    """The version that the REST API and the status show."""

    config: C

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for parent in getattr(cls, "__orig_bases__", ()):
            origin = get_origin(parent)
            if isinstance(origin, type) and issubclass(origin, Plugin):
                named = next((arg for arg in get_args(parent) if _is_config(arg)), None)
                if named is not None:
                    cls.config_class = named

    @classmethod
    def configured(cls, props: Mapping[str, str], **given: Any) -> Any:
        """Make an instance from the plugin's own keys; raise :class:`~connect.errors.ConfigError` if one is refused."""
        return cls(cls.config_class.parse(props), **given)  # type: ignore[call-arg]


def _is_config(argument: object) -> bool:
    return isinstance(argument, type) and issubclass(argument, Config)
