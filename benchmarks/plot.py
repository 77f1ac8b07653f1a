"""The curves of growth as a picture."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.growth import Growth

# Of the `bench` group, which the type checker runs without.
matplotlib: Any = importlib.import_module("matplotlib")

_COLOURS = ("#1f5fa8", "#c2571a", "#8a8a8a")


def draw(growth: Growth, path: Path) -> None:
    """Three panels: stored calls, messages in the state, supersteps after the answer."""
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, (first, second, third) = pyplot.subplots(1, 3, figsize=(13, 3.8))
    stored = [(count, median(times)) for count, times in growth.stored]
    _panel(first, "a resume, by stored calls", "stored calls", {"Intermezzo": stored})
    first.set_xscale("log")
    first.set_ylim(0, 1200 * max(seconds for _, seconds in stored))
    _panel(second, "two rounds, by messages in the state", "messages", growth.messages)
    second.set_xscale("log")
    second.set_yscale("log")
    _panel(third, "two rounds, by supersteps after the answer", "supersteps", growth.supersteps)
    third.set_ylim(bottom=0)
    third.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _panel(
    axes: Any, title: str, label: str, curves: Mapping[str, Sequence[tuple[int, float]]]
) -> None:
    for (name, points), colour in zip(curves.items(), _COLOURS, strict=False):
        xs, ys = zip(*points, strict=True)
        axes.plot(xs, [y * 1000 for y in ys], marker="o", label=str(name), color=colour)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(label)
    axes.set_ylabel("milliseconds, median")
    axes.grid(visible=True, alpha=0.3)
