"""Events: one per source ID, deliveries counted, conflicts never worked on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.domain import event as events
from runtime.domain.event import Conflict, Envelope, Event, Fresh, Redelivery
from runtime.domain.values import Trust
from tests.world import START

short = st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable())


def envelope(source_id: str = "1", payload: str = "{}", type_: str = "update") -> Envelope:
    return Envelope(
        source="telegram",
        source_id=source_id,
        type=type_,
        trust=Trust.OPERATOR,
        payload=payload,
        correlation="c",
    )


def stored(payload: str = "{}") -> Event:
    first = events.accept(None, envelope(payload=payload), "op", "d1", START)
    assert isinstance(first, Fresh)
    return first.event


def test_a_first_delivery_is_fresh_and_counted_once() -> None:
    event = stored()
    assert (event.deliveries, event.operation, event.state.name) == (1, "op", "accepted")


def test_a_redelivery_changes_nothing_but_the_count() -> None:
    event = stored()
    again = events.accept(event, envelope(), "op", "d2", START)
    assert isinstance(again, Redelivery)
    assert again.event == event.model_copy(update={"deliveries": 2, "last_delivery": "d2"})


@given(st.text(max_size=50), st.text(max_size=50))
def test_another_payload_under_the_same_source_id_is_a_conflict(one: str, other: str) -> None:
    one, other = (text.encode("utf-8", "ignore").decode() for text in (one, other))
    again = events.accept(stored(one), envelope(payload=other), "op", "d2", START)
    assert isinstance(again, Redelivery if one == other else Conflict)
    assert again.event.deliveries == (2 if one == other else 1)
    assert again.event.payload == one


def test_another_type_under_the_same_source_id_is_a_conflict() -> None:
    again = events.accept(stored(), envelope(type_="other"), "op", "d2", START)
    assert isinstance(again, Conflict)
    assert again.event.conflicts == 1


@given(short, short, short, short)
def test_identities_are_equal_only_for_equal_sources(a: str, b: str, c: str, d: str) -> None:
    one = envelope().model_copy(update={"source": a, "source_id": b}).event_id
    two = envelope().model_copy(update={"source": c, "source_id": d}).event_id
    assert (one == two) == ((a, b) == (c, d))


def test_terminal_events_absorb() -> None:
    for ended in (
        events.complete(stored(), START),
        events.reject(stored(), "why", START),
        events.dead_letter(stored(), "why", START),
    ):
        assert events.complete(ended, START) == ended
        assert events.reject(ended, "other", START) == ended
        assert events.dead_letter(ended, "other", START) == ended
