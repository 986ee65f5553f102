"""The forms of a project's caps, weight, least run time, idle limit and isolation. The services
check what they say; these convert."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, ClassVar

from django import forms

from clusters.models import Isolation
from controlplane.kernel.forms import StrictForm
from tenants.models import (
    CAPS,
    MAX_CAP,
    MAX_IDLE_TIMEOUT_S,
    MAX_MIN_RUN_TIME_S,
    Project,
)
from tenants.selectors.idle_limits import IdleLimit
from tenants.services.queues import Caps
from tenants.services.weights import MAX_WEIGHT


def _workloads(label: str, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(
        label=label, help_text=help_text, min_value=1, max_value=MAX_CAP, required=False
    )


class CapsForm(StrictForm):
    """All caps of a project; an empty field is no cap. GPUs are in whole ones."""

    max_running = _workloads("Workloads that start or run")
    max_pending = _workloads("Workloads that wait", "More are refused when they are submitted.")
    user_max_running = _workloads("Workloads of one submitter that start or run")
    user_max_pending = _workloads("Workloads of one submitter that wait")
    user_max_gpus = forms.DecimalField(
        label="GPUs that one submitter holds", required=False, decimal_places=3,
        min_value=Decimal("0.001"), max_value=Decimal(MAX_CAP) / 1000,
        help_text="Of all flavors together; a slice or a share counts as its part of a GPU.",
    )  # fmt: skip

    max_submits_a_minute = _workloads(
        "Workloads submitted in a minute", "An array counts as one. More are refused for a while."
    )
    user_max_submits_a_minute = _workloads("Workloads of one submitter in a minute")

    _WORKLOADS: ClassVar = tuple(cap for cap in CAPS if cap != "user_max_gpus_milli")

    def keep(self, caps: Iterable[str]) -> None:
        """Show these as what who fills it in may not change."""
        for name in caps:
            field = self.fields[name.removesuffix("_milli")]
            field.widget.attrs["readonly"] = True
            field.help_text = "Set by who is above it: ask them to change it."

    @property
    def caps(self) -> Caps:
        gpus: Decimal | None = self.cleaned_data["user_max_gpus"]
        return Caps(
            **{name: self.cleaned_data[name] for name in self._WORKLOADS},
            user_max_gpus_milli=None if gpus is None else int(gpus * 1000),
        )

    @classmethod
    def of(cls, project: Project) -> "CapsForm":
        """Not posted yet: with what there is now."""
        initial: dict[str, object] = {name: getattr(project, name) for name in cls._WORKLOADS}
        if project.user_max_gpus_milli is not None:
            initial["user_max_gpus"] = Decimal(project.user_max_gpus_milli) / 1000
        return cls(initial=initial)


class WeightForm(StrictForm):
    """The part of a project, or a tenant, in fair share among its siblings."""

    weight = forms.IntegerField(
        label="Weight", min_value=1, max_value=MAX_WEIGHT,
        help_text="With 2 it borrows twice what a sibling with 1 does, where both want all.",
    )  # fmt: skip


class MinRunTimeForm(StrictForm):
    """How long its work runs before it may be evicted; empty says nothing."""

    min_run_time_s = forms.IntegerField(
        label="Seconds", min_value=0, max_value=MAX_MIN_RUN_TIME_S, required=False,
        help_text="So long others wait for what it borrows. Of all above it the shortest holds.",
    )  # fmt: skip


class LeastIsolationForm(StrictForm):
    """How far its work has to be kept from its neighbours."""

    least_isolation = forms.ChoiceField(
        label="Between neighbours on one GPU",
        choices=[
            (Isolation.HARDWARE, "Hardware: slices and whole GPUs, no shares"),
            (Isolation.MEMORY, "At least memory limits (MPS): a fault may hit neighbours"),
            (Isolation.NONE, "Nothing (time-slicing): neighbours share memory and time"),
        ],
        help_text="Shares that keep less apart are refused to its work. What runs goes on.",
    )  # fmt: skip


class IdleLimitForm(StrictForm):
    """How long its work may leave its devices unused; both empty say nothing."""

    idle_timeout_s = forms.IntegerField(
        label="Freed after, in seconds", min_value=0, max_value=MAX_IDLE_TIMEOUT_S, required=False,
        help_text="0 is never. Of all above it the shortest holds.",
    )  # fmt: skip
    idle_warning_s = forms.IntegerField(
        label="Told before, in seconds", min_value=0, max_value=MAX_IDLE_TIMEOUT_S, required=False,
        help_text="Who uses the devices again by then keeps them.",
    )  # fmt: skip

    def clean(self) -> dict[str, Any]:  # Any: as Django has it
        said = super().clean()
        missing = [name for name in self.fields if said.get(name) is None]
        if not self.errors and len(missing) == 1:
            self.add_error(missing[0], "Say both or neither of the two.")
        return said

    @property
    def limit(self) -> IdleLimit | None:
        timeout_s, warning_s = (self.cleaned_data[name] for name in self.fields)
        return None if timeout_s is None else IdleLimit(timeout_s, warning_s)
