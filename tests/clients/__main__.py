"""`make clients`: the clients that run on Node, against two served processes behind one address."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from core.migrate import migrate
from tests.node import install
from tests.postgres import passing_server
from tests.served import CLIENTS, two_serving

FOLDER: Final = Path(__file__).parent


def main() -> int:
    """Runs every `*.test.mjs`; the exit code is that of Node's test runner."""
    node = install(FOLDER)
    with passing_server() as database:
        asyncio.run(migrate(database))
        with two_serving(database, CLIENTS) as front:
            return subprocess.run(
                [node, "--test", "--test-reporter=spec", *sorted(FOLDER.glob("*.test.mjs"))],
                env={**os.environ, "MCP_URL": front.url},
                cwd=FOLDER,
                stdin=subprocess.DEVNULL,
                check=False,
            ).returncode


if __name__ == "__main__":
    sys.exit(main())
