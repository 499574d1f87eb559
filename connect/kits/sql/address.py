"""Where a database is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from connect.config import HIDDEN, Password

__all__ = ["Address"]


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is and how to log in. Its text shows no password."""

    driver: str
    """SQLAlchemy's name, such as ``postgresql+psycopg``."""
    hosts: tuple[tuple[str, int | None], ...] = ()
    database: str = ""
    user: str | None = None
    password: Password | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    written: Password = field(default_factory=lambda: Password(""))
    """The password as written in the URL, possibly percent-encoded."""

    @property
    def backend(self) -> str:
        """The kind of database: SQLAlchemy's name, such as ``postgresql``."""
        return self.driver.partition("+")[0]

    @property
    def is_file(self) -> bool:
        """Whether the database is a file."""
        return self.backend == "sqlite"

    def hide(self, text: str) -> str:
        """Return the text without the password, in either of its forms."""
        secrets = {secret.value for secret in (self.password, self.written) if secret is not None and secret.value}
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text

    def __str__(self) -> str:
        """Return the database for display: without user, password and options."""
        if self.is_file:
            return self.database
        hosts = ",".join(host if port is None else f"{host}:{port}" for host, port in self.hosts)
        return f"{self.backend}://{hosts}/{self.database}"
