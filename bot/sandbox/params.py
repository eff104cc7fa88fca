"""The arguments of a Bot API call, from wherever they came.

Keeps: query string, form, multipart and JSON bodies give the same arguments; numbers are read the
server's lenient way (what is no number is zero); nothing here refuses what the server would take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from starlette.datastructures import UploadFile
from starlette.requests import Request

from bot.sandbox.errors import ApiRefusal, bad_request

UPLOAD_BYTES_MAX = 50 * 1024 * 1024
_TRUE = {"true", "yes", "1"}


@dataclass(frozen=True)
class Upload:
    """A file that came with the call."""

    name: str
    mime_type: str
    content: bytes


class Params:
    """Arguments by name."""

    def __init__(self, values: dict[str, Any], uploads: dict[str, Upload] | None = None) -> None:
        self.values = values
        self.uploads = uploads or {}

    def has(self, name: str) -> bool:
        """Whether the argument is there and not null."""
        return self.values.get(name) is not None or name in self.uploads

    def text(self, name: str) -> str:
        """The argument as text; a JSON value is written out again."""
        value = self.values.get(name)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        return orjson.dumps(value).decode()

    def number(self, name: str, default: int = 0) -> int:
        """The argument as an integer; the leading digits count, like in the server."""
        raw = self.text(name).strip().strip('"')
        if not raw:
            return default
        sign, digits = (-1, raw[1:]) if raw.startswith("-") else (1, raw)
        head = ""
        for character in digits:
            if not ("0" <= character <= "9") or len(head) > 18:  # noqa: PLR2004 - 64 bits
                break
            head += character
        return sign * int(head) if head else 0

    def flag(self, name: str) -> bool:
        """The argument as a truth value."""
        return self.text(name).strip().lower() in _TRUE

    def json(self, name: str, what: str) -> Any:  # noqa: ANN401 - any JSON value
        """The argument as JSON, or None; `what` names it in the refusal."""
        value = self.values.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError as cause:
            raise bad_request(detail=f"Can't parse {what} JSON object") from cause

    def loose_json(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """As `json`, for arguments whose unreadable values the server ignores."""
        try:
            return self.json(name, name)
        except ApiRefusal:
            return None

    def upload(self, name: str) -> Upload | None:
        """The uploaded file of this argument, direct or by attach://."""
        if name in self.uploads:
            return self.uploads[name]
        value = self.text(name)
        if value.startswith("attach://"):
            return self.uploads.get(value.removeprefix("attach://"))
        return None


async def read_params(request: Request) -> Params:
    """Everything the request carries; the body wins over the query string."""
    values: dict[str, Any] = dict(request.query_params)
    uploads: dict[str, Upload] = {}
    if request.method == "POST":
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > UPLOAD_BYTES_MAX + 1024 * 1024:
            raise ApiRefusal(413, "Request Entity Too Large")
        if kind == "application/json":
            values.update(_json_body(await request.body()))
        elif kind in {"application/x-www-form-urlencoded", "multipart/form-data"}:
            await _form_body(request, values, uploads)
    return Params(values, uploads)


def _json_body(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as cause:
        raise bad_request(detail=f"can't parse request body as JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise bad_request(detail="can't parse request body as JSON: Object expected")
    return value


async def _form_body(request: Request, values: dict[str, Any], uploads: dict[str, Upload]) -> None:
    async with request.form(max_part_size=UPLOAD_BYTES_MAX) as form:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                content = await value.read()
                if len(content) > UPLOAD_BYTES_MAX:
                    raise ApiRefusal(413, "Request Entity Too Large")
                mime = value.content_type or "application/octet-stream"
                uploads[name] = Upload(value.filename or name, mime, content)
            else:
                values[name] = value
