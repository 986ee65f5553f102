"""The ASGI application, behind a wall against large bodies: nothing past the limit is ever
stored."""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings.dev")

type Message = MutableMapping[str, Any]  # Any: ASGI messages
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type App = Callable[[Message, Receive, Send], Awaitable[None]]

DRAINED_BYTES = 32 * 1024 * 1024
"""How much of a refused body is read and dropped, so that a client hears the answer, not a
reset."""


def body_limit(app: App, *, limit: int) -> App:
    """`app`, given only requests whose body has at most `limit` bytes; 413 for the others."""

    async def limited(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        body = bytearray()
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            piece = message.get("body", b"")
            size += len(piece)
            if size <= limit:
                body += piece
            more = message.get("more_body", False)
            if not more or size > DRAINED_BYTES:
                break
        if size > limit:
            await _refuse(scope, send)
            return
        sent = False

        async def replay() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await app(scope, replay, send)

    return limited


async def _refuse(scope: Message, send: Send) -> None:
    from controlplane.api.errors import MEDIA_TYPE, document
    from controlplane.api.render import dumps
    from controlplane.kernel.errors import AppError

    error = AppError("The body is larger than 1 MiB.", code="too-large")
    content = dumps(document(error, status=413, instance=scope["path"]))
    await send(
        {
            "type": "http.response.start",
            "status": 413,
            "headers": [
                (b"content-type", MEDIA_TYPE.encode()),
                (b"content-length", str(len(content)).encode()),
                (b"connection", b"close"),
            ],
        }
    )
    await send({"type": "http.response.body", "body": content})


def _application() -> App:
    django = get_asgi_application()
    from django.conf import settings

    return body_limit(cast(App, django), limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


application = _application()
