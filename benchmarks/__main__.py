"""The whole run: `python -m benchmarks`, or `make bench`.

--quick     under two minutes, for a first look; writes to a temporary folder
"""

import argparse
import asyncio
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from benchmarks import cold, growth, throughput, trips
from benchmarks.plot import draw
from benchmarks.report import PICTURE, Measured, report
from benchmarks.usage import machine
from core.migrate import migrate
from handler.postgres import local_server

_QUICK = ("echo", "greeter", "tools", "forged")
_SIZES = (10, 100, 1000, 10_000)


def main() -> None:
    """Measures, and writes what came of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a first look, not for the record")
    quick = parser.parse_args().quick
    folder = Path(mkdtemp(prefix="benchmarks-")) if quick else Path(__file__).parent
    with _database() as database:
        run = _quick(database) if quick else _whole(database)
    (folder / "RESULTS.md").write_text(report(run), encoding="utf-8")
    draw(run.growth, folder / PICTURE)
    print(folder / "RESULTS.md")


def _whole(database: str) -> Measured:
    return Measured(
        machine=machine(database),
        turns=7,
        seconds=1.0,
        trips=trips.count(database),
        cold=cold.measure(database, turns=7),
        throughput=throughput.measure(database, chosen=throughput.cells(), turns=7, seconds=1.0),
        growth=growth.measure(
            database,
            stored=(1000, 10_000, 100_000, 1_000_000),
            messages=_SIZES,
            supersteps=(1, 5, 10, 20),
            turns=5,
            seconds=1.0,
        ),
    )


def _quick(database: str) -> Measured:
    return Measured(
        machine=machine(database),
        turns=2,
        seconds=0.25,
        trips=trips.count(database),
        cold=cold.measure(database, turns=1),
        throughput=throughput.measure(
            database, chosen=throughput.cells(_QUICK), turns=2, seconds=0.25
        ),
        growth=growth.measure(
            database,
            stored=(1000, 10_000),
            messages=_SIZES[:2],
            supersteps=(1, 5),
            turns=1,
            seconds=0.3,
        ),
    )


@contextmanager
def _database() -> Generator[str]:
    """A server of which nothing is left at the end."""
    with TemporaryDirectory(prefix="intermezzo-") as folder:
        Path(folder).chmod(0o755)  # as root the server runs as another user
        with local_server(Path(folder)) as database:
            asyncio.run(migrate(database))
            yield database


if __name__ == "__main__":
    sys.exit(main())
