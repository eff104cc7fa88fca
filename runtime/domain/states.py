"""The states page, generated from the transition tables (`docs/states.md`).

A table that the code follows is the only place where a transition is written down; this module
renders all of them, with what each state means taken from its own record's docstring.
"""

from __future__ import annotations

from typing import Final, get_args

from runtime.domain import approval, artifact, card, effect, event, job, operation, question
from runtime.domain.values import Record

HEAD: Final = """# States

Generated from the transition tables in `runtime/domain` by `runtime/domain/states.py`; a test holds
this page against them. Write it again with:

```console
$ .venv/bin/python -m runtime.domain.states > docs/states.md
```

A state that leads nowhere is terminal and absorbs whatever comes later.
"""

LIFECYCLES: Final = (
    ("Event", event.EventState, event.TRANSITIONS),
    ("Operation", operation.OperationState, operation.TRANSITIONS),
    ("Job", job.JobState, job.TRANSITIONS),
    ("Approval", approval.ApprovalState, approval.TRANSITIONS),
    ("Command", effect.CommandState, effect.TRANSITIONS),
    ("Artifact", artifact.ArtifactState, artifact.TRANSITIONS),
    ("Question", question.QuestionState, question.TRANSITIONS),
    ("Card", card.CardState, card.TRANSITIONS),
)


def members(union: object) -> dict[str, type[Record]]:
    """The records of a state union, by their name."""
    inner = get_args(union)[0] if hasattr(union, "__metadata__") else union
    return {kind.model_fields["name"].default: kind for kind in get_args(inner)}


def render() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, union, table in LIFECYCLES:
        kinds = members(union)
        rows = [
            f"| {name} | {', '.join(following) or '—'} | {summary(kinds[name])} |"
            for name, following in table.items()
        ]
        parts.append(
            "\n".join([f"## {title}\n", "| state | may become | meaning |", "|---|---|---|", *rows])
        )
    return "\n".join(f"{part}\n" for part in parts).rstrip() + "\n"


def summary(kind: type[Record]) -> str:
    """The first line of a state's docstring."""
    return (kind.__doc__ or "").strip().splitlines()[0].replace("|", "\\|")


if __name__ == "__main__":
    import sys

    sys.stdout.write(render())
