"""The contract of all kinds of plugins: options are documented, validated by name, and keep secrets."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from connect.config import Config, ConfigType, format_value, parse_value
from connect.errors import ConfigError
from connect.plugin import Plugin

__all__ = ["PluginTests"]


class PluginTests:
    """Tests of a plugin's configuration. Inherit the tests for its kind, which include these."""

    @pytest.fixture
    def plugin_class(self) -> type[Plugin[Any]]:
        """The plugin class, set by the tests for its kind."""
        raise NotImplementedError("Inherit the tests for the plugin's kind, not PluginTests.")

    @pytest.fixture
    def props(self) -> Mapping[str, str]:
        """The plugin's own configuration; override it if the plugin has required options."""
        return {}

    @pytest.fixture
    def config_class(self, plugin_class: type[Plugin[Any]]) -> type[Config]:
        """The config class of the plugin."""
        return plugin_class.config_class

    def test_the_plugin_is_documented(self, plugin_class: type[Plugin[Any]]) -> None:
        """The plugin, its config class and every option are documented."""
        assert plugin_class.__doc__, f"{plugin_class.__name__} needs a docstring: it is shown to users."
        config_class = plugin_class.config_class
        assert inspect.getdoc(config_class), f"{config_class.__name__} needs a docstring."
        silent = [key.name for key in config_class.definitions() if not key.documentation.strip()]
        assert not silent, f"{config_class.__name__}: these options need a doc: {', '.join(silent)}"

    def test_the_configuration_is_accepted(self, config_class: type[Config], props: Mapping[str, str]) -> None:
        """``props`` is a valid configuration."""
        config_class.parse(props)
        assert [str(error) for value in config_class.validate(props) for error in value.errors] == []

    def test_required_keys_are_asked_for_by_name(self, config_class: type[Config], props: Mapping[str, str]) -> None:
        """A configuration without a required key is refused, and the error names the key."""
        for key in (key.name for key in config_class.definitions() if key.required):
            without = {name: value for name, value in props.items() if name != key}
            with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
                config_class.parse(without)
            shown_at = [value.name for value in config_class.validate(without) if value.errors]
            assert key in shown_at, f"The error about the missing {key} is shown at {shown_at}."

    def test_values_are_read_as_they_are_written(self, config_class: type[Config], props: Mapping[str, str]) -> None:
        """Every value survives conversion to text, the form in which configurations are stored."""
        config = config_class.parse(props)
        again = config_class.parse(dict(config.originals))
        assert again == config
        for key in config_class.definitions():
            if key.type is not ConfigType.PASSWORD and not key.required:
                assert parse_value(key.name, format_value(key.default), key.type) == key.default, key.name

    def test_secrets_are_hidden(self, config_class: type[Config], props: Mapping[str, str]) -> None:
        """Printing a config does not reveal its passwords."""
        secrets = {key.name for key in config_class.definitions() if key.type is ConfigType.PASSWORD} & props.keys()
        printed = repr(config_class.parse(props))
        assert not [key for key in secrets if props[key] and props[key] in printed]
