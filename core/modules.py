"""Python modules of a LangGraph project, loaded by file path as LangGraph does.

A module's name in `sys.modules` is a function of where its file lies in the project, so it is the
same in every process and on every machine: a checkpoint names the classes of the values it holds
by module, and another process imports them by that name.
"""

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Final

_LOADING: Final = threading.RLock()
"""One load at a time, over every event loop and thread of the process."""


def name_of(file: Path, root: Path) -> str:
    """The module name of a file of the project at `root`: readable, unique, always the same."""
    relative = Path(os.path.relpath(file, root)).as_posix()
    readable = re.sub(r"\W+", "_", relative.removesuffix(".py"), flags=re.ASCII).strip("_")
    return f"{readable}_{hashlib.sha256(relative.encode()).hexdigest()[:8]}"


def load_file(file: Path, root: Path) -> ModuleType:
    """The module of a file, executed once per process.

    It is in `sys.modules` before its code runs: Pydantic and dataclasses look their module up
    while a class body is being evaluated.

    Raises:
        ImportError: there is no such file, or it is not Python.
        Exception: whatever the module's own code raises; nothing of it stays loaded then.
    """
    name = name_of(file, root)
    with _LOADING:
        loaded = sys.modules.get(name)
        if loaded is not None and loaded.__file__ == str(file):
            return loaded
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None or not file.is_file():
            raise ImportError(f"no Python file at {file}", path=str(file))
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


def load_module(name: str) -> ModuleType:
    """The module of that dotted name, imported as Python imports it."""
    with _LOADING:
        return importlib.import_module(name)


def make_importable(folders: Iterable[Path]) -> None:
    """Put folders at the end of `sys.path`, once each.

    At the end, as LangGraph does: a project's file never shadows an installed package.
    """
    with _LOADING:
        for folder in folders:
            if str(folder) not in sys.path:
                sys.path.append(str(folder))
