"""Labels that people give to their work: as Kubernetes knows them, and none of those that Berth or
the cluster sets."""

import re

from django.conf import settings

from controlplane.kernel.text import shown

LABEL_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?", re.ASCII
)
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?", re.ASCII)
RESERVED_DOMAINS = ("kubernetes.io", "k8s.io", "nvidia.com", "amd.com", "gpu.intel.com")
"""Label prefixes, next to Berth's own, that only Berth and the cluster may set."""


def label_fault(key: str, value: str) -> tuple[str, str] | None:
    """(code, what is wrong) of a label that can't be given."""
    if len(key) > 316 or not LABEL_KEY.fullmatch(key):
        return "invalid", f"{shown(key)} is not a label key as Kubernetes knows them."
    domain = key.rpartition("/")[0]
    for reserved in (settings.BERTH_PREFIX, *RESERVED_DOMAINS):
        if domain == reserved or domain.endswith(f".{reserved}"):
            return "reserved-label", f"Labels of {reserved} are set by Berth and the cluster only."
    if not LABEL_VALUE.fullmatch(value):
        return "invalid", f"{shown(value)} is not a label value as Kubernetes knows them."
    return None
