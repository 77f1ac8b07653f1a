"""What npm has locked, for the programs of others that run on Node.

A folder with a package.json and a lock file; what is installed goes to its `node_modules`, which
git ignores. Node itself is one of the packages, for machines whose own is older.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Final

OLDEST: Final = 22


class NodeMissing(Exception):
    """There is no npm, or no Node that is new enough; the text says what to do."""


def install(folder: Path) -> Path:
    """Install what a folder's lock file names, unless that is done, and return the Node to use.

    Raises:
        NodeMissing: npm or a new enough Node is not to be had.
        subprocess.CalledProcessError: npm failed; it has said why.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise NodeMissing(f"npm is needed: install Node.js {OLDEST} or newer.")
    lock, done = folder / "package-lock.json", folder / "node_modules" / ".locked"
    if not done.exists() or done.read_bytes() != lock.read_bytes():
        subprocess.run([npm, "ci", "--ignore-scripts", "--loglevel=error"], cwd=folder, check=True)
        done.write_bytes(lock.read_bytes())
    for candidate in (folder / "node_modules" / ".bin" / "node", shutil.which("node")):
        if candidate and Path(candidate).exists() and _major(candidate) >= OLDEST:
            return Path(candidate)
    raise NodeMissing(f"Node.js {OLDEST} or newer is needed, and npm has none for this platform.")


def _major(node: Path | str) -> int:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.strip().lstrip("v").split(".")[0])
