"""The forms of a defragmentation: what may be lost, and when. The service checks the window."""

from django import forms

from controlplane.kernel.forms import StrictForm, moment
from scheduler.services.defragmentations import BUDGET_S

MOST_HOURS = 100_000


class BudgetForm(StrictForm):
    """`hours` is of work on a GPU."""

    hours = forms.IntegerField(
        label="GPU-hours that may be lost",
        min_value=1,
        max_value=MOST_HOURS,
        initial=BUDGET_S // 3600,
        help_text="Of work since it was last saved, in all.",
    )

    @property
    def budget_s(self) -> int:
        hours: int = self.cleaned_data["hours"]
        return hours * 3600


class DefragmentationForm(BudgetForm):
    """Moments are in the reader's own time zone."""

    starts_at = moment("From", "The first cycle after that moves the work.")
    ends_at = moment("Until", "What has not begun by then is not done; at most a week later.")
