"""Messages between a server and a task."""

from __future__ import annotations

import threading

from connect.data import TopicPartition
from connect.kits.deliveries import Inbox, Unconfirmed, Unsettled


def test_an_inbox_holds_up_the_thread_that_fills_it() -> None:
    arrivals: list[int] = []
    inbox: Inbox[int] = Inbox(2, 100, 60.0, lambda: arrivals.append(1))
    inbox.put(0, 10)
    inbox.put(1, 10)
    filling = threading.Thread(target=lambda: inbox.put(2, 10))
    filling.start()
    assert (inbox.items, inbox.bytes) == (2, 20)
    assert inbox.take(1) == [0]
    filling.join(60)
    assert inbox.take(5) == [1, 2]
    assert inbox.take(5) == []
    inbox.put(3, 10)
    # It was told of the first message, and of the first one after it had found nothing.
    assert arrivals == [1, 1]


def test_an_inbox_that_nobody_empties_grows_slowly_and_is_closed() -> None:
    inbox: Inbox[int] = Inbox(1, 100, 0.01, lambda: None)
    inbox.put(0, 10)
    inbox.put(1, 10)
    assert inbox.items == 2
    inbox.close()
    inbox.put(2, 10)
    assert (inbox.items, inbox.bytes) == (0, 0)


def test_what_is_settled_is_acknowledged_in_order() -> None:
    unsettled: Unsettled[int] = Unsettled()
    for number in range(5):
        unsettled.add(number)
    for number in (1, 2, 9):
        unsettled.settle(number)
    assert unsettled.take() == []
    unsettled.settle(0)
    assert unsettled.take() == [0, 1, 2]
    unsettled.settle(4)
    assert (unsettled.take(), unsettled.take_all(), len(unsettled)) == ([], [4], 1)


def test_offsets_are_durable_up_to_what_is_not_confirmed() -> None:
    unconfirmed: Unconfirmed[str] = Unconfirmed()
    for partition, offset in ((0, 5), (0, 6), (1, 2)):
        unconfirmed.add(("t", partition, offset), "message", 10)
    ends = {TopicPartition("t", number): 10 for number in range(3)}
    assert list(unconfirmed.durable(ends).values()) == [5, 2, 10]
    unconfirmed.forget(("t", 0, 5))
    unconfirmed.close([TopicPartition("t", 1)])
    assert list(unconfirmed.durable(ends).values()) == [6, 10, 10]
    assert (unconfirmed.bytes, len(unconfirmed)) == (10, 1)
    assert unconfirmed.taken == {("t", 0, 5), ("t", 0, 6)}
