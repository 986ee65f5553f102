"""Pure: how flavors name the models of devices."""

import re

LONGEST_MODEL = 80
_PRODUCT = re.compile(r"(?:NVIDIA-)?(.+?)(?:-SHARED)?(-MIG-.+)?(?:-SHARED)?")


def model_of(product: str) -> str:
    """A device's model as flavors name it: "NVIDIA-A100-SXM4-80GB-SHARED" -> "A100-SXM4-80GB"."""
    match = _PRODUCT.fullmatch(product)
    return match[1][:LONGEST_MODEL] if match else "unknown"
