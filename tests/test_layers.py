"""The order of the files, and what each may import."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import staged_axes as sa

PACKAGE = Path(sa.__file__).parent
FILES = {path.stem: path for path in sorted(PACKAGE.glob("*.py"))}

# A file imports from those above it alone. The rows are those of CONTRIBUTING.md.
LAYERS = {
    "words": [
        "_display",
        "_collapse",
        "_provenance",
        "_named",
        "_news",
        "errors",
        "_paths",
    ],
    "structure": [
        "_compat",
        "_schema",
        "_tree",
        "_tracers",
        "_leaves",
        "_match",
        "_patterns",
        "_content",
    ],
    "record": [
        "_decisions",
        "_axes",
        "_staging",
        "_standing",
        "_record",
        "_placeholders",
        "_by_text",
        "_axes_tree",
    ],
    "text": [
        "_json_text",
        "_json_filters",
        "_json_dump",
        "_json_load",
    ],
    "resolve": [
        "_misses",
        "_resolve",
        "_validate",
        "_fit",
    ],
    "values": [
        "_members",
        "_alike",
        "_grow",
        "_values",
        "_vary",
    ],
    "run": [
        "_arguments",
        "_like",
        "_outputs",
        "_vmap",
    ],
    "programs": [
        "_computation",
        "_likeness",
        "_recompiles",
        "_snapshot",
        "_programs",
        "_lowered",
        "_cache",
        "_calls",
        "_batched",
        "_batch",
    ],
    "bind": [
        "_bind",
        "_builder",
        "_merge",
        "_infer",
        "_randomization",
    ],
    "pipeline": [
        "_events",
        "_progress",
        "_stages",
        "_pipeline",
    ],
    "all": ["__init__"],
}
ORDER = [file for files in LAYERS.values() for file in files]

PUBLIC = [
    "AUTO",
    "STATIC",
    "UNDECIDED",
    "AxesBuilder",
    "BatchError",
    "BatchedFunction",
    "BindError",
    "BoundAxes",
    "ConflictError",
    "MemberError",
    "Pipeline",
    "PipelineError",
    "Problem",
    "RecompileWarning",
    "RecordError",
    "StageEvent",
    "StageHook",
    "Staged",
    "StagedAxesError",
    "at",
    "batch",
    "from_node",
    "infer",
    "log_events",
    "merge",
    "optional",
    "per_leaf",
    "progress",
    "randomization_fn",
    "record",
    "rule",
    "stack",
    "vmap",
]

# Heavy, and needed by some alone: met where they are used.
LATE = ("flax", "rich")
LONGEST = 350
TO_SPLIT = {"_bind", "_pipeline", "_vmap"}


def imports(tree):
    """The modules that the code imports, with the line of each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports say the whole name"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node


def of_package(tree):
    """The files of the package that the code imports."""
    for name, _ in imports(tree):
        first, _, rest = name.partition(".")
        if first == "staged_axes":
            yield rest.split(".")[0]


@pytest.fixture(params=FILES)
def file(request):
    """Each file of the package in turn."""
    return request.param


@pytest.fixture
def tree(file):
    """Its code."""
    return ast.parse(FILES[file].read_text())


def test_every_file_has_its_place():
    """The list of layers names every file once."""
    assert sorted(ORDER) == sorted(FILES)


def test_imports_run_one_way(file, tree):
    """A file imports files above it alone, so there is no cycle."""
    above = ORDER[: ORDER.index(file)]
    assert set(of_package(tree)) <= set(above)


def test_the_order_is_told():
    """CONTRIBUTING.md has the very layers that are tested here."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| (\w+) \| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
    told = {layer: re.findall(r"`(\w+)`", files) for layer, files in rows}
    assert told == {name: files for name, files in LAYERS.items() if name != "all"}


def test_no_import_inside_a_function(tree):
    """What is imported is seen at the top of the file, but for what is heavy."""
    inner = {
        name.split(".")[0]
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for name, _ in imports(outer)
    }
    assert inner <= set(LATE)


def test_private_jax_is_in_one_file(file, tree):
    """Names that JAX does not make public are known to one file."""
    private = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute)
        and "jax._src" in ast.unparse(node)
    ]
    assert file == "_compat" or private == []


def test_files_are_short(file):
    """A file can be read in one go."""
    lines = len(FILES[file].read_text().splitlines())
    assert lines <= LONGEST or file in TO_SPLIT


def test_every_file_says_what_it_is(tree):
    """A file begins with a docstring of one line that ends in a stop."""
    doc = ast.get_docstring(tree)
    assert doc
    assert doc.split("\n\n")[0].rstrip().endswith((".", "others", "..."))


def test_public_names():
    """What the package offers is what is listed, in the order of the alphabet."""
    assert sa.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name):
    """Every public name can be imported, and what is callable has a docstring."""
    found = getattr(sa, name)
    assert not callable(found) or found.__doc__


def test_the_import_is_light():
    """Importing the package imports neither flax nor rich, nor the tools of tests."""
    code = (
        "import sys, staged_axes\n"
        "heavy = {'flax', 'rich', 'equinox', 'hypothesis', 'pytest', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_record_needs_no_jax():
    """The files of the record, and all above them that they need, know no JAX.

    Only what tells classes and structures apart does.
    """
    knows = [
        file
        for layer in ("words", "record", "text")
        for file in LAYERS[layer]
        for name, _ in imports(ast.parse(FILES[file].read_text()))
        if name.split(".")[0] == "jax"
    ]
    assert knows == []
