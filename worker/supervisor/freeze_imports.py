"""Imported last by the fork server, never by anything else: what was imported before it is set apart for good."""

from connect.garbage import collect_seldom

__all__: list[str] = []

collect_seldom()
