"""Which messages the source acknowledges, and which it takes for sent again."""

from __future__ import annotations

from connectors.mqtt.receipts import Receipts, Received


def message(
    packet_id: int, payload: bytes = b"on", *, again: bool = False, connection: int = 1, session: int = 1
) -> Received:
    return Received("state", payload, 1, False, again, packet_id, None, session, connection, 0)


def ids(due: list[Received]) -> list[int]:
    return [each.packet_id for each in due]


def counting() -> Receipts:
    """Receipts that know that the server counts up; the messages 1 and 2 are acknowledged on the first connection."""
    receipts = Receipts()
    assert receipts.take(message(1), 1)
    receipts.settle(1)
    assert ids(receipts.due(1)) == [1]
    assert receipts.asks(1)
    assert not receipts.asks(1)
    receipts.answered(1)
    assert receipts.take(message(2), 2)
    receipts.settle(2)
    assert ids(receipts.due(1)) == [2]
    assert not receipts.asks(2)
    return receipts


def test_acknowledgements_keep_the_order_of_receipt() -> None:
    receipts = Receipts()
    for number in (1, 2, 3):
        assert receipts.take(message(number), number)
    receipts.settle(3)
    receipts.settle(2)
    assert (ids(receipts.due(1)), len(receipts)) == ([], 3)
    assert (ids(receipts.due(1, at_end=True)), len(receipts)) == ([2, 3], 1)


def test_what_is_under_way_is_acknowledged_where_it_came_last() -> None:
    receipts = Receipts()
    assert receipts.take(message(1), 1)
    assert not receipts.take(message(1, again=True, connection=2), 2)
    receipts.settle(1)
    assert [each.connection for each in receipts.due(2)] == [2]


def test_what_could_not_be_acknowledged_is_when_it_comes_again() -> None:
    receipts = Receipts()
    assert receipts.take(message(1), 1)
    receipts.settle(1)
    assert ids(receipts.due(2)) == []
    assert not receipts.take(message(1, again=True, connection=2), 2)
    assert ids(receipts.due(2)) == [1]
    assert ids(receipts.due(2)) == []


def test_a_lost_acknowledgement_is_repeated_if_the_server_counts() -> None:
    receipts = counting()
    assert not receipts.take(message(2, again=True, connection=2), 3)
    assert ids(receipts.due(2)) == [2]
    assert not receipts.take(message(2, again=True, connection=3), 3)
    assert ids(receipts.due(3)) == [2]


def test_another_message_is_published_whatever_its_id() -> None:
    receipts = counting()
    assert receipts.take(message(2, b"off", again=True, connection=2), 3)
    assert receipts.take(message(3, again=True, connection=2), 4)
    assert receipts.take(message(4), 5)


def test_an_id_that_may_be_another_messages_is_not_trusted() -> None:
    """Before it is known how the server gives ids, and if it gives those that are free."""
    receipts = Receipts()
    assert receipts.take(message(1), 1)
    receipts.settle(1)
    assert ids(receipts.due(1)) == [1]
    assert receipts.take(message(1, again=True, connection=2), 2)
    receipts = counting()
    assert receipts.take(message(2), 3)
    receipts.settle(3)
    assert ids(receipts.due(1)) == [2]
    assert receipts.take(message(2, again=True, connection=2), 4)


def test_a_server_that_gives_free_ids_is_found_out() -> None:
    receipts = Receipts()
    for number in (1, 2):
        assert receipts.take(message(number), number)
    receipts.settle(2)
    receipts.settle(1)
    assert ids(receipts.due(1)) == [1, 2]
    assert receipts.asks(1)
    receipts.answered(1)
    assert receipts.take(message(1), 3)
    receipts.settle(3)
    assert ids(receipts.due(1)) == [1]
    assert receipts.take(message(3), 4)
    assert receipts.take(message(1, again=True, connection=2), 5)


def test_an_answer_counts_only_if_nothing_came_again_since() -> None:
    receipts = Receipts()
    assert receipts.take(message(1), 1)
    receipts.settle(1)
    receipts.due(1)
    assert receipts.asks(1)
    # Lost on the first connection, it has the id that was free.
    assert receipts.take(message(1, again=True, connection=2), 2)
    receipts.answered(1)
    assert receipts.take(message(2, connection=2), 3)
    receipts.settle(2)
    assert ids(receipts.due(2)) == [1]
    assert receipts.take(message(1, again=True, connection=3), 4)


def test_something_new_on_a_connection_ends_what_comes_again() -> None:
    receipts = counting()
    assert receipts.take(message(3, connection=2), 3)
    assert receipts.take(message(2, again=True, connection=3), 4)


def test_a_new_session_has_other_ids() -> None:
    receipts = counting()
    assert receipts.take(message(3), 3)
    assert receipts.take(message(2, again=True, connection=2, session=2), 4)
    receipts.settle(3)
    receipts.settle(4)
    assert ids(receipts.due(2)) == [2]


def test_the_memory_is_bounded() -> None:
    receipts = counting()
    for number in range(3, 10_004):
        assert receipts.take(message(number), number)
        receipts.settle(number)
    receipts.due(1)
    assert receipts.take(message(2, again=True, connection=2), 10_004)
    assert not receipts.take(message(9_000, again=True, connection=2), 10_005)
