"""Options with rules: for one value, and for several together."""

from collections.abc import Iterable

from connect.config import HIGH, LOW, Config, ConfigRuleError, Password, at_least, invalid_value, option, validator
from connect.errors import ConfigError


@validator("absolute path")
def absolute_path(key: str, value: str) -> None:
    if not value.startswith("/"):
        raise invalid_value(key, value, "Path must be absolute")


class UploadConfig(Config):
    """Where to upload to, and as whom."""

    folder: str = option(importance=HIGH, validator=absolute_path, doc="Folder of the target.")
    user: str | None = option(default=None, importance=HIGH, doc="User to log in as; nobody when absent.")
    password: Password | None = option(default=None, importance=HIGH, doc="Password of the user.")
    batch_size: int = option(default=100, importance=LOW, validator=at_least(1), doc="Most files per upload.")

    def check(self) -> Iterable[ConfigError]:
        if (self.user is None) != (self.password is None):
            yield ConfigRuleError("Set user and password together, or neither.", "user", "password")
