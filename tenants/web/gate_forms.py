"""The form of a gate that all work of a project gets. The service checks what it says."""

from django import forms

from controlplane.kernel.forms import StrictForm
from tenants.gating import GATE_NAME, KINDS, MAX_DECIDE_S, GateSpec


class StandingGateForm(StrictForm):
    name = forms.RegexField(
        GATE_NAME, label="Name", max_length=40,
        help_text="Of a-z, 0-9 and -, as data-ready.",
    )  # fmt: skip
    kind = forms.ChoiceField(
        label="It is about", choices=[(kind, kind.capitalize()) for kind in KINDS],
        help_text="Nobody opens one for approval of their own work.",
    )  # fmt: skip
    owner = forms.CharField(
        label="Who opens it", max_length=150, help_text="Somebody with a role in the project."
    )
    hours = forms.IntegerField(
        label="Within, hours", required=False, min_value=1, max_value=MAX_DECIDE_S // 3600,
        help_text="Not opened by then, the work is cancelled. Empty: it waits.",
    )  # fmt: skip

    @property
    def gate(self) -> GateSpec:
        said = self.cleaned_data
        within_s = None if said["hours"] is None else said["hours"] * 3600
        return GateSpec(said["name"], said["kind"], said["owner"].strip(), within_s)
