"""The form of a quota request. The service checks what it says; this converts."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms

from clusters.models import Flavor
from controlplane.kernel.errors import Problem
from tenants.models import Project
from tenants.services import quotas, requests

_FIELDS = {"/nominal_milli": "amount", "/reason": "reason"}


class RequestForm(forms.Form):
    """Asks that a project's nominal quota become `amount`, in whole units of the flavor."""

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
        data: Any = None,  # Any: Django's QueryDict or None
        *,
        projects: Sequence[Project],
        flavors: Iterable[Flavor],
        initial: dict[str, object] | None = None,
    ) -> None:
        super().__init__(data, initial=initial)
        chosen = self.fields["project"]
        assert isinstance(chosen, forms.ChoiceField)  # noqa: S101  # for the type checker
        chosen.choices = [(str(p.id), f"{p.tenant.name} / {p.name}") for p in projects]
        flavor = self.fields["flavor"]
        assert isinstance(flavor, forms.ChoiceField)  # noqa: S101  # for the type checker
        flavor.choices = [("", "Choose one"), *((f.name, f.name) for f in flavors)]

    @property
    def project_id(self) -> UUID:
        return UUID(self.cleaned_data["project"])

    @property
    def nominal_milli(self) -> int:
        amount: Decimal = self.cleaned_data["amount"]
        return int(amount * 1000)

    def show(self, problems: Iterable[Problem]) -> None:
        """Put each problem beside the field that it is about, else above the form."""
        for problem in problems:
            error = forms.ValidationError(problem.message, code=problem.code)
            self.add_error(_FIELDS.get(problem.pointer), error)
