"""Cards: what is sent, doubted, given up and adopted, as decisions without any sending."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain import card as cards
from runtime.domain.card import (
    COPIES_MAX,
    SENDING_WITHIN,
    TRANSITIONS,
    UNCERTAIN_WAIT,
    Card,
    CardIdle,
    CardSending,
    CardUncertain,
    CardUnreachable,
    card_id,
)

NOW = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
ONE, TWO, LEAD = "1" * 64, "2" * 64, "3" * 64


def card(**changes: object) -> Card:
    made = Card(
        id=card_id("item", "approval:a", "telegram:1"),
        subject="item",
        subject_id="approval:a",
        destination="telegram:1",
        wanted=ONE,
        due_at=NOW,
        created_at=NOW,
    )
    return made.model_copy(update=changes)


def test_one_card_per_subject_and_destination() -> None:
    assert card_id("item", "a", "telegram:1") == card_id("item", "a", "telegram:1")
    assert card_id("item", "a", "telegram:1") != card_id("item", "a", "telegram:2")
    assert card_id("item", "a", "telegram:1") != card_id("job", "a", "telegram:1")


def test_wanting_what_is_wanted_already_changes_nothing() -> None:
    assert cards.want(card(), ONE, NOW) == card()


def test_a_newer_wish_of_a_shown_card_is_due_at_once_and_one_that_waits_keeps_its_turn() -> None:
    later = NOW + timedelta(hours=1)
    shown = card(pending=False, due_at=NOW - timedelta(days=1), tries=4)
    wished = cards.want(shown, TWO, later)
    assert (wished.pending, wished.due_at, wished.tries) == (True, later, 0)
    assert cards.want(card(due_at=NOW), TWO, later).due_at == NOW


def test_sending_is_found_again_after_its_time_and_counts_new_messages_only() -> None:
    begun = cards.sending(card(), NOW, new_message=True, tag="t")
    assert begun.due_at == NOW + SENDING_WITHIN
    assert begun.copies == 1
    assert begun.state == CardSending(at=NOW, new_message=True, tag="t")
    assert cards.sending(card(message=7), NOW, new_message=False).copies == 0


def test_shown_rests_unless_something_newer_is_wanted() -> None:
    begun = cards.sending(card(), NOW, new_message=True)
    shown = cards.shown(begun, ONE, 7, NOW)
    assert (shown.message, shown.shown, shown.pending) == (7, ONE, False)
    newer = cards.shown(cards.want(begun, TWO, NOW), ONE, 7, NOW)
    assert newer.pending


def test_pieces_count_up_and_begin_anew_with_another_lead() -> None:
    one = cards.shown_piece(cards.sending(card(), NOW, new_message=True), LEAD, NOW)
    two = cards.shown_piece(cards.sending(one, NOW, new_message=True), LEAD, NOW)
    assert (one.lead_shown, two.lead_shown, two.copies, two.pending) == (1, 2, 0, True)
    assert cards.shown_piece(two, TWO, NOW).lead_shown == 1


def test_a_send_that_was_not_made_is_no_copy() -> None:
    begun = cards.sending(card(), NOW, new_message=True)
    later = NOW + timedelta(seconds=7)
    again = cards.postpone(begun, later)
    assert (again.copies, again.tries, again.due_at) == (0, 1, later)
    assert isinstance(again.state, CardIdle)


def test_doubts_end_after_the_last_copy() -> None:
    current = card()
    for copy in range(COPIES_MAX + 1):
        begun = cards.sending(current, NOW, new_message=True)
        current = cards.doubt(begun, "lost", NOW)
        if copy < COPIES_MAX:
            assert isinstance(current.state, CardUncertain)
            assert current.due_at == NOW + UNCERTAIN_WAIT
    assert isinstance(current.state, CardUnreachable)
    assert not current.pending


def test_a_lost_message_is_sent_anew_with_all_its_pieces() -> None:
    shown = card(message=7, shown=ONE, lead=LEAD, lead_shown=2, copies=2, pending=False)
    anew = cards.lose_message(shown, NOW)
    assert (anew.message, anew.shown, anew.lead, anew.lead_shown) == (None, None, None, 0)
    assert (anew.copies, anew.pending) == (0, True)


def test_a_press_settles_a_doubt_and_makes_its_message_the_card() -> None:
    doubted = cards.doubt(cards.sending(card(), NOW, new_message=True), "lost", NOW)
    adopted = cards.adopt(doubted, 9, NOW)
    assert (adopted.message, adopted.shown, adopted.pending) == (9, None, True)
    assert isinstance(adopted.state, CardIdle)


def test_a_press_on_the_card_itself_or_during_a_sending_changes_nothing() -> None:
    shown = card(message=7, shown=ONE, pending=False)
    assert cards.adopt(shown, 7, NOW) == shown
    begun = cards.sending(shown, NOW, new_message=False)
    assert cards.adopt(begun, 9, NOW) == begun


def test_a_given_up_card_rests_whatever_is_wanted() -> None:
    lost = cards.unreachable(card(), "blocked", NOW)
    wished = cards.want(lost, TWO, NOW)
    rested = cards.rest(wished)
    assert isinstance(rested.state, CardUnreachable)
    assert not rested.pending


def test_looking_again_is_due_then() -> None:
    later = NOW + timedelta(hours=1)
    waits = cards.look_again(cards.settled(card()), later)
    assert (waits.pending, waits.due_at) == (True, later)


@pytest.mark.parametrize("state", list(TRANSITIONS))
def test_the_table_names_states_that_exist(state: str) -> None:
    assert set(TRANSITIONS[state]) <= TRANSITIONS.keys()


@given(st.lists(st.sampled_from(["ok", "piece", "lost", "later", "gone", "blocked", "press"])))
def test_any_course_of_answers_keeps_to_the_table_and_to_three_messages(
    answers: list[str],
) -> None:
    """Between two answers that say a message is there, at most three may have been sent."""
    current, unanswered = card(), 0
    for answer in answers:
        if isinstance(current.state, CardUnreachable):
            break
        new = current.message is None
        begun = cards.sending(current, NOW, new_message=new)
        unanswered += new
        assert unanswered <= COPIES_MAX + 1
        match answer:
            case "ok":
                after = cards.shown(begun, begun.wanted, begun.message or 7, NOW)
            case "piece" if new:
                after = cards.shown_piece(begun, LEAD, NOW)
            case "lost" if new:
                after = cards.doubt(begun, "lost", NOW)
            case "gone" if not new:
                after = cards.lose_message(begun, NOW)
            case "blocked":
                after = cards.unreachable(begun, "blocked", NOW)
            case "press":
                after = cards.adopt(cards.postpone(begun, NOW), 9, NOW)
            case _:
                after = cards.postpone(begun, NOW)
                unanswered -= new
        if answer in {"ok", "piece", "gone", "press"}:
            unanswered = 0
        assert after.state.name in TRANSITIONS[begun.state.name]
        assert after.copies >= 0
        current = after
