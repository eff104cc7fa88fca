"""Faults of the content pack: what cannot be packed, and packs that cannot be reached.

runtime.errors.BadInput
└── PackError                   nothing was written
    ├── PackRefused             a draft, its quotes or a payload that make no honest pack
    └── PackReferenceRefused    a reference that is not a pack's own
"""

from __future__ import annotations

from runtime.errors import BadInput


class PackError(BadInput):
    """Fields: those of the subclass."""

    rule = "a pack holds exactly what was approved, with its sources"
    remedy = "change the draft and ask for approval again"


class PackRefused(PackError):
    """Fields: cause."""


class PackReferenceRefused(PackError):
    """Fields: cause."""

    rule = "a reference names one pack below the folder of packs, and nothing else"
    remedy = "use the reference of the receipt"
