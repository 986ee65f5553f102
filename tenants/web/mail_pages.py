"""Of what one is told by mail."""

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from controlplane.api.auth import actor_of
from controlplane.kernel.forms import StrictForm
from controlplane.kernel.htmx import go, page
from tenants.models import OF_WORK, Event
from tenants.services import mailing

_LABELS = {
    Event.WORK_STARTED: "starts",
    Event.WORK_IDLE: "leaves its devices unused, and may lose them for that",
    Event.WORK_STOPPED: "is stopped early, and waits again",
    Event.WORK_ENDED: "ends, or fails",
}


class MailForm(StrictForm):
    mailed_of = forms.MultipleChoiceField(
        label="When work of yours",
        choices=[(event.value, _LABELS[event]) for event in OF_WORK],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="What comes to pass within half a minute is one message.",
    )


@page("GET", "HEAD", "POST")
def mail(request: HttpRequest) -> HttpResponse:
    actor = actor_of(request)
    is_post = request.method == "POST"
    form = MailForm(request.POST if is_post else None, initial={"mailed_of": actor.user.mailed_of})
    if is_post and form.is_valid():
        mailing.be_told(actor=actor, of=form.cleaned_data["mailed_of"])
        messages.success(request, "Saved.")
        return go(request, reverse("mail"))
    context = {"form": form, "address": actor.user.email, "is_sent": bool(settings.MAILERS)}
    return render(request, "tenants/mail.html", context, status=422 if is_post else 200)
