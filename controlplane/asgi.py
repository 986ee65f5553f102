"""The ASGI application, behind a wall against large bodies: nothing past the limit is ever
stored."""

import os
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, cast

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings.dev")

type Message = MutableMapping[str, Any]  # Any: ASGI messages
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type Policy = Mapping[str, Collection[str] | str]
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
    from controlplane.api.errors import PATHS

    kind, content = _problem(scope["path"]) if scope["path"].startswith(PATHS) else _page()
    headers = [*kind.items(), ("content-length", str(len(content))), ("connection", "close")]
    await send(
        {
            "type": "http.response.start",
            "status": 413,
            "headers": [(name.encode(), value.encode()) for name, value in headers],
        }
    )
    await send({"type": "http.response.body", "body": content})


def _problem(path: str) -> tuple[dict[str, str], bytes]:
    """The refusal to a program: headers and body."""
    from controlplane.api.errors import MEDIA_TYPE, document, too_large
    from controlplane.api.render import dumps

    content = dumps(document(too_large(), status=413, instance=path))
    return {"content-type": MEDIA_TYPE}, content


def _page() -> tuple[dict[str, str], bytes]:
    """The refusal to a browser: headers, of which Django's middleware set none here, and body."""
    from django.conf import settings
    from django.template.loader import render_to_string
    from django.utils.csp import build_policy

    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": build_policy(cast(Policy, settings.SECURE_CSP)),
        "x-content-type-options": "nosniff",
    }
    return headers, render_to_string("413.html", {"demo": settings.BERTH_DEMO}).encode()


def _application() -> App:
    django = get_asgi_application()
    from django.conf import settings

    return body_limit(cast(App, django), limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


application = _application()
