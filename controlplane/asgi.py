"""The ASGI application, behind a wall against large bodies: nothing past the limit is ever
stored."""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from io import BytesIO
from typing import Any, cast

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.csp import ContentSecurityPolicyMiddleware
from django.middleware.security import SecurityMiddleware
from django.template.loader import render_to_string

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
    answer = _refusal(ASGIRequest(scope, BytesIO()))
    headers = {**answer.headers, "Content-Length": str(len(answer.content)), "Connection": "close"}
    await send(
        {
            "type": "http.response.start",
            "status": answer.status_code,
            "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": answer.content})


def _refusal(request: HttpRequest) -> HttpResponse:
    """413 as a program or a browser reads it, with the headers that Django's answers have."""
    from controlplane.api import errors

    if request.path.startswith(errors.PREFIX):
        refusal = errors.answer(errors.too_large(), status=413, request=request)
    else:
        page = render_to_string("413.html", {"demo": settings.BERTH_DEMO})
        refusal = HttpResponse(page, status=413)
    for guard in (XFrameOptionsMiddleware, ContentSecurityPolicyMiddleware, SecurityMiddleware):
        guard(lambda _: refusal).process_response(request, refusal)
    return refusal


class InOneThread(ASGIHandler):
    """Django's own, but that a request's middleware and view, none of which is asynchronous, run
    in its thread one after the other. Each alone would go there and back: a dozen times."""

    def load_middleware(self, is_async: bool = False) -> None:  # Django's
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response)(request)


def _application() -> App:
    django.setup(set_prefix=False)
    return body_limit(cast(App, InOneThread()), limit=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


application = _application()
