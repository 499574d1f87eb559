"""A wrapper for secrets that keeps them out of logs."""

from __future__ import annotations

__all__ = ["HIDDEN", "Password"]

HIDDEN = "[hidden]"


class Password:
    """Wraps a secret. Printed, formatted or logged it is ``[hidden]``; only ``.value`` returns it.

    It is immutable, and can be compared, hashed and sent to another process.
    """

    __slots__ = ("value",)

    value: str

    def __init__(self, value: str) -> None:
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("A Password cannot be changed; make a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("A Password cannot be changed; make a new one")

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return HIDDEN

    def __format__(self, format_spec: str) -> str:
        return format(HIDDEN, format_spec)

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, Password) else NotImplemented

    def __hash__(self) -> int:
        return hash((Password, self.value))

    def __reduce__(self) -> tuple[type[Password], tuple[str]]:
        return Password, (self.value,)
