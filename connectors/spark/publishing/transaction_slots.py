"""The slots for a connector's transactions: claimed by the driver, used by executors."""

from __future__ import annotations

from dataclasses import replace

from connect.bulk_source import BulkTransactions, Claim, TransactionOrders

__all__ = ["Slots"]


class Slots:
    """Claims slots before offsets are read, and gives executors the orders for them. Used by one thread."""

    def __init__(self, transactions: BulkTransactions) -> None:
        self._transactions = transactions
        self._claim: Claim | None = None
        """The claim under which executors publish; ``None`` if earlier transactions have to be ended first."""
        self.count = 0
        """The number of claimed slots."""

    def claim(self, count: int) -> None:
        """Claim this many slots, ending any transactions begun with them earlier; does nothing if they are claimed
        already.
        """
        if self._claim is None:
            self._claim = self._transactions.claim(count)
            self.count = count

    @property
    def are_claimed(self) -> bool:
        """Whether executors may publish."""
        return self._claim is not None

    def release(self) -> None:
        """Have the slots claimed again before the next load: an executor may still be working with one."""
        self._claim = None

    def orders(self, slot: int) -> TransactionOrders:
        """The orders for publishing with a slot; slots are numbered from 1."""
        assert self._claim is not None, "slots are claimed before offsets are read"
        return self._transactions.orders(self._claim, slot)

    def checked(self, offset: int) -> None:
        """Let later executors start their search for newer claims where this one ended."""
        if self._claim is not None and offset > self._claim.offset:
            self._claim = replace(self._claim, offset=offset)
