"""The form of one quota. The services check what it says; this converts."""

from datetime import datetime
from decimal import Decimal

from django import forms

from controlplane.kernel.forms import StrictForm, moment
from tenants.models import Quota, TenantQuota
from tenants.services.enforcement import Excess, begins_at
from tenants.services.quotas import MAX_MILLI, Amounts

EXCESS = {
    Excess.DRAIN: "It ends by itself; nothing new starts until then",
    Excess.DELAY: "It is preempted from a moment on, unless it has ended by then",
    Excess.PREEMPT: "It is preempted now, with its notice and grace",
}
"""What becomes of what is held beyond a quota, in words."""
_ASKED = ("nominal", "borrowing_limit", "lending_limit", "excess", "enforce_at")


def _amount(label: str, help_text: str, *, required: bool = False) -> forms.DecimalField:
    return forms.DecimalField(
        label=label, help_text=help_text, required=required, min_value=Decimal(0),
        max_value=Decimal(MAX_MILLI) / 1000, decimal_places=3,
    )  # fmt: skip


class LoweringForm(StrictForm):
    """Amounts are in whole units of the flavor; an empty limit is none. `version` is the one that
    was seen, 0 for none yet; `seen` is what was `asked` when it was shown who would go."""

    beside = frozenset({"seen"})
    pointers = {f"/{name}_milli": name for name in ("nominal", "borrowing_limit", "lending_limit")}

    nominal = _amount("Nominal", "Guaranteed: GPUs, slices or cores.", required=True)
    borrowing_limit = _amount("Borrowing limit", "At most so much beyond. Empty: no limit.")
    lending_limit = _amount("Lending limit", "At most so much is lent. Empty: all that is idle.")
    excess = forms.ChoiceField(
        label="What is held beyond nominal and borrowing limit",
        choices=list(EXCESS.items()), initial=Excess.DRAIN, widget=forms.RadioSelect,
        help_text="Work that may not be preempted is never stopped for it.",
    )  # fmt: skip
    enforce_at = moment("Preempted from", "For a delay only.")
    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=2**31 - 1)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # as they came
        self.fields["enforce_at"].required = False

    @classmethod
    def of(cls, quota: Quota | TenantQuota | None, *, at: datetime) -> "LoweringForm":
        """Not posted yet: with what there is at that moment. A delay that is over is none any
        more: what it was for is preempted now."""
        if quota is None:
            return cls(initial={"version": 0, "borrowing_limit": 0})

        def units(milli: int | None) -> Decimal | None:
            return None if milli is None else Decimal(milli) / 1000

        excess, until = Excess.DRAIN, quota.enforce_at
        if until is not None:
            excess, until = (Excess.DELAY, until) if until > at else (Excess.PREEMPT, None)
        return cls(
            initial={
                "nominal": units(quota.nominal_milli),
                "borrowing_limit": units(quota.borrowing_limit_milli),
                "lending_limit": units(quota.lending_limit_milli),
                "excess": excess,
                "enforce_at": until,
                "version": quota.version,
            }
        )

    def asked(self) -> str:
        """What a valid form asks for, as one text to compare."""
        return " ".join(str(self.cleaned_data[name]) for name in _ASKED)

    def amounts(self, *, at: datetime) -> Amounts:
        """What it asks for, at that moment. Raises Invalid."""

        def milli(name: str) -> int | None:
            amount: Decimal | None = self.cleaned_data[name]
            return None if amount is None else int(amount * 1000)

        return Amounts(
            nominal_milli=milli("nominal") or 0,
            borrowing_limit_milli=milli("borrowing_limit"),
            lending_limit_milli=milli("lending_limit"),
            enforce_at=begins_at(
                excess=Excess(self.cleaned_data["excess"]),
                delayed_until=self.cleaned_data["enforce_at"],
                at=at,
            ),
        )
