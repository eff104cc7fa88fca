"""`harmonia`: the command line. Heavy parts are imported by the command that needs them."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from runtime.errors import HarmoniaError, SettingsError

FRAMES_MAX: Final = 8

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Harmonia: a Telegram-first operations bot with a durable agent runtime.",
)


@app.callback()
def harmonia() -> None:
    """Settings come from the environment and from .env; .env.example documents each."""


@app.command()
def up() -> None:
    """Serve the bot until stopped."""
    _private()
    from bot.logs import configure
    from bot.serve import serve
    from bot.settings import load_settings

    settings = load_settings()
    configure(settings.harmonia_log_level)
    asyncio.run(serve(settings, _say))


@app.command()
def sandbox(
    port: Annotated[
        int, typer.Option(help="where to listen on 127.0.0.1; 0 takes a free port")
    ] = 0,
) -> None:
    """Serve only the Telegram sandbox and its chat page, for a bot in another process."""
    _private()
    from bot.logs import configure
    from bot.sandbox.run import serve_sandbox
    from bot.settings import load_settings

    settings = load_settings()
    configure(settings.harmonia_log_level)
    asyncio.run(serve_sandbox(settings.harmonia_data_dir / "sandbox", port, _say))


@app.command()
def doctor() -> None:
    """Say what is configured and what is missing, a sentence each."""
    from bot.doctor import examine
    from bot.settings import load_settings

    sentences, fine = examine(load_settings())
    for sentence in sentences:
        _say(sentence)
    raise typer.Exit(0 if fine else 1)


def _private() -> None:
    """Whatever this process writes, only this user reads."""
    os.umask(0o077)


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    """Run a command; a fault becomes one sentence and exit code 2, a defect its place and 70."""
    try:
        app()
    except HarmoniaError as error:
        print(sentence(error), file=sys.stderr)
        raise SystemExit(2) from None
    except Exception as error:  # noqa: BLE001 - the outermost border: a traceback may quote a draft or a token (INV-20)
        raise SystemExit(_ended_by(error)) from None


def sentence(error: HarmoniaError) -> str:
    """What whoever started the process is told."""
    if not isinstance(error, SettingsError):
        return error.sentence
    setting, cause = error.fields.get("setting"), error.fields.get("cause")
    return f"Harmonia cannot start: {setting}: {cause}. (.env.example explains each setting.)"


def _ended_by(error: Exception) -> int:
    """Say which services ended by what; where a defect is, never with which values."""
    faults = list(_single(error))
    for fault in faults:
        if isinstance(fault, HarmoniaError):
            print(sentence(fault), file=sys.stderr)
            continue
        print(f"Harmonia ended by a defect, {type(fault).__name__}, here:", file=sys.stderr)
        for frame in traceback.extract_tb(fault.__traceback__)[-FRAMES_MAX:]:
            print(f"  {frame.filename}:{frame.lineno} in {frame.name}", file=sys.stderr)
    print("What was stored is safe; start it again and it goes on.", file=sys.stderr)
    return 2 if all(isinstance(fault, HarmoniaError) for fault in faults) else 70


def _single(error: BaseException) -> Iterator[BaseException]:
    """The faults of a group of services, one by one."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _single(inner)
    else:
        yield error


if __name__ == "__main__":
    main()
