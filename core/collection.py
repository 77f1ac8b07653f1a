"""When Python looks for garbage: not while modules load, and never in what they leave.

A process loads some 1,400 modules. Python would look for garbage a few hundred times meanwhile, a
fifth of the time that loading takes, and find none. Later on each full collection would look at all
of it again, 70 ms long.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def loading() -> Generator[None]:
    """Load modules and whatever else stays for the life of the process."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
