"""The forms that reorder what waits."""

from django import forms

from controlplane.kernel.forms import StrictForm
from scheduler.models import Workload
from scheduler.services.reordering import Change, To
from scheduler.services.specs import PRIORITY_CLASSES

_AS_IT_IS = [("", "as it is")]


class OrderForm(StrictForm):
    """Of an array: of what waits of it."""

    priority_class = forms.ChoiceField(
        label="Priority",
        choices=[*_AS_IT_IS, *((name, name) for name in PRIORITY_CLASSES)],
        required=False,
    )
    to = forms.ChoiceField(
        label="Place in the queue",
        choices=[*_AS_IT_IS, (To.FIRST.value, "first"), (To.LAST.value, "last")],
        required=False,
    )

    @property
    def change(self) -> Change:
        """What was asked for, of a valid form."""
        asked = self.cleaned_data
        to = To(asked["to"]) if asked["to"] else None
        return Change(asked["priority_class"] or None, to, asked.get("version"))


class WorkloadOrderForm(OrderForm):
    """With the version that its reader saw."""

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=2**31 - 1)


def of_waiting(workload: Workload) -> WorkloadOrderForm:
    """As the page of the workload shows it."""
    return WorkloadOrderForm(initial={"version": workload.version})
