# ruff: noqa: INP001 - a script that make runs, not a package
"""Fill .venv from the lock files: `python .ci/setup.py run` or `dev`.

Only the standard library of the Python that called it is used. One lock file keeps two callers
apart; a mark is written last, so that an interrupted set-up is simply done again. Packages are
accepted by hash only, and the project itself is installed without asking any index.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
NEEDED = (3, 11)
# Settings that would send packages elsewhere than into .venv, or past the hashes.
LEAKS = (
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_NO_DEPS",
    "PIP_REQUIREMENT",
    "PIP_CONSTRAINT",
    "PIP_DRY_RUN",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONOPTIMIZE",
    "__PYVENV_LAUNCHER__",
)
LOCKS = {"run": ("run.txt", "build.txt"), "dev": ("dev.txt", "build.txt")}


def main(arguments: list[str]) -> int:
    """Set up the asked-for profile; the exit code says whether it stands."""
    if len(arguments) != 1 or arguments[0] not in LOCKS:
        return complain("usage: setup.py run|dev")
    if sys.version_info < NEEDED:
        return complain(
            f"Python {NEEDED[0]}.{NEEDED[1]} or newer is needed and this is "
            f"{sys.version.split()[0]}; say which with make PYTHON=/path/to/python3.11",
        )
    profile = arguments[0]
    with (ROOT / ".setup.lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if stands(profile):
            return 0
        try:
            fill(profile)
        except subprocess.CalledProcessError as failure:
            return complain(f"set-up failed at: {' '.join(map(str, failure.cmd))}")
    return 0


def inputs(profile: str) -> list[Path]:
    """Return the files whose change makes a new set-up necessary."""
    locks = [ROOT / "requirements" / name for name in LOCKS[profile]]
    return [*locks, ROOT / "pyproject.toml", Path(__file__).resolve()]


def stands(profile: str) -> bool:
    """Whether another caller finished this set-up while we waited for the lock."""
    mark = VENV / f".installed-{profile}"
    if not mark.exists():
        return False
    return all(path.stat().st_mtime <= mark.stat().st_mtime for path in inputs(profile))


def fill(profile: str) -> None:
    """Make the environment if it is missing or broken, and install into it."""
    environment = {key: value for key, value in os.environ.items() if key not in LEAKS}
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"

    def run(*command: str | Path) -> None:
        subprocess.run(command, check=True, cwd=ROOT, env=environment)  # noqa: S603 - our own fixed commands

    python = VENV / "bin" / "python"
    if not works(python):
        print("making .venv ...", flush=True)  # noqa: T201 - a set-up step tells what it does
        run(sys.executable, "-m", "venv", "--clear", VENV)
    print(f"installing what {profile} needs (first time: a minute or two) ...", flush=True)  # noqa: T201 - as above
    pip = (python, "-m", "pip", "install", "--quiet")
    for name in LOCKS[profile]:
        run(*pip, "--require-hashes", "-r", ROOT / "requirements" / name)
    run(*pip, "--no-deps", "--no-index", "--no-build-isolation", "-e", ROOT)
    (VENV / f".installed-{profile}").write_text("set up from the lock files\n", encoding="utf-8")


def works(python: Path) -> bool:
    """Whether the environment's Python starts and has pip."""
    if not python.exists():
        return False
    probe = [python, "-c", "import pip, sys; sys.exit(sys.version_info < (3, 11))"]
    return subprocess.run(probe, check=False, capture_output=True).returncode == 0  # noqa: S603 - our own fixed command


def complain(sentence: str) -> int:
    """Say what is wrong where make's reader sees it."""
    print(f"harmonia: {sentence}", file=sys.stderr)  # noqa: T201 - the only way to tell the caller
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
