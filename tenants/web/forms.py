"""The form of a token. The service checks what it says; this converts."""

from collections.abc import Sequence
from datetime import timedelta

from django import forms

from controlplane.kernel.forms import Posted, StrictForm
from tenants.models import Project, Scope

SCOPES = {
    Scope.READ: "See workloads, queues, quota and spend",
    Scope.SUBMIT: "Submit and cancel workloads",
    Scope.GATE: "See and decide gates; alone, nothing else",
    Scope.QUOTA: "Ask for quota",
    Scope.OPERATE: "Operate clusters, flavors, prices, quotas and queues",
}
"""What each scope is for, in words."""
LIFETIMES = {"1": "in a day", "7": "in a week", "30": "in 30 days", "90": "in 90 days"}
"""Days that a token may live, in words."""


class TokenForm(StrictForm):
    """A new token of the one who asks, or of a service account, in all projects that they see or
    in one of them; `everywhere` says the former."""

    name = forms.CharField(max_length=100, help_text="What it is for: a machine, a pipeline.")
    scopes = forms.MultipleChoiceField(
        label="It may", widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one."},
    )  # fmt: skip
    project = forms.ChoiceField(label="Where", required=False)
    days = forms.ChoiceField(label="Expires", choices=list(LIFETIMES.items()), initial="30")

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        scopes: Sequence[Scope],
        projects: Sequence[Project],
        everywhere: str = "In all projects that you see",
    ) -> None:
        usual = [scope for scope in (Scope.READ, Scope.SUBMIT) if scope in scopes]
        super().__init__(data, files, initial={"scopes": usual})
        self.choose("scopes", [(scope, SCOPES[scope]) for scope in scopes])
        names = [(str(p.id), p.full_name) for p in projects]
        self.choose("project", [("", everywhere), *names])

    @property
    def lifetime(self) -> timedelta:
        return timedelta(days=int(self.cleaned_data["days"]))
