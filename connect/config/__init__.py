"""Configuration as typed classes: parsing, validation, REST definitions and reference are readings of one."""

from connect.config.config import Config
from connect.config.description import (
    ConfigInfo,
    ConfigKeyInfo,
    ConfigValueInfo,
    config_info,
    key_info,
    value_info,
)
from connect.config.errors import ConfigRuleError, InvalidConfigError, invalid_value
from connect.config.formatting import format_value
from connect.config.key import ConfigKey, embed
from connect.config.option import HIGH, LOW, MEDIUM, Importance, Recommender, Visibility, Width, option
from connect.config.parsing import parse_value
from connect.config.password import HIDDEN, Password
from connect.config.properties import PropertiesError, parse_properties, read_properties
from connect.config.provider import ConfigData, ConfigProvider
from connect.config.reference import to_markdown
from connect.config.references import ResolvedConfig, has_reference, resolve_references, restore_references
from connect.config.types import ConfigType, Long, ParsedValue, PluginName, Short
from connect.config.validation import ConfigValue, validate_keys
from connect.config.validators import (
    Validator,
    all_of,
    at_least,
    at_most,
    between,
    connector_name,
    known_class,
    list_size,
    list_values,
    matches,
    non_empty,
    non_empty_list,
    one_of,
    regex,
    regex_list,
    unique_aliases,
    unique_list,
    url_list,
    validator,
)

__all__ = [
    "HIDDEN",
    "HIGH",
    "LOW",
    "MEDIUM",
    "Config",
    "ConfigData",
    "ConfigInfo",
    "ConfigKey",
    "ConfigKeyInfo",
    "ConfigProvider",
    "ConfigRuleError",
    "ConfigType",
    "ConfigValue",
    "ConfigValueInfo",
    "Importance",
    "InvalidConfigError",
    "Long",
    "ParsedValue",
    "Password",
    "PluginName",
    "PropertiesError",
    "Recommender",
    "ResolvedConfig",
    "Short",
    "Validator",
    "Visibility",
    "Width",
    "all_of",
    "at_least",
    "at_most",
    "between",
    "config_info",
    "connector_name",
    "embed",
    "format_value",
    "has_reference",
    "invalid_value",
    "key_info",
    "known_class",
    "list_size",
    "list_values",
    "matches",
    "non_empty",
    "non_empty_list",
    "one_of",
    "option",
    "parse_properties",
    "parse_value",
    "read_properties",
    "regex",
    "regex_list",
    "resolve_references",
    "restore_references",
    "to_markdown",
    "unique_aliases",
    "unique_list",
    "url_list",
    "validate_keys",
    "validator",
    "value_info",
]
