"""The form of a reservation. The service checks what it says; this converts."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from django import forms
from django.utils.timezone import get_current_timezone_name

from clusters.models import Flavor
from controlplane.kernel.forms import Posted, StrictForm, moment
from tenants.models import Project, Tenant
from tenants.services.quotas import MAX_MILLI
from tenants.services.reservations import MAX_NOTE, Weekly
from tenants.web.named_place import called


class ReservationForm(StrictForm):
    """`amount` is in whole units of the flavor; moments are in the reader's own time zone."""

    pointers = {"/amount_milli": "amount"}

    of = forms.ChoiceField(label="For")
    flavor = forms.ChoiceField()
    amount = forms.DecimalField(
        min_value=Decimal("0.001"), max_value=Decimal(MAX_MILLI) / 1000, decimal_places=3,
        help_text="GPUs, slices or cores, over all clusters. Quota stays as it is.",
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
        owners: Sequence[Project | Tenant],
        flavors: Iterable[Flavor],
    ) -> None:
        super().__init__(data, files)
        self._owners = {str(owner.id): owner for owner in owners}
        self.may_make = bool(owners)
        self.choose("of", [(id, called(owner)) for id, owner in self._owners.items()])
        self.choose("flavor", [("", "Choose one"), *((f.name, f.name) for f in flavors)])

    @property
    def owner(self) -> Project | Tenant:
        return self._owners[self.cleaned_data["of"]]

    @property
    def amount_milli(self) -> int:
        amount: Decimal = self.cleaned_data["amount"]
        return int(amount * 1000)

    @property
    def weekly(self) -> Weekly | None:
        until = self.cleaned_data["weekly_until"]
        return Weekly(zone=get_current_timezone_name(), until=until) if until else None
