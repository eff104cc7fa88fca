"""One copy of the project for each test process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.framework import copy_project


@pytest.fixture(scope="session")
def project_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which files may be damaged."""
    return copy_project(tmp_path_factory.mktemp("copy"))
