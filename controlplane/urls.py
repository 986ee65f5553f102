"""Every path of Berth: pages at the root, the API below /api/v1/, probes, the read-only back
office."""

from django.contrib import admin
from django.core.exceptions import BadRequest, RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, include, path
from django.views import defaults

from controlplane import health
from controlplane.api import errors
from controlplane.kernel.errors import AppError, Invalid, NotAllowed, NotFound
from controlplane.portal.views import back_office_password, back_office_sign_in

api = [
    path("", include("controlplane.api.urls")),
    path("", include("tenants.web.api_urls")),
    path("", include("clusters.web.api_urls")),
    path("", include("scheduler.web.api_urls")),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", health.metrics, name="metrics"),
    path("api/v1/", include((api, "api"))),
    path("admin/login/", back_office_sign_in),
    path("admin/password_change/", admin.site.admin_view(back_office_password)),
    path("admin/", admin.site.urls),
    path("", include("controlplane.portal.urls")),
    path("", include("scheduler.web.urls")),
    path("", include("tenants.web.urls")),
    path("", include("clusters.web.urls")),
]


def _refusal(error: AppError, status: int, request: HttpRequest) -> HttpResponse | None:
    if request.path.startswith(errors.PREFIX):
        return errors.answer(error, status=status, request=request)
    return None


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig):
        error = errors.too_large()
        return _refusal(error, 413, request) or render(request, "413.html", status=413)
    malformed = Invalid("The request is malformed.", code="malformed")
    detail = str(exception) if isinstance(exception, BadRequest) else ""
    return _refusal(malformed, 400, request) or render(
        request, "400.html", {"detail": detail}, status=400
    )


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    error = NotAllowed("This is not permitted.")
    return _refusal(error, 403, request) or defaults.permission_denied(request, exception)


def handler404(request: HttpRequest, exception: Exception) -> HttpResponse:
    error = NotFound("There is nothing at this path.")
    return _refusal(error, 404, request) or defaults.page_not_found(request, exception)


def handler500(request: HttpRequest) -> HttpResponse:
    error = AppError("An error in Berth; its log says more.", code="internal")
    return _refusal(error, 500, request) or defaults.server_error(request)
