"""The forms of a quota request and of a token. The services check what they say; these
convert."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from decimal import Decimal

from django import forms

from clusters.models import Flavor
from controlplane.kernel.forms import Posted, StrictForm
from tenants.models import Project, Scope
from tenants.services import quotas, requests

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


class RequestForm(StrictForm):
    """Asks that a project's nominal quota become `amount`, in whole units of the flavor."""

    pointers = {"/nominal_milli": "amount"}

    project = forms.ChoiceField()
    flavor = forms.ChoiceField()
    amount = forms.DecimalField(
        label="New nominal quota", min_value=Decimal(0),
        max_value=Decimal(quotas.MAX_MILLI) / 1000, decimal_places=3,
        help_text="What it should become in all, not what to add: GPUs, slices or cores.",
    )  # fmt: skip
    reason = forms.CharField(
        max_length=requests.MAX_TEXT, widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What for, until when, and what happens without it. The approver reads this.",
    )  # fmt: skip

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        projects: Sequence[Project],
        flavors: Iterable[Flavor],
        initial: dict[str, object] | None = None,
    ) -> None:
        super().__init__(data, files, initial=initial)
        self.choose("project", [(str(p.id), p.full_name) for p in projects])
        self.choose("flavor", [("", "Choose one"), *((f.name, f.name) for f in flavors)])

    @property
    def nominal_milli(self) -> int:
        amount: Decimal = self.cleaned_data["amount"]
        return int(amount * 1000)


class TokenForm(StrictForm):
    """A new token of the one who asks, in all projects that they see or in one of them."""

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
    ) -> None:
        usual = [scope for scope in (Scope.READ, Scope.SUBMIT) if scope in scopes]
        super().__init__(data, files, initial={"scopes": usual})
        self.choose("scopes", [(scope, SCOPES[scope]) for scope in scopes])
        names = [(str(p.id), p.full_name) for p in projects]
        self.choose("project", [("", "In all projects that you see"), *names])

    @property
    def lifetime(self) -> timedelta:
        return timedelta(days=int(self.cleaned_data["days"]))
