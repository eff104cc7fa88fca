"""The defects that the tests must see: at least one for each kept invariant.

To add one: copy a line of the module that keeps the invariant, write the smallest plausible
mistake, name the test that catches it, and run `make test ARGS="tests/mutants -k INV-4"`. Choose a
mistake somebody could make (a forgotten check, an off-by-one, a swapped order), not nonsense, and a
test that is fast: each entry costs one start of pytest.
"""

from __future__ import annotations

from tests.mutants.framework import Mutant

MUTANTS: tuple[Mutant, ...] = ()
