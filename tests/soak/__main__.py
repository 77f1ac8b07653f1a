"""`python -m tests.soak`, or `make soak`: load and faults for some minutes, and what came of it."""

import argparse
import asyncio
import sys

from core.migrate import migrate
from tests.postgres import passing_server
from tests.soak.run import Outcome, connections_at_most, soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=180.0, help="how long (%(default)s)")
    parser.add_argument("--clients", type=int, default=50, help="calls at once (%(default)s)")
    parser.add_argument("--processes", type=int, default=2, help="that serve (%(default)s)")
    parser.add_argument(
        "--kill-every", type=float, default=20.0, help="seconds between two kills (%(default)s)"
    )
    chosen = parser.parse_args()

    async def held(database: str) -> Outcome:
        await migrate(database)
        return await soak(
            database,
            seconds=chosen.seconds,
            clients=chosen.clients,
            processes=chosen.processes,
            kill_every=chosen.kill_every,
        )

    with passing_server() as database:
        outcome = asyncio.run(held(database))
    print(outcome)
    good = not (outcome.lost or outcome.doubled or outcome.errors or outcome.left)
    return 0 if good and outcome.connections <= connections_at_most(chosen.processes) else 1


if __name__ == "__main__":
    sys.exit(main())
