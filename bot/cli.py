"""`harmonia`: the command line. Heavy parts are imported by the command that needs them."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer

from runtime.errors import HarmoniaError

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


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    """Run a command; a fault becomes one sentence and exit code 2."""
    try:
        app()
    except HarmoniaError as error:
        print(error.sentence, file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
