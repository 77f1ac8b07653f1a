"""What the tests' agents do besides asking: note that a node ran, crash, or wait to be let go.

Everything happens in the folder that a call's `journal` argument names, so that the notes outlive
a process that is killed, and so that a test can act in the middle of a node.
"""

import os
import signal
import time
from pathlib import Path


def ran(journal: str, node: str) -> None:
    """Note that this node ran; one line per time, written at once."""
    with (Path(journal) / "ran").open("a", encoding="utf-8") as notes:
        notes.write(f"{node}\n")


def point(journal: str, name: str) -> None:
    """A place where a test may kill the process (once), or hold it until the test lets go."""
    folder = Path(journal)
    crash = folder / f"crash-{name}"
    if crash.exists():
        crash.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    hold = folder / f"hold-{name}"
    if hold.exists():
        (folder / f"held-{name}").touch()
        while hold.exists():
            time.sleep(0.005)
