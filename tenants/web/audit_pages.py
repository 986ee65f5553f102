"""The audit as a page: filters, a table of who did what, and files to take away."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils import timezone

from controlplane.api.auth import actor_of
from controlplane.audit.actions import ACTIONS
from controlplane.kernel.forms import Posted, StrictForm
from controlplane.kernel.htmx import id_in, page, partial
from tenants.access import Action
from tenants.models import Project
from tenants.selectors import audit, people
from tenants.selectors.audit import MOST_EXPORTED, Asked, Page

_DAY = forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})


class AuditForm(StrictForm):
    """Which events are wanted. Days are whole ones in the reader's own time zone."""

    beside = frozenset({"before"})

    project = forms.TypedChoiceField(required=False, coerce=UUID, empty_value=None)
    action = forms.ChoiceField(required=False, label="What was done")
    who = forms.CharField(required=False, max_length=150)
    people = forms.BooleanField(required=False, label="Only what people did")
    since = forms.DateField(required=False, label="From", widget=_DAY)
    until = forms.DateField(required=False, label="Until", widget=_DAY)

    def __init__(self, data: Posted, *, projects: Sequence[Project]) -> None:
        super().__init__(data)
        self.choose("project", [("", "All"), *((str(p.id), p.full_name) for p in projects)])
        self.choose("action", [("", "Anything"), *((name, name) for name in sorted(ACTIONS))])

    def clean_until(self) -> date | None:
        until: date | None = self.cleaned_data["until"]
        if until == date.max:
            raise forms.ValidationError("There is no day after this one.")
        return until

    @property
    def asked(self) -> Asked:
        found = self.cleaned_data
        return Asked(
            project=found["project"],
            who=found["who"],
            people=found["people"],
            actions=(found["action"],) if found["action"] else (),
            since=_midnight(found["since"]) if found["since"] else None,
            until=_midnight(found["until"] + timedelta(days=1)) if found["until"] else None,
        )


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


@page("GET", "HEAD")
def audit_list(request: HttpRequest) -> HttpResponse:
    """What the actor may read of it, newest first; 422 with the form for filters that are none."""
    actor = actor_of(request)
    form = AuditForm(
        request.GET, projects=people.projects_by_name(actor=actor, action=Action.VIEW_AUDIT)
    )
    valid = form.is_valid()
    asked = form.asked if valid else Asked()
    shown = (
        audit.page(actor=actor, asked=asked, before=id_in(request.GET, "before"))
        if valid
        else Page((), None)
    )
    older = request.GET.copy()
    if shown.older is not None:
        older["before"] = str(shown.older)
    context = {
        "form": form,
        "page": shown,
        "may_read": audit.may_read(actor),
        "narrowed": bool(request.GET),
        "older_url": f"{reverse('audit-list')}?{older.urlencode()}" if shown.older else "",
        "exported": _exported(asked) if valid else "",
        "most_exported": MOST_EXPORTED,
    }
    return partial(
        request, "tenants/audit_list.html", "rows", context, status=200 if valid else 422
    )


def _exported(asked: Asked) -> str:
    """The query by which the API gives the same."""
    query = QueryDict(mutable=True)
    for name, value in (
        ("project", asked.project),
        ("who", asked.who),
        ("by", "people" if asked.people else ""),
        ("action", ",".join(asked.actions)),
        ("since", asked.since and asked.since.isoformat()),
        ("until", asked.until and asked.until.isoformat()),
    ):
        if value:
            query[name] = str(value)
    return query.urlencode()
