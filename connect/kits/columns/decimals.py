"""Decimals of messages as Arrow keeps them: whole numbers of up to 16 bytes, the highest byte first."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from connect.kits.columns.cursors import Messages, Vector

__all__ = ["MOST_DECIMAL_BYTES", "decimals"]

_SHORT: Final = 8
MOST_DECIMAL_BYTES: Final = 16
"""The size of a decimal that is read here."""
_EXACT_DIGITS: Final = 18
"""Every decimal of as many digits fits 64 bits."""


def decimals(messages: Messages, starts: Vector, ends: Vector, data_type: Any) -> tuple[Vector, Vector]:
    """Return the numbers between positions, and which of them are none or may have more digits than the type."""
    sizes = ends - starts
    bad = (sizes == 0) | (sizes > MOST_DECIMAL_BYTES)
    words = messages.words(">u8")
    low = words[ends - _SHORT].astype(np.uint64).view(np.int64)
    # The word also holds what stands before the number.
    surplus = 8 * np.clip(_SHORT - sizes, 0, 7)
    low = (low << surplus) >> surplus
    high = low >> 63
    longer = np.flatnonzero(sizes > _SHORT)
    if len(longer):
        beyond = words[ends[longer] - MOST_DECIMAL_BYTES].astype(np.uint64).view(np.int64)
        surplus = 8 * np.clip(MOST_DECIMAL_BYTES - sizes[longer], 0, 7)
        high[longer] = (beyond << surplus) >> surplus
    values = np.stack((low, high), axis=1)
    bad |= _exceeds(low, high, data_type.precision)
    values[bad] = 0
    if data_type.bit_width == 2 * 8 * MOST_DECIMAL_BYTES:
        sign = values[:, 1:] >> 63
        values = np.concatenate((values, sign, sign), axis=1)
    return values, bad


def _exceeds(low: Vector, high: Vector, precision: int) -> Vector:
    """Return which numbers have more digits than the type, or may have."""
    short = (low >> 63) == high
    if precision <= _EXACT_DIGITS:
        most = 10**precision - 1
        exceeds: Vector = ~short | (low > most) | (low < -most)
        return exceeds
    if precision > 38:
        return np.zeros(len(low), np.bool_)
    # A number of 64 bits has at most 19 digits; longer ones are looked at one by one.
    exceeds = np.zeros(len(low), np.bool_)
    for place in np.flatnonzero(~short).tolist():
        number = (int(high[place]) << 64) | (int(low[place]) & 0xFFFF_FFFF_FFFF_FFFF)
        exceeds[place] = abs(number) >= 10**precision
    return exceeds
