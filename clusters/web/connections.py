"""What is said of a cluster's connection to who operates it: what needs their attention, and what
helps against each step of a probe that fails."""

from datetime import datetime, timedelta

from clusters.models import ClusterProbe
from clusters.selectors import Connection
from controlplane.templatetags.berth import ago, when

WARNED_BEFORE = timedelta(days=7)
"""How long before its end a credential is said to end."""

TO_DO = {
    "reach": "Check the URL in the credential, and that Berth's workers get there: a firewall, a"
    " name that only your network knows, or BERTH_CLUSTER_NETWORKS. A certificate that is not"
    " trusted wants the cluster's own authority beside the token.",
    "identity": "Make a new token (step 2), and store it (step 3).",
    "version": "Upgrade the cluster's control plane, or have its API say its version.",
    "nodes": "Probe again: if it stays, the API server's log says more.",
    "make a namespace": "A policy or a webhook of the cluster refuses what Berth makes: exempt"
    " Berth's account, or the namespaces that carry its label.",
    "make a pod": "Apply the manifest again (step 2), for the one whom Berth signs in as. If it"
    " stays, a policy or a webhook of the cluster refuses gated pods: exempt Berth's account.",
}
"""By the step's name."""
TO_DO_FOR_RIGHTS = "Apply the manifest again (step 2): it grants every right that is missing."


def attention(
    connection: Connection, *, at: datetime, newest: ClusterProbe | None = None
) -> tuple[str, ...]:
    """Sentences; none where all is well. `newest` is a probe that is shown beside them."""
    found = []
    credential, probe = connection.credential, connection.probe
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
