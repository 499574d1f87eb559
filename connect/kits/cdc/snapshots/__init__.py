"""Snapshots: what the modes mean, the progress in the offset, and readers in parallel."""
