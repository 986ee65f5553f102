"""The form by which somebody decides a gate, and the gates that a page shows with it."""

from collections.abc import Iterable
from dataclasses import dataclass

from django import forms

from controlplane.kernel.forms import StrictForm
from scheduler.models import Gate, GateState, Workload, WorkloadArray
from scheduler.services import gates as services
from tenants.access import Actor


class DecisionForm(StrictForm):
    """What becomes of the gate, by which button is pressed, and why."""

    state = forms.ChoiceField(choices=[(GateState.OPEN, "Open"), (GateState.REFUSED, "Refuse")])
    note = forms.CharField(label="Note", max_length=services.MAX_NOTE, required=False)

    @property
    def decided(self) -> GateState:
        return GateState(self.cleaned_data["state"])


@dataclass(frozen=True, slots=True)
class Shown:
    """A gate, and which buttons its reader gets."""

    gate: Gate
    may_open: bool
    may_refuse: bool


def shown(
    *, actor: Actor, work: Workload | WorkloadArray, gates: Iterable[Gate], waits: bool
) -> tuple[Shown, ...]:
    """As `services.gates.decide` would permit it; `waits`: the work, or an element of it, does."""
    found = []
    for gate in gates:
        undecided = waits and gate.state == GateState.WAITING
        refuses = undecided and services.may_decide(actor, gate, project=work.project)
        opens = refuses and services.may_open(actor, gate, work=work)
        found.append(Shown(gate, opens, refuses))
    return tuple(found)
