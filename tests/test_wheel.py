"""What is installed without a checkout: the wheel."""

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from tests.served import CHECKOUT

SOURCES = ("pyproject.toml", "README.md", "LICENSE", "core", "handler", "migrations")


def test_a_wheel_holds_every_module_and_every_migration_and_no_test(tmp_path: Path) -> None:
    for name in SOURCES:
        source = CHECKOUT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    building = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", "wheels", "."]
    done = subprocess.run(building, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [wheel] = (tmp_path / "wheels").glob("*.whl")
    packed = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (
        path.relative_to(CHECKOUT).as_posix()
        for folder, suffix in (("core", "py"), ("handler", "py"), ("migrations", "sql"))
        for path in (CHECKOUT / folder).rglob(f"*.{suffix}")
    )
    assert packed == set(files)
