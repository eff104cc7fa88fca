"""Commands: intent, one dispatch per attempt, what an answer means. INV-5, INV-6, INV-7."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from runtime.domain import effect as effects
from runtime.domain import receipt as receipts
from runtime.domain.effect import (
    TRANSITIONS,
    Answer,
    AnswerAbsent,
    AnswerApplied,
    AnswerNotEntered,
    AnswerRejected,
    AnswerUnknown,
    Applied,
    Command,
    CommandState,
    Dispatched,
    Failed,
    Observed,
    Prepared,
    Unknown,
)
from runtime.domain.operation import Refused
from runtime.domain.receipt import Receipt
from runtime.domain.values import Fence
from runtime.errors import InvariantBroken
from tests.effects_made import command as prepared
from tests.effects_made import export
from tests.world import START

TICK = timedelta(microseconds=1)
HOLDER = prepared().holder
APPLIED = AnswerApplied(reference="there", digest="a" * 64)
REJECTED = AnswerRejected(reason="too long")
LOST = AnswerUnknown(reason="no answer")
ABSENT = AnswerAbsent(proof="not there for good")
NOT_ENTERED = AnswerNotEntered(reason="refused connection")


def done(decided: Command | Refused) -> Command:
    assert not isinstance(decided, Refused), decided
    return decided


def dispatched() -> Command:
    return done(effects.dispatch(prepared(), HOLDER, START, policy_version=3))


def unknown() -> Command:
    return effects.lose(dispatched(), "no answer", START)


def test_only_exactly_the_approved_terms_are_prepared() -> None:
    """INV-5."""
    made = export()
    changed = made.terms.model_copy(update={"payload": made.terms.payload + " "})
    refused = effects.prepare(
        "c",
        "job-1",
        "a",
        approved_digest=made.approval.digest,
        terms=changed,
        policy_version=1,
        holder=HOLDER,
        now=START,
    )
    assert refused == Refused("only exactly approved terms are prepared", changed.digest)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("effect", "content_pack.other"),
        ("account", "else"),
        ("payload", "{}"),
        ("not_before", START),
        ("not_after", START),
        ("revision", export("job-2").terms.revision),
    ],
)
def test_every_field_of_the_terms_changes_their_digest(field: str, value: object) -> None:
    terms = export().terms
    assert terms.model_copy(update={field: value}).digest != terms.digest


def test_a_dispatch_records_the_policy_it_was_made_under() -> None:
    assert dispatched().policy_version == 3
    assert dispatched().state == Dispatched(at=START)


def test_a_command_whose_stored_terms_were_changed_is_not_dispatched() -> None:
    """INV-5."""
    stored = prepared()
    tampered = stored.model_copy(
        update={"terms": stored.terms.model_copy(update={"account": "else"})}
    )
    refused = effects.dispatch(tampered, HOLDER, START, policy_version=1)
    assert isinstance(refused, Refused)
    assert refused.found == "digest differs"


@pytest.mark.parametrize(("early", "accepted"), [(-1, False), (0, True), (1, True)])
def test_a_dispatch_begins_at_the_approved_time(early: int, *, accepted: bool) -> None:
    at = START + timedelta(hours=1)
    stored = prepared()
    terms = stored.terms.model_copy(update={"not_before": at})
    timed = stored.model_copy(update={"terms": terms, "terms_digest": terms.digest})
    answer = effects.dispatch(timed, HOLDER, at + early * TICK, policy_version=1)
    assert isinstance(answer, Command) is accepted
    assert effects.ready_at(timed) == at


@pytest.mark.parametrize(("late", "accepted"), [(-1, True), (0, False), (1, False)])
def test_a_dispatch_ends_before_the_approved_window_does(late: int, *, accepted: bool) -> None:
    at = START + timedelta(hours=1)
    stored = prepared()
    terms = stored.terms.model_copy(update={"not_after": at})
    timed = stored.model_copy(update={"terms": terms, "terms_digest": terms.digest})
    answer = effects.dispatch(timed, HOLDER, at + late * TICK, policy_version=1)
    assert isinstance(answer, Command) is accepted


@pytest.mark.parametrize(
    "stranger",
    [
        Fence(operation=HOLDER.operation, epoch=HOLDER.epoch + 1),
        Fence(operation=HOLDER.operation, epoch=HOLDER.epoch - 1),
        Fence(operation="other", epoch=HOLDER.epoch),
    ],
)
def test_only_the_holder_moves_a_command(stranger: Fence) -> None:
    observed = done(effects.observe(dispatched(), HOLDER, APPLIED, START))
    for refused in (
        effects.dispatch(prepared(), stranger, START, policy_version=1),
        effects.observe(dispatched(), stranger, APPLIED, START),
        effects.settle(observed, stranger, "r", START),
    ):
        assert isinstance(refused, Refused)
        assert refused.rule == "only its holder moves a command"


def test_only_a_newer_claim_of_the_same_operation_takes_over() -> None:
    newer = Fence(operation=HOLDER.operation, epoch=HOLDER.epoch + 1)
    assert done(effects.take_over(prepared(), newer)).holder == newer
    assert done(effects.take_over(prepared(), HOLDER)) == prepared()
    older = HOLDER.model_copy(update={"epoch": HOLDER.epoch - 1})
    other = Fence(operation="other", epoch=99)
    assert isinstance(effects.take_over(prepared(), older), Refused)
    assert isinstance(effects.take_over(prepared(), other), Refused)


def test_proof_that_the_provider_was_not_entered_opens_a_new_attempt() -> None:
    """INV-6."""
    later = START + timedelta(minutes=5)
    answer = NOT_ENTERED.model_copy(update={"retry_at": later})
    again = done(effects.observe(dispatched(), HOLDER, answer, START))
    assert again.state == Prepared(at=START, ready_at=later)
    assert (again.attempt, again.tries) == (2, 1)
    assert isinstance(effects.dispatch(again, HOLDER, later - TICK, policy_version=1), Refused)
    assert isinstance(effects.dispatch(again, HOLDER, later, policy_version=1), Command)


def test_a_retry_time_in_the_past_is_now() -> None:
    answer = NOT_ENTERED.model_copy(update={"retry_at": START - timedelta(hours=1)})
    again = done(effects.observe(dispatched(), HOLDER, answer, START))
    assert effects.ready_at(again) == START


def test_absence_is_proved_by_a_look_and_never_by_a_send() -> None:
    """INV-6."""
    sent = done(effects.observe(dispatched(), HOLDER, ABSENT, START))
    assert isinstance(sent.state, Unknown)
    looked = done(effects.observe(unknown(), HOLDER, ABSENT, START))
    assert looked.state == Prepared(at=START, ready_at=START)
    assert (looked.attempt, looked.tries) == (2, 0)


@pytest.mark.parametrize("answer", [LOST, NOT_ENTERED])
def test_a_look_that_finds_nothing_out_changes_no_state_but_is_remembered(answer: Answer) -> None:
    looked = done(effects.observe(unknown(), HOLDER, answer, START + TICK))
    assert isinstance(looked.state, Unknown)
    assert looked.state.checked_at == START + TICK
    assert looked.state.found
    assert looked.attempt == 1


@pytest.mark.parametrize("answer", [APPLIED, REJECTED])
def test_an_observation_says_whether_a_look_made_it(
    answer: AnswerApplied | AnswerRejected,
) -> None:
    """INV-7."""
    sent = done(effects.observe(dispatched(), HOLDER, answer, START))
    looked = done(effects.observe(unknown(), HOLDER, answer, START))
    assert sent.state == Observed(at=START, answer=answer, reconciled=False)
    assert looked.state == Observed(at=START, answer=answer, reconciled=True)


def test_a_settled_command_says_what_was_observed() -> None:
    applied = done(effects.observe(dispatched(), HOLDER, APPLIED, START))
    assert done(effects.settle(applied, HOLDER, "r", START)).state == Applied(at=START, receipt="r")
    refused = done(effects.observe(dispatched(), HOLDER, REJECTED, START))
    failed = done(effects.settle(refused, HOLDER, "r", START))
    assert failed.state == Failed(at=START, reason="too long", receipt="r")


@pytest.mark.parametrize("stored", [prepared(), dispatched(), unknown()], ids=["p", "d", "u"])
def test_nothing_is_settled_without_an_observation(stored: Command) -> None:
    """INV-7."""
    assert isinstance(effects.settle(stored, HOLDER, "r", START), Refused)


def test_work_past_dispatch_is_never_called_cancelled() -> None:
    assert done(effects.withdraw(prepared(), "stopped", START)).state.name == "cancelled"
    for stored in (dispatched(), unknown()):
        assert isinstance(effects.withdraw(stored, "stopped", START), Refused)
    assert [effects.unresolved(item) for item in (prepared(), dispatched(), unknown())] == [
        False,
        True,
        True,
    ]


def test_the_table_names_every_state_and_a_way_outside_it_is_a_defect() -> None:
    states = {item.model_fields["name"].default for item in get_args(get_args(CommandState)[0])}
    assert TRANSITIONS.keys() == states
    assert {after for ways in TRANSITIONS.values() for after in ways} <= states
    with pytest.raises(InvariantBroken):
        effects._leave(prepared(), Unknown(dispatched_at=START, at=START, reason=""))


class Lifecycle(RuleBasedStateMachine):
    """Any order of sends, answers, takeovers, losses and looks: the invariants hold throughout.

    `world` is what truly happened. It is changed only by a dispatch that reached the provider, and
    proofs are only given when they are true.
    """

    @initialize()
    def begin(self) -> None:
        self.now = START
        self.command = prepared()
        self.export = HOLDER
        self.looker = Fence(operation="reconcile", epoch=0)
        self.dispatches: list[int] = []
        self.proofs = 0
        self.world = 0
        self.refused = False
        self.receipts: list[Receipt] = []
        self.seen = [self.command.state.name]

    def move(self, after: Command | Refused) -> bool:
        if isinstance(after, Refused):
            return False
        if after.state.name != self.command.state.name:
            assert after.state.name in TRANSITIONS[self.command.state.name]
            self.seen.append(after.state.name)
        self.command = after
        return True

    @rule(by_export=st.booleans(), epoch=st.integers(-1, 1), reached=st.booleans())
    def send(self, *, by_export: bool, epoch: int, reached: bool) -> None:
        holder = self.command.holder
        fence = Fence(
            operation=self.export.operation if by_export else "stranger",
            epoch=holder.epoch + epoch,
        )
        was = self.command
        if self.move(effects.dispatch(was, fence, self.now, policy_version=1)):
            assert was.state.name == "prepared"
            assert fence == holder
            assert self.command.terms.digest == self.command.terms_digest
            self.dispatches.append(self.command.attempt)
            self.reached = reached
            self.world += reached

    @rule(answer=st.sampled_from([APPLIED, REJECTED, LOST, NOT_ENTERED, ABSENT]))
    def answer(self, answer: Answer) -> None:
        """An answer arrives; a truthful provider does not claim what is not so."""
        if not isinstance(self.command.state, Dispatched):
            return
        if isinstance(answer, AnswerApplied) is not self.reached and not isinstance(
            answer, AnswerUnknown | AnswerAbsent
        ):
            return
        attempt = self.command.attempt
        self.move(effects.observe(self.command, self.command.holder, answer, self.now))
        self.proofs += self.command.attempt - attempt

    @precondition(lambda self: isinstance(self.command.state, Dispatched))
    @rule()
    def lose(self) -> None:
        self.move(effects.lose(self.command, "crash", self.now))

    @precondition(lambda self: isinstance(self.command.state, Unknown))
    @rule(decisive=st.booleans())
    def look(self, *, decisive: bool) -> None:
        self.command = effects.hand_over(self.command, self.looker)
        truth: Answer = APPLIED if self.world else ABSENT
        attempt = self.command.attempt
        answer = truth if decisive else LOST
        self.move(effects.observe(self.command, self.looker, answer, self.now))
        self.proofs += self.command.attempt - attempt
        self.command = effects.hand_over(self.command, self.export)

    @rule()
    def take_over(self) -> None:
        newer = self.export.model_copy(update={"epoch": self.export.epoch + 1})
        if self.move(effects.take_over(self.command, newer)):
            self.export = newer

    @rule()
    def settle(self) -> None:
        receipt = receipts.receive(self.command, self.now)
        id_ = receipts.receipt_id(self.command.id)
        observed = isinstance(self.command.state, Observed)
        if self.move(effects.settle(self.command, self.command.holder, id_, self.now)):
            assert observed
            assert isinstance(receipt, Receipt)
            self.receipts.append(receipt)

    @rule(seconds=st.integers(0, 600))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @invariant()
    def an_attempt_is_dispatched_once_and_opened_by_proof(self) -> None:
        """INV-6."""
        if not hasattr(self, "command"):
            return
        assert len(set(self.dispatches)) == len(self.dispatches)
        assert self.command.attempt == 1 + self.proofs
        assert self.world <= 1

    @invariant()
    def a_receipt_follows_from_one_observation(self) -> None:
        """INV-7."""
        if not hasattr(self, "command"):
            return
        assert len(self.receipts) <= 1
        settled = isinstance(self.command.state, Applied | Failed)
        assert settled is (len(self.receipts) == 1)
        if settled:
            assert "observed" in self.seen
            outcome = self.receipts[0].outcome
            assert (outcome == "applied") is isinstance(self.command.state, Applied)
            assert (outcome == "applied") is (self.world == 1)


TestLifecycle = Lifecycle.TestCase
