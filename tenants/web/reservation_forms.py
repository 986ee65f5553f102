"""The form of a reservation. The service checks what it says; this converts."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from django import forms
from django.utils.timezone import get_current_timezone_name

from clusters.models import Flavor
from controlplane.kernel.forms import Posted, StrictForm, moment
from tenants.models import Project
from tenants.services.quotas import MAX_MILLI
from tenants.services.reservations import MAX_NOTE, Weekly


class ReservationForm(StrictForm):
    """`amount` is in whole units of the flavor; moments are in the reader's own time zone."""

    pointers = {"/amount_milli": "amount"}

    project = forms.ChoiceField(label="For")
    flavor = forms.ChoiceField()
    amount = forms.DecimalField(
        min_value=Decimal("0.001"), max_value=Decimal(MAX_MILLI) / 1000, decimal_places=3,
        help_text="GPUs, slices or cores, over all clusters. The project's quota stays as it is.",
    )  # fmt: skip
    starts_at = moment("From", "Work of others that might still run then does not start on it.")
    ends_at = moment("Until", "Nothing is kept from then on.")
    weekly_until = forms.DateField(
        label="Each week until", required=False,
        widget=forms.DateInput(format="%Y-%m-%d", attrs={"type": "date"}),
        help_text="The last day on which it begins. Empty: once.",
    )  # fmt: skip
    note = forms.CharField(label="What for", max_length=MAX_NOTE, required=False)

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        projects: Sequence[Project],
        flavors: Iterable[Flavor],
    ) -> None:
        super().__init__(data, files)
        self.may_make = bool(projects)
        self.choose("project", [(str(p.id), p.full_name) for p in projects])
        self.choose("flavor", [("", "Choose one"), *((f.name, f.name) for f in flavors)])

    @property
    def amount_milli(self) -> int:
        amount: Decimal = self.cleaned_data["amount"]
        return int(amount * 1000)

    @property
    def weekly(self) -> Weekly | None:
        until = self.cleaned_data["weekly_until"]
        return Weekly(zone=get_current_timezone_name(), until=until) if until else None
