"""When Python looks for garbage: not while modules load, never in what they leave, and seldom.

A process loads some 1,400 modules. Python would look for garbage a few hundred times meanwhile, a
fifth of the time that loading takes, and find none. Later on each full collection would look at all
of it again, 70 ms long.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

THRESHOLDS: Final = (20_000, 20, 20)
"""How many objects more, and how many collections of the younger ones, lead to a collection. With
Python's own 700 it would take a fifteenth of the time of every call."""


@contextmanager
def loading() -> Generator[None]:
    """Load modules and whatever else stays for the life of the process."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def seldom() -> None:
    """From here on, look for garbage as often as it pays."""
    gc.set_threshold(*THRESHOLDS)
