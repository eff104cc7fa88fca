"""The methods of the Bot API, one module for each kind of thing they touch.

Keeps: a method either changes the world whole and answers, or raises an ApiRefusal and changes
nothing; names are matched without regard to letter case, as the server does.
"""

from __future__ import annotations

from bot.sandbox.methods import about, chats, edits, files, reactions, sending
from bot.sandbox.methods.call import Call, Method

METHODS: dict[str, Method] = {
    name.lower(): method
    for module in (about, chats, edits, files, reactions, sending)
    for name, method in module.METHODS.items()
}

__all__ = ["METHODS", "Call", "Method"]
