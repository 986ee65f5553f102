"""The forms of budgets. The service checks what it says; this converts."""

from collections.abc import Sequence

from django import forms

from controlplane.kernel.forms import Posted, StrictForm
from tenants.models import MAX_BUDGET_H, Budget, BudgetMode, Period, Project, Tenant
from tenants.services.budgets import Terms
from tenants.web.named_place import called

_PERIODS = (
    (Period.MONTH, "Each month"),
    (Period.QUARTER, "Each quarter"),
    (Period.ONCE, "Once, from the first day on"),
)
_MODES = (
    (BudgetMode.WARN, "Say so, and let everything start"),
    (BudgetMode.SOFT, "Start nothing new; what runs goes on"),
    (BudgetMode.SAFE, "Start only what is covered to the end of its run-time limit"),
    (BudgetMode.HARD, "Stop what runs on GPUs, and start nothing new"),
)


def _day(label: str, help_text: str) -> forms.DateField:
    widget = forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"})
    return forms.DateField(label=label, help_text=help_text, widget=widget, required=False)


class _Terms(StrictForm):
    """Whole GPU-hours; days are of UTC. `seen` is what was `asked` when it was shown who would be
    stopped at once."""

    beside = frozenset({"seen"})

    limit_h = forms.IntegerField(
        label="GPU-hours", min_value=0, max_value=MAX_BUDGET_H,
        help_text="A slice counts as the part of a GPU that it takes, a share as its part.",
    )  # fmt: skip
    mode = forms.ChoiceField(
        label="When it is used up", choices=_MODES, initial=BudgetMode.SOFT,
        help_text="What was used since its period began counts already. What is stopped has its"
        " notice and grace, and waits for the next period or for more hours; work that may not be"
        " preempted is stopped too.",
    )  # fmt: skip
    starts_on = _day("First day", "Of a budget for once, in UTC.")
    ends_on = _day("Ends on", "The day after its last, in UTC.")

    def asked(self) -> str:
        """What a valid form asks for, as one text to compare."""
        asked = {name: str(self.cleaned_data.get(name)) for name in self.fields}
        return " ".join(f"{name}={value}" for name, value in sorted(asked.items()))

    @property
    def terms(self) -> Terms:
        return Terms(
            limit_h=self.cleaned_data["limit_h"],
            mode=BudgetMode(self.cleaned_data["mode"]),
            starts_on=self.cleaned_data.get("starts_on"),
            ends_on=self.cleaned_data.get("ends_on"),
        )


class BudgetForm(_Terms):
    """Of a new one."""

    of = forms.ChoiceField(label="Of")
    period = forms.ChoiceField(label="For", choices=_PERIODS)

    field_order = ("of", "period")

    def __init__(
        self, data: Posted = None, files: Posted = None, *, owners: Sequence[Project | Tenant]
    ) -> None:
        super().__init__(data, files)
        self._owners = {str(owner.id): owner for owner in owners}
        self.may_set = bool(owners)
        self.choose("of", [(id, called(owner)) for id, owner in self._owners.items()])

    @property
    def owner(self) -> Project | Tenant:
        return self._owners[self.cleaned_data["of"]]

    @property
    def its_period(self) -> Period:
        return Period(self.cleaned_data["period"])


class TermsForm(_Terms):
    """Of one that there is, with the version that its reader saw."""

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=2**31 - 1)

    def __init__(self, data: Posted = None, files: Posted = None, *, budget: Budget) -> None:
        there = {name: getattr(budget, name) for name in self.base_fields}
        super().__init__(data, files, initial=there)
        if budget.period != Period.ONCE:
            del self.fields["starts_on"], self.fields["ends_on"]
