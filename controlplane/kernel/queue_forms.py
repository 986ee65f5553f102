"""The form that holds, drains or opens a queue, whosever it is, and what is said of it."""

from django import forms

from controlplane.kernel.forms import StrictForm
from controlplane.kernel.queues import MAX_NOTE, QueueState

MOVED = {
    QueueState.OPEN: "The queue of {} is open: work may start.",
    QueueState.HELD: "The queue of {} is held: nothing new starts.",
    QueueState.DRAINING: "The queue of {} is draining: what may be stopped gives way.",
}
"""Told of it once it is done."""


class QueueForm(StrictForm):
    """Where the queue is moved to, by which button is pressed, and why."""

    state = forms.ChoiceField(choices=QueueState.choices, widget=forms.HiddenInput)
    note = forms.CharField(
        label="Why", max_length=MAX_NOTE, required=False,
        help_text="Members read this while their work waits. It may be left out when it opens.",
    )  # fmt: skip

    @property
    def moved_to(self) -> QueueState:
        return QueueState(self.cleaned_data["state"])
