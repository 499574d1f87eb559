"""Handlers of change events: they read records as changes of another system, and apply these."""

from connectors.mongodb.sink.cdc.handlers import CdcHandler, cdc_handler

__all__ = ["CdcHandler", "cdc_handler"]
