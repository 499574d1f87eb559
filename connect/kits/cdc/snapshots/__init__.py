"""Snapshots of whole tables: pieces that are read in parallel, and the progress that offsets carry."""
