"""Where compiled code is loaded: late, for it takes a second and 80 MiB."""

import warnings
from functools import cache
from importlib import import_module
from types import ModuleType

MODULES = "node.fragmentation", "sweep.sweep"
"""Of the core, those that need numba."""


@cache
def compiled(name: str) -> ModuleType | None:
    """One of MODULES.

    None where compiled code may not run: then plans are made without it. Nothing is packed; what
    a sweep does is done one by one, with the same answer.
    """
    try:
        return import_module(f"scheduler.core.{name}")
    except (ImportError, OSError, RuntimeError) as error:  # LLVM on a machine that is locked down
        warnings.warn(f"{name} goes without compiled code: {error}", RuntimeWarning, stacklevel=2)
        return None
