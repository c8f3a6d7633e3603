"""Which line of the user's code decided."""

from __future__ import annotations

import functools
import os
import sys

from attrs import frozen

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


@frozen
class Source:
    """A line of code. `str()` gives it as `file:line`, in short."""

    file: str
    line: int

    def __str__(self) -> str:
        name = self.file
        if os.path.isabs(name):
            name = _from_here(name, _here())
        elif name.startswith("<"):  # a doctest, a notebook, a prompt
            name = os.path.basename(name.strip("<>"))
        return f"{name}:{self.line}"


def _here() -> str:
    """The working directory, or nothing where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return ""


@functools.lru_cache(maxsize=1024)
def _from_here(file: str, here: str) -> str:
    """The way from a directory to a file below it, else the file's name."""
    try:
        inside = os.path.relpath(file, here) if here else os.pardir
    except ValueError:  # on another drive
        inside = os.pardir
    return os.path.basename(file) if inside.startswith(os.pardir) else inside


def caller() -> Source:
    """The innermost line on the stack that lies outside this package."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return Source(frame.f_code.co_filename, frame.f_lineno)
