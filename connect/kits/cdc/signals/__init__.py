"""Signals: what users tell a running connector, and the channels by which they do."""
