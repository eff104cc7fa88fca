"""Intents: what an update asks for, as a closed union. Made by `route.py`, done by `commands/`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runtime.domain.people import Role
from runtime.domain.question import Question


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file at Telegram: its ID, its sender's name and type for it, its size if told."""

    id: str
    name: str
    declared_type: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class NewSource:
    """What a job is to be made of: exactly one of file, link and text is there."""

    file: FileRef | None = None
    link: str = ""
    text: str = ""
    brief: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Use a pairing code; only its digest goes further."""

    code: str


@dataclass(frozen=True, slots=True)
class BindGroup:
    """An administrator's /start in a group: let it work for that person's tenant."""


@dataclass(frozen=True, slots=True)
class Help:
    """What the bot understands."""


@dataclass(frozen=True, slots=True)
class Status:
    """Who the person is here and how the bot is."""


@dataclass(frozen=True, slots=True)
class New:
    """Start a job."""

    source: NewSource


@dataclass(frozen=True, slots=True)
class AskNew:
    """`/new` alone: ask what to work on."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What waits for a person."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The newest jobs, or those up to a number."""

    upto: int | None


@dataclass(frozen=True, slots=True)
class ShowJob:
    """One job's card, again."""

    number: int


@dataclass(frozen=True, slots=True)
class Why:
    """The lineage of one job."""

    number: int


@dataclass(frozen=True, slots=True)
class Invite:
    """A one-time code for a role."""

    role: Role


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to an open question, of a kind that it takes."""

    question: Question
    text: str = ""
    file: FileRef | None = None
    source: NewSource | None = None


@dataclass(frozen=True, slots=True)
class WrongAnswer:
    """Not what the question takes: a hint, and it stays open."""

    hint: str


@dataclass(frozen=True, slots=True)
class Chat:
    """Plain text to the chat agent."""

    text: str


@dataclass(frozen=True, slots=True)
class Press:
    """A button. `message` is where it stood, if Telegram says so."""

    token: str
    query: str
    message: int | None


@dataclass(frozen=True, slots=True)
class Reach:
    """The person (or group) stopped accepting messages, or accepts them again."""

    accepts: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A group went on as a supergroup: chat numbers before and after."""

    old: int
    new: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Nothing is done, and the sender is told why in this sentence."""

    sentence: str
    kind: Literal["form", "anonymous", "content"] = "form"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Nothing is done and nothing is said."""

    reason: str


Intent = (
    Pair
    | BindGroup
    | Help
    | Status
    | New
    | AskNew
    | Needs
    | Jobs
    | ShowJob
    | Why
    | Invite
    | Answer
    | WrongAnswer
    | Chat
    | Press
    | Reach
    | Moved
    | Refuse
    | Ignore
)
