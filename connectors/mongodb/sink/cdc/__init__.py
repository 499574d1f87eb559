"""Handlers of change events: they read records as changes of another system, and apply these."""

from connectors.mongodb.sink.cdc.handlers import cdc_handler

__all__ = ["cdc_handler"]
