"""Run the tests on the oldest, a middle and the newest JAX, against the built wheel.

`make matrix` calls it, after it has built the wheel and unpacked it in build/installed.
An interpreter that is not on this machine is said so in the table and is no failure.
With `--others` it leaves out the set that `make test` has tested before.
With `--python newest` it prints the interpreter for that set and tests nothing.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# A set of constraints/ -> the Pythons it is for, the preferred one first.
SETS = {
    "oldest": ("3.10", "3.11"),
    "middle": ("3.11", "3.12"),
    "newest": ("3.13", "3.12"),
}


def candidates(version: str) -> list[str]:
    """Programs that may be that Python: on PATH, pyenv's, or beside this one."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    folders = (pyenv, Path(sys.base_prefix).parent)
    found = [path for f in folders for path in f.glob(f"{version}.*/bin/python")]
    return [*filter(None, [shutil.which(f"python{version}")]), *map(str, found)]


def is_python(path: str, version: str) -> bool:
    """Whether it is that Python and can make environments (a shim may be neither)."""
    code = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
    run = subprocess.run(
        [path, "-c", code], capture_output=True, text=True, check=False
    )
    return run.stdout.strip() == version


def find_python(versions: tuple[str, ...]) -> str | None:
    """The first interpreter there is, in the order of the versions."""
    return next(
        (path for v in versions for path in candidates(v) if is_python(path, v)), None
    )


def run_tests(set_name: str, python: str) -> bool:
    """Make the environment as the Makefile does, then test the wheel in it."""
    make = ["make", "--silent", f"PYTHON={python}", f"SET={set_name}"]
    wheel = {**os.environ, "PYTHONPATH": str(ROOT / "build" / "installed")}
    return all(
        subprocess.run([*make, target], cwd=ROOT, env=env, check=False).returncode == 0
        for target, env in [("install", None), ("test", wheel)]
    )


def main(own_set: str, *, is_tested: bool) -> int:
    """Test every set and print the table; own_set is tested by this interpreter.

    Where that has just been done, by `make test`, it is left out.
    """
    rows = []
    for name, versions in SETS.items():
        if name == own_set and is_tested:
            rows.append((name, "not run", "it is the set of make test"))
            continue
        python = sys.executable if name == own_set else find_python(versions)
        if python is None:
            rows.append((name, "not run", f"no Python {' or '.join(versions)} here"))
            continue
        print(f"\n== {name}: {python}", flush=True)
        start = time.monotonic()
        outcome = "passed" if run_tests(name, python) else "FAILED"
        rows.append((name, outcome, f"{time.monotonic() - start:.0f} s, {python}"))
    print()
    for row in rows:
        print("{:8} {:8} {}".format(*row))
    return int(any(outcome == "FAILED" for _, outcome, _ in rows))


def print_python(set_name: str) -> int:
    """Print the path of an interpreter for a set; 1 where there is none."""
    versions = SETS[set_name]
    python = find_python(versions)
    if python is None:
        print(f"There is no Python {' or '.join(versions)} here.", file=sys.stderr)
        return 1
    print(python)
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--python":
        sys.exit(print_python(sys.argv[2]))
    sys.exit(main(sys.argv[1], is_tested="--others" in sys.argv))
