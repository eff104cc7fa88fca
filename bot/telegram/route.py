"""Routing: an update and a few stored facts become an intent. Pure.

Keeps: free text never approves; edited and forwarded messages never run a command; another bot's
command is ignored silently; anonymous admins and channel posts are refused with a hint; other
people's messages do not answer a question, and a wrong kind of answer leaves it open.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bot.telegram.commandline import Said, command_in, utf16_slice, words_of
from bot.telegram.html import units
from bot.telegram.intents import (
    Answer,
    AskNew,
    BindGroup,
    Chat,
    FileRef,
    Help,
    Ignore,
    Intent,
    Invite,
    Jobs,
    Moved,
    Needs,
    New,
    NewSource,
    Pair,
    Press,
    Reach,
    Refuse,
    ShowJob,
    Status,
    Why,
    WrongAnswer,
)
from bot.telegram.sourcing import CUT_UNITS_MIN, HINT_CUT, HINT_REST, file_of, is_link, source_of
from bot.telegram.updates import Json, body_of, mapping, number, sender, text
from runtime.domain.people import Role, code_digest
from runtime.domain.question import ANSWER_CHARS_MAX, Question

PASTED_CHARS_MIN: Final = 600
"""A pasted text of at least this length is a source; a shorter one is a question to the agent."""
NUMBER_DIGITS_MAX: Final = 9

_NUMBER: Final = re.compile(rf"^#?([0-9]{{1,{NUMBER_DIGITS_MAX}}})$", re.ASCII)

HINT_ANONYMOUS: Final = (
    "I cannot see who sent this: anonymous admins and channels cannot give me commands. Send it "
    "from your own account."
)
HINT_KIND: Final = (
    "I cannot read this kind of message. Send a document (text, Markdown, HTML, VTT, SRT, PDF, "
    "DOCX), a link or a text."
)


@dataclass(frozen=True, slots=True)
class Facts:
    """Stored state that routing needs. `question_message` is the message that asks it."""

    bot_id: int
    bot_username: str
    question: Question | None = None
    question_message: int | None = None
    follows_cut: bool = False
    """Whether the message is the rest of a text that began in the message before it."""


def route(update: Json, facts: Facts) -> Intent:
    """What an update of a bound chat asks for."""
    kind, body = body_of(update)
    match kind:
        case "message":
            return _message(body, facts)
        case "press":
            return press(body)
        case "membership":
            return membership(text(mapping(body.get("new_chat_member")).get("status")))
        case "channel_post":
            said = command_in(body, facts.bot_username)
            ours = said is not None and said.to == "us"
            return Refuse(HINT_ANONYMOUS, "anonymous") if ours else Ignore("channel post")
        case "edited":
            return Ignore("edited messages never run anything")
        case _:
            return Ignore("a kind of update that is not used")


def route_unbound(kept: Json) -> Intent:
    """What the metadata of an unbound chat's update asks for."""
    if moved := _moved(kept, number(kept.get("chat"))):
        return moved
    match kept.get("kind"):
        case "press":
            return Press("", text(kept.get("query")), number(kept.get("message")))
        case "message" if number(kept.get("person")) is None:
            return Ignore("no person")
        case "message" if text(kept.get("code")):
            return Pair(text(kept.get("code")))
        case "message" if kept.get("command") == "start" and kept.get("chat_type") != "private":
            return BindGroup()
        case "message" if kept.get("command") is not None or kept.get("chat_type") == "private":
            return Status()
        case _:
            return Ignore("an unbound chat")


def press(body: Json) -> Press:
    """A press as it came; a token that is not text finds no grant."""
    token = text(body.get("data"))
    return Press(
        token, text(body.get("id")), number(mapping(body.get("message")).get("message_id"))
    )


def membership(status: str) -> Intent:
    """The bot's own membership changed."""
    if status in {"kicked", "left"}:
        return Reach(accepts=False, reason="blocked or removed by the user")
    if status in {"member", "administrator", "creator"}:
        return Reach(accepts=True, reason="")
    return Ignore("a restricted membership")


def _moved(message: Json, chat: int | None) -> Moved | None:
    if chat is None:
        return None
    if (new := number(message.get("migrate_to_chat_id"))) is not None:
        return Moved(chat, new)
    if (old := number(message.get("migrate_from_chat_id"))) is not None:
        return Moved(old, chat)
    return None


def _message(message: Json, facts: Facts) -> Intent:
    who = sender({"message": message})
    if moved := _moved(message, who.chat):
        return moved
    forwarded = "forward_origin" in message
    said = None if forwarded else command_in(message, facts.bot_username)
    if who.person is None:
        ours = said is not None and said.to == "us"
        return Refuse(HINT_ANONYMOUS, "anonymous") if ours else Ignore("no person")
    if mapping(message.get("from")).get("is_bot") is True:
        return Ignore("another bot")
    if said is not None:
        return _command(said, message, private=who.private)
    asked = facts.question
    answers = asked is not None and (who.private or _replies_to(message, facts.question_message))
    if facts.follows_cut and (who.private or answers):
        return Refuse(HINT_REST, "content")
    if asked is not None and answers:
        return _answer(asked, message)
    if who.private:
        return _private(message)
    if _addressed(message, facts):
        return Chat(words_of(message)[0])
    return Ignore("group talk")


def _command(said: Said, message: Json, *, private: bool) -> Intent:
    if said.to == "other":
        return Ignore("another bot's command")
    if said.to == "nobody":
        hint = "Commands are written in lower case and stand first, like /needs. Nothing was done."
        return Refuse(hint) if private else Ignore("not a documented form")
    match said.name:
        case "start":
            return Pair(code_digest(said.rest)) if said.rest else Status()
        case "help":
            return Help()
        case "status":
            return Status()
        case "new":
            return _new(said.rest, message)
        case "needs":
            return Needs()
        case "jobs":
            return Jobs(_numbered(said.rest))
        case "job" | "why" as name:
            asked = _numbered(said.rest)
            if asked is None:
                return Refuse(f"Which job? For example: /{name} 17")
            return ShowJob(asked) if name == "job" else Why(asked)
        case "invite":
            return _invite(said.rest)
        case _:
            known = f"I do not know /{said.name}; /help says what I understand. Nothing was done."
            return Refuse(known) if private else Ignore("an unknown command")


def _numbered(rest: str) -> int | None:
    match = _NUMBER.match(rest.strip())
    return int(match[1]) if match else None


def _invite(rest: str) -> Intent:
    roles = {"viewer": Role.VIEWER, "approver": Role.APPROVER}
    role = roles.get(rest.strip().lower())
    return Invite(role) if role else Refuse("Write /invite viewer or /invite approver.")


def _new(rest: str, message: Json) -> Intent:
    if file := file_of(message):
        return New(NewSource(file=file, brief=rest))
    if rest:
        return source_of(rest)
    replied = mapping(message.get("reply_to_message"))
    if file := file_of(replied):
        return New(NewSource(file=file))
    quoted = words_of(replied)[0].strip()
    if quoted and mapping(replied.get("from")).get("is_bot") is not True:
        return source_of(quoted)
    return AskNew()


def _private(message: Json) -> Intent:
    """A person's own chat: files, links and long texts are sources, the rest is talk."""
    said = words_of(message)[0].strip()
    if file := file_of(message):
        return New(NewSource(file=file, brief=said))
    if not said or "caption" in message:
        service = not any(field in message for field in _CONTENT)
        return Ignore("a service message") if service else Refuse(HINT_KIND, "content")
    if is_link(said) or len(said) >= PASTED_CHARS_MIN:
        return source_of(said)
    return Chat(said)


_CONTENT: Final = (
    *("text", "photo", "video", "voice", "audio", "animation", "sticker", "video_note", "contact"),
    *("location", "venue", "poll", "dice", "story", "game", "paid_media", "checklist"),
)


def _replies_to(message: Json, asked: int | None) -> bool:
    replied = number(mapping(message.get("reply_to_message")).get("message_id"))
    return asked is not None and replied == asked


def _addressed(message: Json, facts: Facts) -> bool:
    """Whether a group message speaks to the bot: a reply to it, or a mention of it."""
    replied = mapping(mapping(message.get("reply_to_message")).get("from"))
    if number(replied.get("id")) == facts.bot_id:
        return True
    said, marks = words_of(message)
    ours = f"@{facts.bot_username}".casefold()
    return any(
        mark.get("type") == "mention"
        and utf16_slice(
            said, number(mark.get("offset")) or 0, number(mark.get("length")) or 0
        ).casefold()
        == ours
        for mark in marks
    )


def _answer(question: Question, message: Json) -> Intent:
    said = text(message.get("text")).strip()
    file = file_of(message)
    match question.kind:
        case "new_source":
            if file:
                return Answer(question, source=NewSource(file=file, brief=words_of(message)[0]))
            intent = source_of(said) if said else None
            if isinstance(intent, New):
                return Answer(question, source=intent.source)
            return WrongAnswer(intent.sentence if isinstance(intent, Refuse) else HINT_KIND)
        case "edit_text":
            if file and _is_text(file):
                return Answer(question, file=file)
            if said and units(said) >= CUT_UNITS_MIN:
                return WrongAnswer(HINT_CUT)
            return _worded(question, said, "the new text as a message, or as a .txt or .md file")
        case "reject_reason":
            return _worded(question, said, "the reason as a text message")


def _is_text(file: FileRef) -> bool:
    """Whether a file may be a text; clients declare Markdown as many things."""
    return file.declared_type.startswith("text/") or file.name.lower().endswith((".txt", ".md"))


def _worded(question: Question, said: str, wanted: str) -> Intent:
    if not said:
        return WrongAnswer(
            f"I need {wanted}. The question stays open; “Leave it” under it ends it."
        )
    if len(said) > ANSWER_CHARS_MAX:
        return WrongAnswer(f"That is too long ({len(said)} characters of {ANSWER_CHARS_MAX}).")
    return Answer(question, text=said)
