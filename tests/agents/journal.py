"""What the tests' agents do besides asking: note that a node ran, crash, or wait to be let go.

Everything happens in the folder that a call's `journal` argument names, so that the notes outlive
a process that is killed, and so that a test can act in the middle of a node.
"""

import os
import signal
import time
from collections import Counter
from pathlib import Path


def ran(journal: str, node: str) -> None:
    """Note that this node ran; one line per time, written at once. A test may kill the process
    (once) before or after."""
    folder = Path(journal)
    _die(folder / f"crash-before-{node}")
    with (folder / "ran").open("a", encoding="utf-8") as notes:
        notes.write(f"{node}\n")
    _die(folder / f"crash-after-{node}")


def noted(folder: Path) -> Counter[str]:
    """How often each node ran."""
    notes = folder / "ran"
    return Counter(notes.read_text(encoding="utf-8").split()) if notes.exists() else Counter()


def point(journal: str, name: str) -> None:
    """A place where a test may kill the process (once), or hold it until the test lets go."""
    folder = Path(journal)
    _die(folder / f"crash-{name}")
    hold = folder / f"hold-{name}"
    if hold.exists():
        (folder / f"held-{name}").touch()
        while hold.exists():
            time.sleep(0.005)


def _die(wanted: Path) -> None:
    if wanted.exists():
        wanted.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
