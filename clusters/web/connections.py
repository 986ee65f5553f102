"""What is said of a cluster's connection to who operates it: what needs their attention, and what
helps against each step of a probe that fails."""

from datetime import datetime, timedelta

from clusters.models import ClusterProbe
from clusters.port import ProbeStep, Verdict
from clusters.selectors import Connection
from controlplane.templatetags.berth import ago, when

WARNED_BEFORE = timedelta(days=7)
"""How long before its end a credential is said to end."""

_AGAIN = "Probe again: if it stays, the API server's log says more."
TO_DO = {
    "reach": "Check the URL in the credential, and that Berth's workers get there: a firewall, a"
    " name that only your network knows, or BERTH_CLUSTER_NETWORKS. A certificate that is not"
    " trusted wants the cluster's own authority beside the token.",
    "identity": "Make a new token (step 2), and store it (step 3).",
    "version": "Upgrade the cluster's control plane, or have its API say its version.",
    "recut": _AGAIN,
    "catch": _AGAIN,
    "certain devices": _AGAIN,
    "autoscale": _AGAIN,
    "logs": _AGAIN,
    "excess": _AGAIN,
    "nodes": _AGAIN,
    "priority classes": "Apply the manifest again (step 2): it makes those that are missing.",
    "make a namespace": "A policy or a webhook of the cluster refuses what Berth makes: exempt"
    " Berth's account, or the namespaces that carry its label.",
    "make a pod": "Apply the manifest again (step 2), for the one whom Berth signs in as. If it"
    " stays, a policy or a webhook of the cluster refuses gated pods: exempt Berth's account.",
}
"""By the step's name, of all steps but those of a right."""
_MAY_NOT = "Apply the manifest again (step 2): it grants every right that is missing."


def to_do(probe: ClusterProbe) -> tuple[str, ...]:
    """What helps against the steps that fail, each thing once."""
    failed = [step for step in probe.told if step.verdict is Verdict.FAILS]
    return tuple(dict.fromkeys(TO_DO.get(step.name) or _for_a_right(step) for step in failed))


def _for_a_right(step: ProbeStep) -> str:
    """One that is missing is granted; of another it could not be asked whether it is."""
    return _MAY_NOT if step.said.startswith("may not ") else _AGAIN


def attention(
    connection: Connection, *, at: datetime, newest: ClusterProbe | None = None
) -> tuple[str, ...]:
    """Sentences; none where all is well. `newest` is a probe that is shown beside them."""
    found = []
    credential, probe, exposure = connection.credential, connection.probe, connection.exposure
    if exposure is not None and exposure.is_unsafe:
        saw = "; ".join(exposure.saw)
        found.append(f"UNSAFE: a pod that asked for no device saw, on {exposure.node}: {saw}.")
    if credential is None:
        found.append("No credential is stored yet, so Berth can't sign in.")
    elif credential.expires_at is not None and credential.expires_at <= at:
        found.append(f"The credential ended {ago(credential.expires_at, at)}: replace it.")
    elif credential.expires_at is not None and credential.expires_at <= at + WARNED_BEFORE:
        ends = when(credential.expires_at, at)
        found.append(f"The credential ends {ago(credential.expires_at, at)}, {ends}: replace it.")
    if credential is not None and probe is not None and probe != newest:
        if probe.stopped:
            found.append(f"The last probe came to no end: {probe.why}")
        elif probe.failures:
            found.append(f"The last probe found {_things(probe.failures)}.")
    return tuple(found)


def _things(count: int) -> str:
    return "one thing that fails" if count == 1 else f"{count} things that fail"
