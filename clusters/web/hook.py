"""What the webhook of a cluster's manifest asks: not people, but API servers."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from clusters import registry
from controlplane.kernel.errors import Invalid


@never_cache
@csrf_exempt  # no session is looked at
@require_POST
def pod_admission(request: HttpRequest) -> HttpResponse:
    """An AdmissionReview for an AdmissionReview; 400 with a sentence for anything else. No rows
    are read or written, and nobody has to be signed in: all is said by what is asked."""
    try:
        return JsonResponse(registry.admitted(request.body))
    except Invalid as error:
        return HttpResponse(f"{error.message}\n", status=400, content_type="text/plain")
