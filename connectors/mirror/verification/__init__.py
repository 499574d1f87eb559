"""Verifies what a flow has brought to the target, by comparing records and by counting those that are left."""
