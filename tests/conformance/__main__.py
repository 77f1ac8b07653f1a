"""`make conformance`: the official suite against two served processes behind one address.

Passes when every scenario of both requirement sets passes but for those in the baselines, and every
scenario of `BESIDE` passes whole, although the suite does not score it.
"""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from core.migrate import migrate
from tests.node import install
from tests.postgres import passing_server
from tests.served import post, result, two_serving

FOLDER: Final = Path(__file__).parent
AGENTS: Final = FOLDER / "langgraph.json"

BESIDE: Final = {
    "2026-07-28": (
        "http-custom-header-server-validation",
        "http-header-validation",
        "json-schema-2020-12",
    ),
    "2025-11-25": ("json-schema-2020-12",),
}
"""The requirement sets, and the scenarios that pass besides what each of them scores."""


def main() -> int:
    """Runs both sets; the exit code is 0 when both pass."""
    node = install(FOLDER)
    with passing_server() as database:
        asyncio.run(migrate(database))
        with two_serving(database, AGENTS) as front:
            for _ in range(2):  # the suite gives a first answer half a second
                result(post(front.url, "tools/call", name="test_streaming_elicitation"))
            passed = [_passes(node, front.url, revision) for revision in BESIDE]
    return 0 if all(passed) else 1


def _passes(node: Path, url: str, revision: str) -> bool:
    for last in (False, True):
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            run = _run(node, url, revision, Path(folder))
            checks = dict(_checks(Path(folder)))
        problems = _beside(revision, checks)
        passed = run.returncode == 0 and not problems
        # Node's own HTTP client loses a connection once in a long while.
        if passed or last or "fetch failed" not in run.stdout + json.dumps(checks):
            break
        print(f"{revision}: a connection was lost; once more")
    if not passed:
        print(run.stdout.partition("=== SUMMARY ===")[2] or run.stdout, run.stderr, sep="\n")
        print(*_told(checks), *problems, sep="\n")
    took = time.monotonic() - started
    expected = run.stdout.count("\n  ~ ")
    print(
        f"{revision}: {'passed' if passed else 'FAILED'} in {took:.1f} s: {_counted(checks)},"
        f" {expected} failures are in the baseline"
    )
    return passed


def _run(node: Path, url: str, revision: str, results: Path) -> "subprocess.CompletedProcess[str]":
    suite = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return subprocess.run(
        [
            *(node, suite, "server", "--url", url, "--requirements", revision),
            *("--expected-failures", FOLDER / f"baseline-{revision}.yaml"),
            *("--output-dir", results),
        ],
        cwd=FOLDER,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _checks(results: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """What the suite looked at, by scenario. Its folders are `server-<scenario>-<time>`.

    Tasks are left out: an extension that is not offered and never scored.
    """
    for file in sorted(results.glob("server-*/checks.json")):
        named = _FOLDER.fullmatch(file.parent.name)
        if named and not named[1].startswith("tasks-"):
            yield named[1], json.loads(file.read_bytes())


_FOLDER: Final = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT.*")


def _beside(revision: str, checks: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What is to be said of the scenarios of `BESIDE` that did not pass whole."""
    return [
        f"{name}: must pass, although it is not scored"
        for name in BESIDE[revision]
        if not checks.get(name) or not all(map(_fine, checks[name]))
    ]


def _told(checks: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    for name, found in checks.items():
        for check in found:
            if not _fine(check):
                yield f"{name}: {check['id']}: {check.get('errorMessage', '')[:300]}"


def _counted(checks: dict[str, list[dict[str, Any]]]) -> str:
    whole = sum(all(map(_fine, found)) for found in checks.values())
    return f"{whole} of {len(checks)} scenarios pass whole"


def _fine(check: dict[str, Any]) -> bool:
    return check["status"] not in ("FAILURE", "WARNING")


if __name__ == "__main__":
    sys.exit(main())
