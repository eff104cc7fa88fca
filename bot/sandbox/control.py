"""The control API: people act, the scene changes, faults are laid, the ledger is read.

    GET  /sandbox/state · messages · events · query · ledger · file
    POST /sandbox/send · file · press · edit · forward · delete
    POST /sandbox/misbehave · behave · stage

Keeps: nothing is answered to a caller that is not on this machine, that names another host, or that
lacks the run's page token (compared in constant time); a refusal changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.sandbox import views
from bot.sandbox.acting import Acting, Place, SenderKind, Shape
from bot.sandbox.errors import ControlRefusal, SandboxError
from bot.sandbox.gate import Gate
from bot.sandbox.ledger import Ledger
from bot.sandbox.markup_html import HtmlReader
from bot.sandbox.markup_text import Raw
from bot.sandbox.misbehaviour import Misbehaviour, one_of
from bot.sandbox.model import Chat, Message, Person, Press, StoredFile, Topic
from bot.sandbox.params import UPLOAD_BYTES_MAX, Params, read_params
from bot.sandbox.world import World

Json = dict[str, Any]
WAIT_SECONDS_MAX = 50
SHAPES: TypeAdapter[Shape] = TypeAdapter(Shape)
SENDERS: TypeAdapter[SenderKind] = TypeAdapter(SenderKind)


class Control:
    """The endpoints under /sandbox."""

    def __init__(
        self, world: World, acting: Acting, misbehaviour: Misbehaviour, ledger: Ledger, gate: Gate
    ) -> None:
        self.world = world
        self.acting = acting
        self.misbehaviour = misbehaviour
        self.ledger = ledger
        self.gate = gate

    @property
    def routes(self) -> list[Route]:
        """All endpoints."""
        reads = {
            "state": self.state,
            "messages": self.messages,
            "events": self.events,
            "query": self.query,
            "ledger": self.read_ledger,
        }
        writes = {
            "send": self.send,
            "press": self.press,
            "edit": self.edit,
            "forward": self.forward,
            "delete": self.delete,
            "misbehave": self.misbehave,
            "behave": self.behave,
            "stage": self.stage,
        }
        found = [
            Route(f"/sandbox/{name}", self._guarded(run), methods=["GET"])
            for name, run in reads.items()
        ]
        found += [
            Route(f"/sandbox/{name}", self._guarded(run), methods=["POST"])
            for name, run in writes.items()
        ]
        found.append(Route("/sandbox/file", self.download, methods=["GET"]))
        found.append(Route("/sandbox/file", self._guarded(self.send_file), methods=["POST"]))
        return found

    def _guarded(
        self, run: Callable[[Params], Awaitable[Json]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            denied = self.gate.denied(request)
            if denied is not None:
                return denied
            try:
                answer = await run(await read_params(request))
            except SandboxError as refusal:
                return JSONResponse({"error": refusal.sentence}, 400)
            finally:
                self.world.commit()
            return Response(orjson.dumps(answer), media_type="application/json")

        return endpoint

    # --- reading ---

    async def state(self, _params: Params) -> Json:
        """Who is there, which chats each person sees, which commands the bot offers."""
        people = [person for person in self.world.all(Person) if not person.is_bot]
        commands = self.world.setup.commands.get("default:/:", ())
        return {
            "version": self.world.pulse.version,
            "bot": views.user(self.world.bot),
            "commands": list(commands),
            "people": [
                {
                    **views.user(person),
                    "key": person.key,
                    "note": person.note,
                    "chats": [self._chat(chat) for chat in self.acting.chats(person)],
                }
                for person in people
            ],
            "faults": self.misbehaviour.shown(),
        }

    def _chat(self, chat: Chat) -> Json:
        topics = [row for row in self.world.all(Topic) if row.chat_id == chat.id]
        held = self.world.messages(chat.id)
        return {
            **views.chat(self.world, chat),
            "started": chat.started,
            "blocked": chat.blocked,
            "migrated_to": chat.migrated_to,
            "topics": [{"thread_id": row.thread_id, "name": row.name} for row in topics],
            "last": self._message(held[-1]) if held else None,
        }

    def _message(self, row: Message) -> Json:
        """A message as a person sees it: the Bot API's object and what only clients see."""
        shown = views.message(self.world, row)
        if row.input_markup:
            shown["input_markup"] = row.input_markup
        if row.reactions:
            shown["reactions"] = [mark for marks in row.reactions.values() for mark in marks]
        return shown

    async def messages(self, params: Params) -> Json:
        """The messages of a chat as a person sees them; `after` skips what is known."""
        chat = self._place(params)[1]
        after = params.number("after")
        held = [row for row in self.world.messages(chat.id) if row.message_id > after]
        return {
            "version": self.world.pulse.version,
            "chat": self._chat(chat),
            "messages": [self._message(row) for row in held[-500:]],
        }

    async def events(self, params: Params) -> Json:
        """Wait until something changed after a version."""
        seconds = min(params.number("timeout", 25), WAIT_SECONDS_MAX)
        after = params.number("after")
        if after <= self.world.pulse.version:  # a higher one is from an earlier run
            await self.world.pulse.beyond(after, self.world.clock, seconds)
        return {"version": self.world.pulse.version}

    async def query(self, params: Params) -> Json:
        """The answer to a press, or null; with a person, all answers not yet seen."""
        if params.has("person"):
            person = self.acting.person(params.text("person"))
            fresh = [
                row
                for row in self.world.all(Press)
                if row.person_id == person.id and row.answered and not row.seen
            ]
            for row in fresh:
                self.world.put(row.model_copy(update={"seen": True}))
            return {"answers": [row.model_dump(mode="json") for row in fresh]}
        row_ = self.world.get(Press, params.text("id"))
        if row_ is None:
            raise ControlRefusal(query=params.text("id"), cause="no such press")
        return {"version": self.world.pulse.version, **row_.model_dump(mode="json")}

    async def read_ledger(self, params: Params) -> Json:
        """What truly happened."""
        return {
            "seq": self.ledger.seq,
            "calls": self.ledger.calls_after(params.number("after")),
            "deliveries": list(self.ledger.deliveries.values()),
        }

    async def download(self, request: Request) -> Response:
        """A file's bytes, for a person; never shown inline."""
        denied = self.gate.denied(request)
        if denied is not None:
            return denied
        held = self.world.get(StoredFile, request.query_params.get("file_id", ""))
        content = self.world.vault.get(held.path.rpartition("/")[2]) if held else None
        if held is None or content is None:
            return JSONResponse({"error": "no such file"}, 404)
        headers = {"content-disposition": "attachment"}
        return Response(content, media_type=held.mime_type, headers=headers)

    # --- people ---

    def _place(self, params: Params) -> tuple[Person, Chat]:
        person = self.acting.person(params.text("person"))
        return person, self.acting.chat(person, params.text("chat"))

    def _where(self, params: Params) -> tuple[Person, Place]:
        person, chat = self._place(params)
        return person, Place(
            chat=chat,
            reply_to=params.number("reply_to") or None,
            thread_id=params.number("thread_id") or None,
            sender=one_of(SENDERS, params.text("as") or "self", "as"),
            channel_id=params.number("channel_id") or None,
        )

    async def send(self, params: Params) -> Json:
        """Send a text; `html` reads it as marked text (a client's formatting)."""
        person, place = self._where(params)
        text = params.text("text")
        marks: list[Raw] = []
        if params.flag("html"):
            text, marks = HtmlReader(text).read()
        return self._message(self.acting.send_text(person, place, text, marks))

    async def send_file(self, params: Params) -> Json:
        """Send a file."""
        upload = params.upload("file")
        if upload is None or not upload.content:
            raise ControlRefusal(file="missing or empty")
        if len(upload.content) > UPLOAD_BYTES_MAX:
            raise ControlRefusal(bytes=len(upload.content), most=UPLOAD_BYTES_MAX)
        person, place = self._where(params)
        photo = params.flag("photo")
        made = self.acting.send_file(person, place, upload, params.text("caption"), photo=photo)
        return self._message(made)

    async def press(self, params: Params) -> Json:
        """Press a button, by its data or label."""
        person, chat = self._place(params)
        shape = one_of(SHAPES, params.text("shape") or "full", "shape")
        number = params.number("message_id")
        data = self._data(chat, number, params)
        row, update_id = self.acting.press(person, chat, number, data, shape)
        return {"query_id": row.query_id, "update_id": update_id}

    def _data(self, chat: Chat, number: int, params: Params) -> str | None:
        if params.has("data"):
            return params.text("data")
        label = params.text("label")
        buttons = [
            button for line in self.acting.message(chat, number).inline_keyboard for button in line
        ]
        for button in buttons:
            if button["text"] == label and "callback_data" in button:
                return str(button["callback_data"])
        shown = ", ".join(button["text"] for button in buttons)
        raise ControlRefusal(label=label, message_id=number, buttons=shown)

    async def edit(self, params: Params) -> Json:
        """Edit an own message."""
        person, chat = self._place(params)
        number = params.number("message_id")
        return self._message(self.acting.edit(person, chat, number, params.text("text")))

    async def forward(self, params: Params) -> Json:
        """Forward a message to another chat."""
        person, place = self._where(params)
        source_chat = self.acting.chat(person, params.text("from_chat"))
        source = self.acting.message(source_chat, params.number("message_id"))
        return self._message(self.acting.forward(person, source, place))

    async def delete(self, params: Params) -> Json:
        """Delete a message."""
        person, chat = self._place(params)
        self.acting.delete(person, chat, params.number("message_id"))
        return {"deleted": True}

    # --- scene and faults ---

    async def misbehave(self, params: Params) -> Json:
        """Lay a fault over coming calls."""
        self.misbehaviour.lay(params.values)
        return {"faults": self.misbehaviour.shown()}

    async def behave(self, _params: Params) -> Json:
        """Take all faults away."""
        self.misbehaviour.faults.clear()
        return {"faults": []}

    async def stage(self, params: Params) -> Json:
        """Change the scene."""
        return self.misbehaviour.stage(params)
