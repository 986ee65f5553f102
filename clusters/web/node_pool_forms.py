"""What is posted about node pools that make nodes."""

from typing import ClassVar

from django import forms

from clusters.services.autoscaling import Described
from clusters.services.declared_pools import Declared
from controlplane.kernel.forms import StrictForm


class PairsField(forms.CharField):
    """name=value, one a line -> a mapping."""

    widget = forms.Textarea(attrs={"rows": 2})

    def clean(self, value: str | None) -> dict[str, str]:
        lines = [line.strip() for line in super().clean(value).splitlines() if line.strip()]
        if any("=" not in line for line in lines):
            raise forms.ValidationError("Lines of name=value are wanted.", "no-pairs")
        pairs = [line.split("=", 1) for line in lines]
        found = {name.strip(): each.strip() for name, each in pairs}
        if len(found) < len(pairs):
            raise forms.ValidationError("A name stands there twice.", "twice")
        return found


class AskForm(StrictForm):
    """Whether the cluster is asked for nodes from now on."""

    ask = forms.ChoiceField(choices=[("yes", "Ask"), ("no", "Do not ask")])


class ShapeForm(StrictForm):
    """What a node has."""

    model = forms.CharField(
        label="GPU model", max_length=80, help_text="As nodes name it, and flavors."
    )
    gpus = forms.IntegerField(label="GPUs", min_value=1)
    cpu_milli = forms.IntegerField(label="Thousandths of a core", min_value=1)
    memory_mib = forms.IntegerField(label="Memory in MiB", min_value=1)

    def node(self) -> Described:
        names = ("model", "gpus", "cpu_milli", "memory_mib")
        return Described(**{name: self.cleaned_data[name] for name in names})


class NodeForm(ShapeForm):
    """What a node of `pool` has."""

    pool = forms.UUIDField(widget=forms.HiddenInput)


class DeclareForm(ShapeForm):
    """A pool, and what a node of it has."""

    field_order = ("declare", "name", "selector", "request_class", "parameters", "nodes")
    pointers: ClassVar = {f"/node/{name}": name for name in ShapeForm.base_fields}
    declare = forms.CharField(widget=forms.HiddenInput, initial="yes")
    name = forms.CharField(label="Name", max_length=253)
    selector = PairsField(
        label="Labels of its nodes",
        help_text="One label=value a line, such as cloud.google.com/gke-nodepool=a3: all its nodes"
        " have them, and no other node.",
    )
    request_class = forms.CharField(
        label="Provisioning class",
        max_length=253,
        help_text="queued-provisioning.gke.io on GKE, or"
        " best-effort-atomic-scale-up.autoscaling.x-k8s.io.",
    )
    parameters = PairsField(
        label="Parameters",
        required=False,
        help_text="One name=value a line, such as maxRunDurationSeconds=604800.",
    )
    nodes = forms.IntegerField(
        label="Nodes at most",
        min_value=1,
        help_text="Work that lacks more than 256 of one pool does not wait for them.",
    )

    def pool(self) -> Declared:
        names = ("name", "selector", "request_class", "parameters", "nodes")
        return Declared(**{name: self.cleaned_data[name] for name in names})


class ForgetForm(StrictForm):
    """A declared pool of which nothing more is expected."""

    forget = forms.UUIDField(widget=forms.HiddenInput)
