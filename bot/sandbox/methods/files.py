"""getFile.

Keeps: what is over the Bot API's 20 MB is refused, though a person could send it.
"""

from __future__ import annotations

from typing import Any

from bot.sandbox import views
from bot.sandbox.errors import bad_request
from bot.sandbox.methods.call import Call
from bot.sandbox.model import StoredFile


def get_file(call: Call) -> dict[str, Any]:
    """GetFile."""
    file_id = call.params.text("file_id")
    if not file_id:
        raise bad_request(detail="file_id not specified")
    held = call.world.get(StoredFile, file_id)
    if held is None:
        raise bad_request(detail="invalid file_id")
    if held.size > views.DOWNLOAD_BYTES_MAX:
        raise bad_request(detail="file is too big")
    return views.file(held, with_path=True)


METHODS = {"getFile": get_file}
