"""The Bot API over HTTP: /bot<token>/<method> and /file/bot<token>/<path>.

Keeps: an answer is written only after the change is in the journal; whatever a fault does to the
answer, the ledger says what was really applied; a wrong token gets Telegram's 401.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bot.sandbox.errors import ApiRefusal, forbidden, too_many
from bot.sandbox.faults import SERVER_ERRORS, Fault, Faults
from bot.sandbox.ledger import Ledger
from bot.sandbox.methods import METHODS, Call
from bot.sandbox.model import StoredFile
from bot.sandbox.params import Params, read_params
from bot.sandbox.polling import Polling
from bot.sandbox.updates import Updates
from bot.sandbox.world import World

NOT_FOUND = ApiRefusal(404, "Not Found")
_WAITING = ("delay_before", "delay_reply")


class BotApi:
    """Answers calls."""

    def __init__(
        self, world: World, updates: Updates, ledger: Ledger, faults: Faults, query_seconds: int
    ) -> None:
        self.world = world
        self.updates = updates
        self.ledger = ledger
        self.faults = faults
        self.polling = Polling(world, updates, ledger)
        self._query_seconds = query_seconds

    # --- HTTP ---

    async def method_endpoint(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request to /bot<token>/<method>."""
        request = Request(scope, receive)
        method = request.path_params["method"]
        try:
            self._check_token(request.path_params["token"])
            params = await read_params(request)
        except ApiRefusal as refusal:
            await _json(refusal.code, refusal.body)(scope, receive, send)
            return
        except ClientDisconnect:
            return
        caller = f"{request.client.host}:{request.client.port}" if request.client else ""
        called = asyncio.ensure_future(self.call(method, params, caller))
        if method.lower() == "getupdates" and not await _outlasts(called, receive):
            return
        answer, fault = await called
        if fault in {"drop_before", "drop_reply"}:
            await _hang_up(receive, send)
            return
        with contextlib.suppress(ClientDisconnect):
            await _json(answer.get("error_code", 200), answer)(scope, receive, send)

    async def file_endpoint(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request to /file/bot<token>/<path>."""
        request = Request(scope, receive)
        try:
            self._check_token(request.path_params["token"])
            response = self._file(request.path_params["path"])
        except ApiRefusal as refusal:
            response = _json(refusal.code, refusal.body)
        await response(scope, receive, send)

    def _check_token(self, token: str) -> None:
        if ":" not in token or not token.partition(":")[0].isdigit():
            raise NOT_FOUND
        if not hmac.compare_digest(token.encode(), self.world.setup.token.encode()):
            raise ApiRefusal(401, "Unauthorized")

    def _file(self, path: str) -> Response:
        held = next((row for row in self.world.all(StoredFile) if row.path == path), None)
        content = None if held is None else self.world.vault.get(path.rpartition("/")[2])
        if held is None or content is None:
            raise NOT_FOUND
        return Response(content, media_type="application/octet-stream")

    # --- a call ---

    async def call(
        self, method: str, params: Params, caller: str
    ) -> tuple[dict[str, Any], str | None]:
        """The answer and the fault that is laid on it."""
        entry = self.ledger.called(method, params, caller)
        chat_id = params.number("chat_id") or None
        fault = self.faults.take(method, chat_id)
        applied = False
        try:
            await self._before(fault)
            result = await self._run(method, params)
            applied = True
            answer: dict[str, Any] = {"ok": True, "result": result}
        except ApiRefusal as refusal:
            answer = refusal.body
        self.world.commit()
        self.ledger.answered(
            entry, answer, applied=applied, fault=None if fault is None else fault.kind
        )
        if method.lower() != "getupdates":
            self.world.pulse.beat()  # whoever watches the ledger looks again, also after a refusal
        if fault is not None and fault.kind == "delay_reply":
            await self.world.clock.sleep(fault.seconds)
        return answer, None if fault is None else fault.kind

    async def _before(self, fault: Fault | None) -> None:
        if fault is None:
            return
        match fault.kind:
            case "delay_before":
                await self.world.clock.sleep(fault.seconds)
            case "drop_before":
                raise ApiRefusal(500, "Internal Server Error: the sandbox dropped the request")
            case "fail_before":
                raise ApiRefusal(fault.code, fault.text or SERVER_ERRORS.get(fault.code, "Error"))
            case "too_many":
                raise too_many(fault.retry_after)
            case "forbidden":
                raise forbidden(fault.text or "bot was blocked by the user")
            case "bad_request":
                raise ApiRefusal(400, f"Bad Request: {fault.text}")
            case "drop_reply" | "delay_reply":
                return

    async def _run(self, method: str, params: Params) -> Any:  # noqa: ANN401 - any JSON value
        if self.world.setup.logged_out_until > self.world.now():
            raise ApiRefusal(400, "Logged out")
        if method.lower() == "getupdates":
            return await self.polling.get_updates(params)
        handler = METHODS.get(method.lower())
        if handler is None:
            raise ApiRefusal(404, "Not Found: method not found")
        return handler(Call(self.world, self.updates, params, self._query_seconds))

    async def carry_out(self, value: dict[str, Any]) -> None:
        """A call that came as the answer of a webhook."""
        params = Params({name: held for name, held in value.items() if name != "method"})
        await self.call(value["method"], params, "webhook answer")


def _json(status: int, body: dict[str, Any]) -> Response:
    headers = {}
    retry_after = body.get("parameters", {}).get("retry_after")
    if retry_after:
        headers["Retry-After"] = str(retry_after)
    return Response(orjson.dumps(body), status, headers, media_type="application/json")


async def _outlasts(call: asyncio.Future[Any], receive: Receive) -> bool:
    """Whether the caller is still there when the call ends; a poll of one who left is ended."""

    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    watch = asyncio.ensure_future(left())
    await asyncio.wait({call, watch}, return_when=asyncio.FIRST_COMPLETED)
    if call.done():
        watch.cancel()
        return True
    call.cancel()
    return False


async def _hang_up(receive: Receive, send: Send) -> None:
    """Close the connection without an answer.

    uvicorn hands over the transport behind `receive`; under another server the answer is begun and
    never finished, which a client sees as a broken connection just the same.
    """
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    headers = [(b"content-length", b"1000"), (b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"ok":', "more_body": True})
