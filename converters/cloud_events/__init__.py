"""CloudEvents: the events of change data capture in the envelope of a public specification."""

from converters.cloud_events.config import CloudEventsConverterConfig
from converters.cloud_events.converter import CloudEventsConverter

__all__ = ["CloudEventsConverter", "CloudEventsConverterConfig"]
