"""The configuration of a connector, a task, a converter or the worker as a typed class."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, dataclass_transform

from connect.config.errors import InvalidConfigError, keys_of, without_secrets
from connect.config.option import Attribute, ConfigKey, RefusedOptionError, declared_attributes, option
from connect.config.password import HIDDEN
from connect.config.types import ConfigType, original_text
from connect.config.validation import ConfigValue, Reading, describe_readings, read_keys
from connect.errors import ConfigError, NotFoundError

__all__ = ["Config"]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
class Config:
    """The base class of configurations. Declare options as annotated attributes of a subclass::

        class FileSourceConfig(Config):
            topic: str = option(importance=HIGH, validator=non_empty, doc="Topic to publish to.")
            batch_size: int = option(default=2000, importance=LOW, doc="Most records per poll.")

        config = FileSourceConfig.parse({"topic": "lines", "batch.size": "10"})
        config.batch_size  # 10

    The annotation is the type: ``str``, ``int``, ``Long``, ``Short``, ``float``, ``bool``, ``Password``,
    ``PluginName``, ``tuple[str, ...]`` for a list, a ``Literal`` of strings or a ``StrEnum`` for fixed values, or one
    of them with ``| None``. Subclasses inherit options and may redeclare them. A config is immutable, and equal to
    another of its class if all options are equal. ``class B(A, key_prefix="b.")`` has the options of ``A`` under keys
    that begin with ``b.``.
    """

    _attributes: ClassVar[tuple[Attribute, ...]] = ()
    _key_prefix: ClassVar[str] = ""
    always_checks_system: ClassVar[bool] = False
    """Whether :meth:`check_system` is part of every validation, and not only of one that asks for it."""
    old_keys: ClassVar[Mapping[str, str]] = {}
    """Old names of keys, with today's names. The value of an old one counts while the new one is absent or empty."""
    passed_keys: ClassVar[tuple[str, ...] | None] = None
    """Beginnings of keys that have an effect without being declared; ``()`` if none have. Then the log and validations
    tell of each key that nobody declares. ``None`` if that is not known."""
    choices: ClassVar[Mapping[str, str]] = {}
    """The keys whose values :meth:`choices_of` finds in the connector's system, each with what they are: ``tables``."""
    _originals: dict[str, str | None]
    _secret_keys: frozenset[str]

    def __init_subclass__(cls, key_prefix: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if key_prefix is not None:
            cls._key_prefix = key_prefix
        cls._attributes = declared_attributes(cls, cls._key_prefix)

    def __init__(self, **values: Any) -> None:
        """Make a config from typed values by attribute name; raise ``ConfigError`` if one is refused."""
        keys = {attribute.name: attribute.key.name for attribute in self._attributes}
        if unknown := values.keys() - keys:
            raise TypeError(f"{type(self).__name__} has no option {min(unknown)!r}; it has {', '.join(keys)}")
        self._fill({keys[name]: value for name, value in values.items()}, ())

    @classmethod
    def parse(cls, props: Mapping[str, object], *, secret_keys: Collection[str] = ()) -> Self:
        """Parse ``props`` to a config. Undeclared keys are only kept in ``originals``.

        A single mistake raises a ``ConfigError``, several raise an ``InvalidConfigError`` that lists them. The values
        of ``secret_keys``, which come from config providers, are hidden in errors and the repr.
        """
        config = cls.__new__(cls)
        config._fill(props, secret_keys)
        return config

    @classmethod
    def parse_valid(cls, props: Mapping[str, object]) -> Self:
        """Parse what is valid of an unfinished configuration; reading another option raises ``RefusedOptionError``."""
        config = cls.__new__(cls)
        config._load(props, ())
        return config

    @classmethod
    def validate(cls, props: Mapping[str, object], *, secret_keys: Collection[str] = ()) -> tuple[ConfigValue, ...]:
        """Validate ``props`` and return the result for every key. Mistakes are part of the results and not raised."""
        config = cls.__new__(cls)
        readings = config._load(props, secret_keys)
        described = {value.name: value for value in describe_readings(readings, secret_keys)}
        _show(config._broken_rules(), described)
        if cls.always_checks_system and not any(value.errors for value in described.values()):
            _show(config.check_system(), described)
        return tuple(described.values())

    @classmethod
    def definitions(cls) -> tuple[ConfigKey, ...]:
        """Return the definition of every key, in declared order."""
        return tuple(attribute.key for attribute in cls._attributes)

    @classmethod
    def unknown_keys(cls, props: Mapping[str, object]) -> tuple[str, ...]:
        """Return the keys of ``props`` that are not declared."""
        known = {attribute.key.name for attribute in cls._attributes}
        return tuple(key for key in props if key not in known)

    def check(self) -> Iterable[ConfigError]:
        """Yield an error for every broken rule that involves several options. Override it in classes with such rules.

        Called by ``parse`` and ``validate``. Every attribute that it can read has a valid value: reading an attribute
        whose own value was refused ends the check and keeps the errors yielded before. Use ``ConfigRuleError`` to name
        the keys at which an error is shown, and ``yield from super().check()`` if the base class has rules too.
        """
        return ()

    def check_system(self) -> Iterable[ConfigError]:
        """Connect to the system that the options name, and yield an error for everything that would fail later.

        Override it in the config of a connector, and name the keys at which an error is shown by ``ConfigRuleError``.
        Every option has a valid value by then. Change nothing in the system, and do not wait for it for longer than
        some seconds: after a minute it is given up. Called by ``sluice validate --connect``, ``sluice doctor``
        and *Test connection* on the web page, and by each validation if :attr:`always_checks_system`.
        """
        return ()

    def can_check_system(self) -> bool:
        """Return whether :meth:`check_system` asks the system of these options; by default if it is overridden."""
        return type(self).check_system is not Config.check_system

    def choices_of(self, key: str) -> Iterable[str]:
        """Connect to the system that the options name, and return what it has that this key of ``choices`` can name.

        Users pick from it on the web page while they fill in a form, so other options may be missing or wrong: reading
        one ends the inquiry with a request to correct it. Raise :class:`~connect.errors.ConnectError` if the system
        does not answer. Change nothing there; after half a minute the answer is no longer waited for.
        """
        raise NotFoundError(f"{type(self).__name__} has no choices for {key}.")

    def warnings(self) -> Iterable[str]:
        """Yield warnings about a valid configuration, one sentence each. Override it if there are any.

        They are logged when the connector starts, and shown when the configuration is validated.
        """
        return ()

    @property
    def originals(self) -> Mapping[str, str | None]:
        """The properties as given, including unknown keys. Secrets are in plain text: do not log them."""
        return MappingProxyType(self._originals)

    def originals_with_prefix(self, prefix: str) -> dict[str, str | None]:
        """Return the original properties whose keys start with ``prefix``, without the prefix."""
        return {
            key.removeprefix(prefix): value
            for key, value in self._originals.items()
            if key.startswith(prefix) and key != prefix
        }

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: make another one instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} cannot be changed: {name} stays")

    def __eq__(self, other: object) -> bool:
        return self._options() == other._options() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), *self._options().values()))

    def __repr__(self) -> str:
        secret_names = {item.name for item in self._attributes if item.key.name in self._secret_keys}
        shown = ", ".join(
            f"{name}={HIDDEN if name in secret_names else repr(value)}" for name, value in self._options().items()
        )
        return f"{type(self).__name__}({shown})"

    def _fill(self, props: Mapping[str, object], secret_keys: Collection[str]) -> None:
        readings = self._load(props, secret_keys)
        errors = [reading.errors[0] for reading in readings.values() if reading.errors]
        errors.extend(self._broken_rules())
        if len(errors) > 1:
            raise InvalidConfigError(errors)
        if errors:
            raise errors[0]

    def _load(self, props: Mapping[str, object], secret_keys: Collection[str]) -> dict[str, Reading]:
        readings = read_keys(self.definitions(), self._with_new_names(props), secret_keys=secret_keys)
        self.__dict__["_originals"] = {key: original_text(value) for key, value in props.items()}
        self.__dict__["_secret_keys"] = frozenset(secret_keys)
        for attribute in self._attributes:
            reading = readings[attribute.key.name]
            if not reading.errors:
                self.__dict__[attribute.name] = attribute.load(reading.value)
        return readings

    def _with_new_names(self, props: Mapping[str, object]) -> Mapping[str, object]:
        old = {new: props[name] for name, new in self.old_keys.items() if name in props and not props.get(new)}
        return {**props, **old} if old else props

    def _options(self) -> dict[str, Any]:
        return {item.name: self.__dict__[item.name] for item in self._attributes if item.name in self.__dict__}

    def _broken_rules(self) -> list[ConfigError]:
        errors: list[ConfigError] = []
        try:
            # Element by element: what was yielded before the check ends is kept.
            errors.extend(self.check())
        except InvalidConfigError as several:
            errors.extend(several.errors)
        except ConfigError as error:
            errors.append(error)
        except RefusedOptionError:
            pass
        return [without_secrets(error, self._secrets()) for error in errors]

    def _secrets(self) -> set[str]:
        passwords = {item.key.name for item in self._attributes if item.key.type is ConfigType.PASSWORD}
        return {text for key in passwords | self._secret_keys if (text := (self._originals.get(key) or "").strip())}


def _show(errors: Iterable[ConfigError], described: dict[str, ConfigValue]) -> None:
    """Add each error to the values of the keys at which it is shown."""
    for error in errors:
        for key in keys_of(error):
            described[key] = described.get(key, ConfigValue(key)).with_errors(str(error))
