"""What stands under a message: inline keyboards and the other reply markups.

Keeps: limits and words of refusal are the server's (64 bytes of data, 100 buttons, a type for every
button); a markup that is not an inline keyboard is kept for the page but never comes back in a
Message.
"""

from __future__ import annotations

from typing import Any

from bot.sandbox.errors import bad_request
from bot.sandbox.markup_text import checked_link, units
from bot.sandbox.params import Params

Json = dict[str, Any]
Keyboard = tuple[tuple[Json, ...], ...]
BUTTONS_MAX = 100
DATA_BYTES_MAX = 64
COPY_UNITS_MAX = 256
_OBJECT_TYPES = {
    "callback_game": {},
    "web_app": {"url"},
    "login_url": {"url"},
    "copy_text": {"text"},
    "switch_inline_query_chosen_chat": set(),
}
_STYLES = {"", "default", "primary", "success", "danger"}


def read_markup(params: Params) -> tuple[Keyboard, Json | None]:
    """The inline keyboard, and any other markup. Refuses what cannot be read; limits come later."""
    value = params.json("reply_markup", "reply keyboard markup")
    if value is None:
        return (), None
    if not isinstance(value, dict):
        raise bad_request(detail="Object expected as reply markup")
    for name in ("keyboard", "inline_keyboard"):
        if name in value and not isinstance(value[name], list):
            raise bad_request(detail=f'Field "{name}" must be of type Array')
    if value.get("keyboard"):
        if not all(isinstance(row, list) for row in value["keyboard"]):
            raise bad_request(detail='Field "keyboard" must be an Array of Arrays')
        return (), value
    rows = value.get("inline_keyboard") or []
    if not all(isinstance(row, list) for row in rows):
        raise bad_request(
            detail='Field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays'
        )
    keyboard = tuple(tuple(_button(button) for button in row) for row in rows if row)
    if keyboard:
        return keyboard, None
    other = value.get("force_reply") or value.get("remove_keyboard")
    return (), (value if other else None)


def _button(value: object) -> Json:
    def refuse(detail: str) -> Exception:
        return bad_request(f"Can't parse inline keyboard button: {detail}")

    if not isinstance(value, dict):
        raise refuse(detail="InlineKeyboardButton must be an Object")
    if "text" not in value:
        raise refuse(detail='Can\'t find field "text"')
    if not isinstance(value["text"], str):
        raise refuse(detail='Field "text" must be of type String')
    for name in ("url", "callback_data", "style"):
        if not isinstance(value.get(name, ""), str):
            raise refuse(detail=f'Field "{name}" must be of type String')
    if value.get("style", "").lower() not in _STYLES:
        raise refuse(detail="invalid button style specified")
    has_type = bool(value.get("url")) or bool(value.get("callback_data"))
    has_type = has_type or any(name in value for name in ("pay", "switch_inline_query"))
    has_type = has_type or "switch_inline_query_current_chat" in value
    for name, fields in _OBJECT_TYPES.items():
        if name in value:
            if not isinstance(value[name], dict):
                raise refuse(detail=f'Field "{name}" must be of type Object')
            for missing in fields - value[name].keys():
                raise refuse(detail=f'Can\'t find field "{missing}"')
            has_type = True
    if not has_type:
        raise refuse(detail="Text buttons are unallowed in the inline keyboard")
    return {name: content for name, content in value.items() if content is not None}


def check_limits(keyboard: Keyboard) -> None:
    """What the server refuses only once the chat is known."""
    for button in (button for row in keyboard for button in row):
        if not button["text"].strip():
            raise bad_request(detail="Inline keyboard button text must be non-empty")
        if button.get("url"):
            _check_url(button["url"])
        elif len(button.get("callback_data", "").encode()) > DATA_BYTES_MAX:
            raise bad_request(detail="BUTTON_DATA_INVALID")
        copied = button.get("copy_text")
        if copied is not None and not 1 <= units(copied["text"]) <= COPY_UNITS_MAX:
            raise bad_request(detail="BUTTON_COPY_TEXT_INVALID")
    if sum(len(row) for row in keyboard) > BUTTONS_MAX:
        raise bad_request(detail="reply markup is too long")


def _check_url(url: str) -> None:
    if not checked_link(url):
        raise bad_request(detail=f"Inline keyboard button URL '{url}' is invalid: Wrong HTTP URL")
