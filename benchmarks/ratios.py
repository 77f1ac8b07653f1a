"""Ratios of turns that lie side by side, with their spread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.throughput import Cell, Sample, Throughput


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of the turns' ratios, the least and the greatest."""

    median: float
    least: float
    greatest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}–{self.greatest:.2f})"


def of(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """How many times theirs ours is, turn by turn."""
    each = [one / other for one, other in zip(ours, theirs, strict=True)]
    return Ratio(median(each), min(each), max(each))


def rates(measured: Throughput, ours: Cell, theirs: Cell) -> Ratio:
    """Of calls a second."""
    return of(
        _figures(measured, ours, lambda sample: sample.rate),
        _figures(measured, theirs, lambda sample: sample.rate),
    )


def cpus(measured: Throughput, ours: Cell, theirs: Cell) -> Ratio:
    """Of CPU a call, in the server's process."""
    return of(
        _figures(measured, ours, lambda sample: sample.cpu),
        _figures(measured, theirs, lambda sample: sample.cpu),
    )


def _figures(measured: Throughput, cell: Cell, figure: Callable[[Sample], float]) -> list[float]:
    return [figure(sample) for sample in measured.samples[cell]]
