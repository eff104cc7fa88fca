"""Methods about the bot account itself: identity, commands, profile, webhook settings.

Keeps: commands are kept for each scope and language apart; setting a webhook records where updates
go, webhook.py delivers them.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from bot.sandbox import views
from bot.sandbox.errors import bad_request
from bot.sandbox.methods.call import Call
from bot.sandbox.model import Webhook

Json = dict[str, Any]
COMMANDS_MAX = 100
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
DESCRIPTION_MAX = 256
SECRET_MAX = 256
LOGGED_OUT_SECONDS = 600
_SECRET = re.compile(r"[A-Za-z0-9_-]*")
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_SCOPES = {
    "default",
    "all_private_chats",
    "all_group_chats",
    "all_chat_administrators",
    "chat",
    "chat_administrators",
    "chat_member",
}


def get_me(call: Call) -> Json:
    """GetMe."""
    return views.me(call.world)


def _scope(call: Call) -> str:
    value = call.params.json("scope", "BotCommandScope")
    if value is None:
        value = {"type": "default"}
    if not isinstance(value, dict):
        raise bad_request(detail="Can't parse BotCommandScope: BotCommandScope must be an Object")
    kind = value.get("type")
    if kind not in _SCOPES:
        raise bad_request(detail="Can't parse BotCommandScope: Unsupported type specified")
    where = f"{value.get('chat_id', '')}/{value.get('user_id', '')}"
    return f"{kind}:{where}:{call.params.text('language_code')}"


def set_my_commands(call: Call) -> bool:
    """SetMyCommands."""
    value = call.params.json("commands", "commands")
    if not isinstance(value, list):
        raise bad_request(detail="Expected an Array of BotCommand")
    if len(value) > COMMANDS_MAX:
        raise bad_request(detail="BOT_COMMANDS_TOO_MUCH")
    commands = []
    for item in value:
        if not isinstance(item, dict):
            raise bad_request(detail="Can't parse BotCommand: expected an Object")
        for name in ("command", "description"):
            if not isinstance(item.get(name), str):
                raise bad_request(detail=f"Can't parse BotCommand: Can't find field \"{name}\"")
        command = item["command"].removeprefix("/")
        if not _COMMAND.fullmatch(command):
            raise bad_request(detail="BOT_COMMAND_INVALID")
        if not 1 <= len(item["description"].strip()) <= DESCRIPTION_MAX:
            raise bad_request(detail="BOT_COMMAND_DESCRIPTION_INVALID")
        commands.append({"command": command, "description": item["description"].strip()})
    setup = call.world.setup
    kept = {**setup.commands, _scope(call): tuple(commands)}
    call.world.put(setup.model_copy(update={"commands": kept}))
    return True


def get_my_commands(call: Call) -> list[Json]:
    """GetMyCommands."""
    return list(call.world.setup.commands.get(_scope(call), ()))


def delete_my_commands(call: Call) -> bool:
    """DeleteMyCommands."""
    setup = call.world.setup
    gone = _scope(call)
    kept = {scope: held for scope, held in setup.commands.items() if scope != gone}
    call.world.put(setup.model_copy(update={"commands": kept}))
    return True


def _getter(field: str) -> Any:  # noqa: ANN401 - a Method; the cycle would be odd
    def get(call: Call) -> Json:
        name = call.world.bot.first_name if field == "name" else ""
        key = f"{field}:{call.params.text('language_code')}"
        return {field: call.world.setup.profile.get(key, name)}

    return get


def _setter(field: str) -> Any:  # noqa: ANN401 - as above
    def change(call: Call) -> bool:
        setup = call.world.setup
        key = f"{field}:{call.params.text('language_code')}"
        profile = {**setup.profile, key: call.params.text(field)}
        call.world.put(setup.model_copy(update={"profile": profile}))
        return True

    return change


def set_webhook(call: Call) -> bool:
    """SetWebhook. Plain http is taken for loopback addresses only; Telegram itself wants https."""
    url, secret = call.params.text("url"), call.params.text("secret_token")
    if call.params.flag("drop_pending_updates"):
        call.updates.clear()
    if not url:
        return delete_webhook(call)
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as cause:
        raise bad_request(detail="invalid webhook URL specified") from cause
    if not host:
        raise bad_request(detail="invalid webhook URL specified")
    if len(secret) > SECRET_MAX:
        raise bad_request(detail="secret token is too long")
    if not _SECRET.fullmatch(secret):
        raise bad_request(detail="secret token contains unallowed characters")
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        raise bad_request(detail="bad webhook: An HTTPS URL must be provided for webhook")
    call.updates.allow(call.params.loose_json("allowed_updates"))
    most = min(max(call.params.number("max_connections", 40), 1), 100)
    hook = Webhook(url=url, secret_token=secret, max_connections=most)
    call.world.put(call.world.setup.model_copy(update={"webhook": hook}))
    return True


def delete_webhook(call: Call) -> bool:
    """DeleteWebhook."""
    if call.params.flag("drop_pending_updates"):
        call.updates.clear()
    setup = call.world.setup
    if setup.webhook is not None:
        call.world.put(setup.model_copy(update={"webhook": None}))
    return True


def get_webhook_info(call: Call) -> Json:
    """GetWebhookInfo."""
    setup = call.world.setup
    hook = setup.webhook
    shown: Json = {
        "url": hook.url if hook else "",
        "has_custom_certificate": False,
        "pending_update_count": len(call.updates.pending()),
    }
    if hook is not None:
        shown |= {"max_connections": hook.max_connections, "ip_address": "127.0.0.1"}
        if hook.last_error_date:
            shown["last_error_date"] = hook.last_error_date
            shown["last_error_message"] = hook.last_error_message
    if setup.allowed_updates is not None:
        shown["allowed_updates"] = list(setup.allowed_updates)
    return shown


def log_out(call: Call) -> bool:
    """logOut: the cloud server refuses the bot for ten minutes."""
    until = call.world.now() + LOGGED_OUT_SECONDS
    call.world.put(call.world.setup.model_copy(update={"logged_out_until": until}))
    return True


def close(call: Call) -> bool:
    """close: nothing to let go of, the world stays."""
    return call.world.setup is not None


METHODS = {
    "getMe": get_me,
    "setMyCommands": set_my_commands,
    "getMyCommands": get_my_commands,
    "deleteMyCommands": delete_my_commands,
    "setWebhook": set_webhook,
    "deleteWebhook": delete_webhook,
    "getWebhookInfo": get_webhook_info,
    "logOut": log_out,
    "close": close,
    "getMyName": _getter("name"),
    "setMyName": _setter("name"),
    "getMyDescription": _getter("description"),
    "setMyDescription": _setter("description"),
    "getMyShortDescription": _getter("short_description"),
    "setMyShortDescription": _setter("short_description"),
}
