"""The form of a price. The service checks what it says; this converts."""

from collections.abc import Iterable
from decimal import Decimal

from django import forms

from clusters.models import Cluster, Flavor
from controlplane.kernel.forms import Posted, StrictForm, moment


class RateForm(StrictForm):
    """The moment is in the reader's own time zone."""

    pointers = {"/from": "starts_at"}

    flavor = forms.ChoiceField()
    cluster = forms.ChoiceField(
        required=False, help_text="A cluster's own price goes before the one for anywhere."
    )
    price_per_hour = forms.DecimalField(
        label="Price of an hour", min_value=Decimal(0), max_digits=12, decimal_places=6,
        help_text="Of one GPU, slice or core.",
    )  # fmt: skip
    starts_at = moment("From", "Left empty, it holds from now on.", required=False)

    def __init__(
        self,
        data: Posted = None,
        files: Posted = None,
        *,
        flavors: Iterable[Flavor],
        clusters: Iterable[Cluster],
    ) -> None:
        super().__init__(data, files)
        self.choose("flavor", [("", "Choose one"), *((f.name, f.name) for f in flavors)])
        self.choose("cluster", [("", "Anywhere"), *((c.name, c.name) for c in clusters)])
