"""The producer of a source task that rests."""

from __future__ import annotations

from typing import Any

from worker.runtime.source.producer import RestingProducer


class Client:
    """A producer that has heard of a record once it is polled."""

    def __init__(self, made: list[Client]) -> None:
        self.sent: list[str] = []
        self.closed = False
        self._under_way = 0
        made.append(self)

    def __len__(self) -> int:
        return self._under_way

    def produce(self, value: str) -> None:
        assert not self.closed
        self._under_way += 1
        self.sent.append(value)

    def poll(self, _: float) -> int:
        heard, self._under_way = self._under_way, 0
        return heard

    def flush(self, _: float) -> int:
        return self._under_way

    def close(self) -> bool:
        assert not self._under_way, "what is under way would be lost"
        self.closed = True
        return True


def resting(made: list[Client], rested: list[str]) -> RestingProducer:
    make: Any = lambda: Client(made)  # noqa: E731 - a client that is none of confluent_kafka's
    return RestingProducer(make, lambda: rested.append("rests"))


def test_it_rests_only_when_it_has_heard_of_all_that_was_sent() -> None:
    made: list[Client] = []
    rested: list[str] = []
    producer = resting(made, rested)
    producer.produce("a")
    producer.rest()
    assert (made[0].closed, rested) == (False, [])
    assert producer.poll() == 1
    producer.rest()
    assert (made[0].closed, rested) == (True, ["rests"])


def test_another_client_is_made_for_the_next_record() -> None:
    made: list[Client] = []
    producer = resting(made, [])
    producer.rest()
    assert producer.poll() == producer.flush(1.0) == 0
    assert len(made) == 1, "neither of these needs one"
    produce = producer.produce
    produce("b")
    produce("c")
    assert [client.sent for client in made] == [[], ["b", "c"]]


def test_one_that_rests_stays_at_rest() -> None:
    made: list[Client] = []
    rested: list[str] = []
    producer = resting(made, rested)
    producer.rest()
    producer.rest()
    assert (len(made), rested) == (1, ["rests"])
