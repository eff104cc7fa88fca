"""The defects that the tests must see: at least one for each kept invariant.

To add one: copy a line of the module that keeps the invariant, write the smallest plausible
mistake, name the test that catches it, and run `make test ARGS="tests/mutants -k INV-4"`. Choose a
mistake somebody could make (a forgotten check, an off-by-one, a swapped order), not nonsense, and a
test that is fast: each entry costs one start of pytest.
"""

from __future__ import annotations

from typing import Final

from tests.mutants.framework import Mutant

DOMAIN: Final = "tests/runtime/domain"
ENGINE: Final = "tests/runtime/engine"
TELEGRAM: Final = "tests/bot/telegram"


def mutant(invariant: int, file: str, before: str, after: str, test: str) -> Mutant:
    """One entry: a defect and the test that must fail."""
    return Mutant(
        invariant=f"INV-{invariant}", file=file, before=before, after=after, tests=(test,)
    )


MUTANTS: tuple[Mutant, ...] = (
    # The event is stored without its operation.
    mutant(
        1,
        "runtime/engine/inbox.py",
        "(Create(key, event), Create(OPERATIONS.key(scope, born.id), born)),",
        "(Create(key, event),),",
        f"{ENGINE}/test_inbox.py::test_an_event_and_its_operation_are_created_together",
    ),
    # The operation is over and its event is not.
    mutant(
        1,
        "runtime/engine/work.py",
        "Put(key, events.complete(event, now))",
        "Put(key, event)",
        f"{ENGINE}/test_work.py::test_an_event_ends_with_its_operation_in_the_same_commit",
    ),
    # Another payload under a known source ID passes for a redelivery.
    mutant(
        2,
        "runtime/domain/event.py",
        "existing.payload_digest != envelope.payload_digest or existing.type",
        "existing.type",
        f"{DOMAIN}/test_event.py::test_another_payload_under_the_same_source_id_is_a_conflict",
    ),
    # Another type under a known source ID passes for a redelivery.
    mutant(
        2,
        "runtime/domain/event.py",
        "or existing.type != envelope.type:",
        "or not existing.type:",
        f"{DOMAIN}/test_event.py::test_another_type_under_the_same_source_id_is_a_conflict",
    ),
    # Whoever writes is taken for the newest claim.
    mutant(
        3,
        "runtime/engine/work.py",
        "current = fenced(stored, self._fence)",
        "current = fenced(stored, stored.fence if stored else self._fence)",
        f"{ENGINE}/test_worker.py::test_a_stale_worker_writes_nothing",
    ),
    # A fence writes although its operation is not claimed any more.
    mutant(
        3,
        "runtime/domain/operation.py",
        'return Refused("a fenced write needs a claimed operation", operation.state.name)',
        "operation.state.name",
        f"{ENGINE}/test_work.py::test_a_claim_that_settled_writes_no_more",
    ),
    # Artifacts are committed around the fence.
    mutant(
        3,
        "runtime/engine/spill.py",
        "return await work.commit(step)",
        "return await work.kit.commit(body, work.store)",
        f"{ENGINE}/test_spill.py::test_a_stale_worker_stores_nothing",
    ),
    # A takeover keeps the epoch.
    mutant(
        4,
        "runtime/domain/operation.py",
        '"epoch": operation.epoch + 1,',
        '"epoch": max(operation.epoch, 1),',
        f"{ENGINE}/test_worker.py::test_a_stale_worker_writes_nothing",
    ),
    # A new holder of a service keeps the epoch of the old one.
    mutant(
        4,
        "runtime/domain/lease.py",
        "epoch=existing.epoch + 1",
        "epoch=existing.epoch",
        f"{ENGINE}/test_services.py::test_a_dead_holders_lease_runs_out",
    ),
    # Something else than what was approved is prepared.
    mutant(
        5,
        "runtime/domain/effect.py",
        "if digest != approved_digest:",
        "if not approved_digest:",
        f"{DOMAIN}/test_effect.py::test_only_exactly_the_approved_terms_are_prepared",
    ),
    # Something else than what was prepared is dispatched.
    mutant(
        5,
        "runtime/domain/effect.py",
        "if command.terms.digest != command.terms_digest:",
        "if not command.terms_digest:",
        f"{DOMAIN}/test_effect.py"
        "::test_a_command_whose_stored_terms_were_changed_is_not_dispatched",
    ),
    # The policy is not asked about the words that would go out.
    mutant(
        5,
        "runtime/domain/admission.py",
        "forbids(policy, terms.effect, words(terms.payload))",
        'forbids(policy, terms.effect, "")',
        f"{DOMAIN}/test_admission.py::test_a_policy_that_forbids_the_effect_or_a_term_wins",
    ),
    # A look that did not reach the provider passes for proof that the send did not.
    mutant(
        6,
        "runtime/domain/effect.py",
        "case AnswerNotEntered(retry_at=retry_at) if not reconciling:",
        "case AnswerNotEntered(retry_at=retry_at):",
        f"{DOMAIN}/test_effect.py"
        "::test_a_look_that_finds_nothing_out_changes_no_state_but_is_remembered",
    ),
    # What a connector did not classify is sent again.
    mutant(
        6,
        "runtime/engine/dispatcher.py",
        'return AnswerUnknown(reason=f"The connector broke ({type(error).__name__}).")',
        'return AnswerNotEntered(reason="The connector broke.")',
        f"{ENGINE}/test_dispatcher.py::test_what_a_connector_did_not_classify_is_unknown",
    ),
    # A send may call itself absent.
    mutant(
        6,
        "runtime/domain/effect.py",
        "case AnswerAbsent() if reconciling:",
        "case AnswerAbsent():",
        f"{DOMAIN}/test_effect.py::test_absence_is_proved_by_a_look_and_never_by_a_send",
    ),
    # A receipt does not say that a look brought it.
    mutant(
        7,
        "runtime/domain/receipt.py",
        'origin="reconciliation" if state.reconciled else "observation",',
        'origin="observation",',
        f"{DOMAIN}/test_receipt.py::test_a_receipt_says_when_a_look_and_not_the_send_brought_it",
    ),
    # A second look believes what the connector says about other bytes.
    mutant(
        7,
        "runtime/domain/receipt.py",
        "verified=finding.ok and not differs and",
        "verified=finding.ok and",
        f"{DOMAIN}/test_receipt.py::test_a_look_verifies_only_what_the_receipt_says",
    ),
    # The basis of a model call depends on who claims.
    mutant(
        8,
        "runtime/domain/manifest.py",
        'operation.pop("epoch")',
        'operation.get("epoch")',
        f"{ENGINE}/test_compiler.py::test_a_takeover_keeps_the_basis_and_changes_the_identity",
    ),
    # A consequential input is not in the identity.
    mutant(
        8,
        "runtime/domain/manifest.py",
        '"unresolved_effects": plain["effects"],',
        '"unresolved_effects": len(plain["effects"]),',
        f"{DOMAIN}/test_manifest.py::test_every_consequential_input_changes_the_identity",
    ),
    # The authority part may be a little too long.
    mutant(
        9,
        "runtime/domain/manifest.py",
        "if room < 0:",
        "if room < -1:",
        f"{DOMAIN}/test_manifest.py::test_authority_is_whole_or_refused_at_the_exact_character",
    ),
    # What was cut is not listed.
    mutant(
        9,
        "runtime/domain/fitting.py",
        'if len(chosen.get(place, "")) < len(each.text) or place not in chosen',
        "if place not in chosen",
        f"{DOMAIN}/test_fitting.py::test_an_excerpt_says_which_of_its_characters_are_missing",
    ),
    # Anything that is not known to have failed is evidence.
    mutant(
        10,
        "runtime/domain/artifact.py",
        'return Refused("only ready artifacts are evidence", artifact.state.name)',
        "artifact.state.name",
        f"{DOMAIN}/test_artifact.py::test_only_a_ready_artifact_is_evidence",
    ),
    # An artifact is evidence for an instant longer than it is kept.
    mutant(
        10,
        "runtime/domain/artifact.py",
        "if now >= artifact.expires_at:",
        "if now > artifact.expires_at:",
        f"{DOMAIN}/test_artifact.py::test_evidence_ends_at_its_expiry_exactly",
    ),
    # Bytes are shown that are not the stored ones.
    mutant(
        10,
        "runtime/engine/windows.py",
        "if found != artifact.chunks[index]:",
        "if not found:",
        f"{ENGINE}/test_windows.py::test_one_damaged_bit_is_never_shown_and_fails_the_artifact",
    ),
    # The head counts one more than there are changes.
    mutant(
        13,
        "runtime/engine/projector.py",
        "FeedHead(sequence=head.sequence + len(changes))",
        "FeedHead(sequence=head.sequence + len(changes) + 1)",
        f"{ENGINE}/test_projector.py"
        "::test_changes_are_contiguous_and_make_any_old_snapshot_current",
    ),
    # A job changes in the snapshot and the feed does not say so.
    mutant(
        13,
        "runtime/engine/projector.py",
        'changes.append(("job_upserted", shell.id, shell.view))',
        "pass",
        f"{ENGINE}/test_projector.py"
        "::test_changes_are_contiguous_and_make_any_old_snapshot_current",
    ),
    # Whoever may look may decide.
    mutant(
        15,
        "runtime/domain/approval.py",
        "if not may(voter, Role.APPROVER):",
        "if not may(voter, Role.VIEWER):",
        f"{ENGINE}/test_approvals.py::test_who_may_not_decide_changes_nothing",
    ),
    # A vote counts for whatever is asked about now.
    mutant(
        15,
        "runtime/domain/approval.py",
        "if cast.digest != approval.digest:",
        "if not cast.digest:",
        f"{ENGINE}/test_approvals.py::test_a_vote_for_what_was_shown_before_is_outdated",
    ),
    # The membership is not that of this tenant's voter but of whoever asked for the work.
    mutant(
        15,
        "runtime/engine/approvals.py",
        "voter = await at.reads.get(MEMBERS.key(at.scope, cast.person))",
        'voter = await at.reads.get(MEMBERS.key(at.scope, "telegram:1"))',
        f"{ENGINE}/test_approvals.py::test_who_may_not_decide_changes_nothing",
    ),
    # Expiry is not looked at when the decision is used.
    mutant(
        15,
        "runtime/engine/decided.py",
        "approvals.expire(approval, now)",
        "approval",
        f"{ENGINE}/test_decided.py::test_nobody_deciding_is_no",
    ),
    # The poll offset moves before the update is stored.
    mutant(
        16,
        "bot/telegram/poll.py",
        'body = repr(raw).encode("utf-8", "replace")',
        'body = b""; self._offset = update.get("update_id", 0) + 1',
        f"{TELEGRAM}/test_poll.py::test_with_the_store_down_the_offset_stays_and_nothing_is_lost",
    ),
    # The webhook says 200 for an update that was not stored.
    mutant(
        16,
        "bot/web/telegram.py",
        'return Response(status_code=503, headers={"retry-after": "1"})',
        "return Response(status_code=200)",
        "tests/bot/web/test_telegram.py"
        "::test_200_only_after_the_commit_and_503_while_the_store_is_down",
    ),
    # A card does not follow the effect that it shows.
    mutant(
        17,
        "runtime/domain/outlook.py",
        "view=_view(job, records.command, _standing(records.operation), records.verification),",
        "view=_view(job, _standing(records.operation), records.verification),",
        f"{DOMAIN}/test_outlook.py::test_the_view_follows_everything_that_a_card_shows",
    ),
    # A card says "verified" because somebody looked.
    mutant(
        17,
        "bot/telegram/states.py",
        "if verification.verified:",
        "if verification.method:",
        f"{TELEGRAM}/test_render.py::test_verified_is_said_only_with_a_verification_that_says_so",
    ),
    # A decided card still asks for the decision.
    mutant(
        17,
        "bot/telegram/decisions.py",
        "if isinstance(approval.state, Requested) and isinstance(job.state, Running):",
        "if isinstance(job.state, Running):",
        f"{TELEGRAM}/test_render.py::test_a_decided_card_never_offers_to_decide",
    ),
    # What a body reads is not looked at.
    mutant(
        18,
        "runtime/stores/scoped.py",
        "self._handle.check_key(key)",
        "self._handle.check_key",
        f"{ENGINE}/test_work.py::test_work_reaches_its_own_tenant_only",
    ),
    # What a body writes is not looked at.
    mutant(
        18,
        "runtime/stores/scoped.py",
        "self.check_key(write.key)",
        "self.check_key",
        f"{ENGINE}/test_work.py::test_work_reaches_its_own_tenant_only",
    ),
    # A name may hold a separator.
    mutant(
        18,
        "runtime/domain/values.py",
        'pattern=r"^[A-Za-z0-9_-]{1,64}$"',
        'pattern=r"^[A-Za-z0-9_/-]{1,64}$"',
        f"{DOMAIN}/test_values.py::test_a_name_outside_the_alphabet_is_refused",
    ),
    # A claim that ran out for the last time is released once more.
    mutant(
        19,
        "runtime/engine/scanner.py",
        "if operation.attempt >= operation.attempts_max:",
        "if operation.attempt > operation.attempts_max:",
        f"{ENGINE}/test_scanner.py::test_a_spent_retry_budget_needs_a_person",
    ),
    # A wait whose time is over is left alone.
    mutant(
        19,
        "runtime/engine/scanner.py",
        "return operations.wake(operation, now)",
        "return operation",
        f"{ENGINE}/test_scanner.py::test_a_wait_is_over_at_its_end_with_a_fresh_retry_budget",
    ),
    # What stands still is in front of nobody.
    mutant(
        19,
        "runtime/domain/outlook.py",
        "isinstance(operation.state, OperatorRequired | Failed)",
        "isinstance(operation.state, Failed)",
        f"{DOMAIN}/test_outlook.py"
        "::test_an_operation_that_stands_still_stands_in_front_of_a_person",
    ),
    # A defect's own words, which may quote a draft, are stored as the reason.
    mutant(
        20,
        "runtime/engine/worker.py",
        'f"an unexpected {type(error).__name__}"',
        'f"an unexpected {error!r}"',
        f"{ENGINE}/test_work_secrets.py"
        "::test_a_defect_that_quotes_the_text_reaches_people_without_it",
    ),
)
