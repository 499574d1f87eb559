"""How requests change the configuration of a connector: functions of what is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from connect.plugins import PluginEntry
from worker.errors import BadRequestError, InvalidConnectorError
from worker.stores.config import TargetState

__all__ = ["GivenConfig", "check_infos", "check_same_class", "initial_target", "merged", "named", "required_class"]

GivenConfig: TypeAlias = Mapping[str, str | None]
"""A configuration as a user gives it: null is a mistake, or removes a key where a configuration is patched."""

_NAME: Final = "name"
_CLASS: Final = "connector.class"
_INITIAL_STATES: Final = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


def named(name: str, config: GivenConfig) -> dict[str, str | None]:
    """The configuration with its connector's name, which it may say already but not otherwise; null says nothing."""
    said = config.get(_NAME)
    if said is not None and said != name:
        raise BadRequestError(f"Connector name configuration ({said}) doesn't match connector name in the URL ({name})")
    return {**config, _NAME: name}


def initial_target(initial_state: object) -> TargetState | None:
    """How a connector is to begin that is created with this ``initial_state`` (KIP-980), if it has one."""
    if initial_state is None:
        return None
    target = _INITIAL_STATES.get(initial_state.upper()) if isinstance(initial_state, str) else None
    if target is None:
        raise BadRequestError(f"initial_state {initial_state!r} is none of {', '.join(_INITIAL_STATES)}.")
    return target


def merged(config: Mapping[str, str], patch: GivenConfig) -> dict[str, str | None]:
    """The configuration after a JSON merge patch (KIP-477): null removes a key."""
    changed = {**config, **patch}
    return {key: value for key, value in changed.items() if value is not None}


def required_class(config: GivenConfig) -> str:
    """The class that a configuration names; its values are not repeated where it names none (invariant I8)."""
    named_class = config.get(_CLASS)
    if not named_class or not named_class.strip():
        keys = ", ".join(sorted(config))
        raise BadRequestError(
            f"Connector config {{{keys}}} contains no connector type. Name one in {_CLASS}; GET /connector-plugins "
            "lists them."
        )
    return named_class


def check_same_class(in_config: str, in_path: str, entries: tuple[PluginEntry | None, PluginEntry | None]) -> None:
    """Refuse a configuration that is to be validated as another class than it names.

    ``entries`` are what the two names stand for, if they stand for a plugin.
    """
    ours, asked = entries
    same = ours.class_name == asked.class_name if ours and asked else in_config == in_path
    if not same and (asked is not None or ours is not None):
        raise BadRequestError(f"Included connector type {in_config} does not match request type {in_path}")


def check_infos(infos: Mapping[str, Any]) -> None:
    """Refuse a configuration in which a validation found mistakes."""
    errors = [text for config in infos["configs"] for text in config["value"]["errors"]]
    if errors:
        listed = "\n".join(errors)
        raise InvalidConnectorError(
            f"Connector configuration is invalid and contains the following {len(errors)} error(s):\n{listed}\n"
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`",
            infos,
        )
