"""Freezes everything imported so far, when the fork server imports this module last; nothing else imports it."""

from connect.garbage_collection import collect_seldom

__all__: list[str] = []

collect_seldom()
