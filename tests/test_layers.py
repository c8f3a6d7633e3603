"""The order of the files, and what each may import."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import staged_axes as sa

PACKAGE = Path(sa.__file__).parent
FILES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.glob("**/*.py"))
}

# A file imports from those above it alone. The rows are those of CONTRIBUTING.md.
FOLDERS = {
    "_words": [
        "display",
        "collapse",
        "provenance",
        "named",
        "news",
        "errors",
        "paths",
    ],
    "_structure": [
        "_compat",
        "depth",
        "schema",
        "tree",
        "tracers",
        "leaves",
        "match",
        "patterns",
        "content",
    ],
    "_record": [
        "decisions",
        "axes",
        "staging",
        "standing",
        "record",
        "placeholders",
        "by_text",
        "axes_tree",
    ],
    "_json": [
        "text",
        "filters",
        "dump",
        "load",
    ],
    "_resolve": [
        "misses",
        "resolve",
        "validate",
        "template",
        "fit",
    ],
    "_values": [
        "members",
        "alike",
        "grow",
        "values",
        "vary",
    ],
    "_run": [
        "arguments",
        "like",
        "outputs",
        "plan",
        "vmap",
    ],
    "_programs": [
        "computation",
        "likeness",
        "recompiles",
        "snapshot",
        "turns",
        "programs",
        "lowered",
        "cache",
        "calls",
        "batched",
        "batch",
    ],
    "_bind": [
        "bound",
        "bind",
        "builder",
        "merge",
        "infer",
        "randomization",
    ],
    "_pipeline": [
        "events",
        "progress",
        "stages",
        "pipeline",
    ],
}
TOP = ("errors", "_compat")
ORDER = [
    file if file in TOP else f"{folder}.{file}"
    for folder, files in FOLDERS.items()
    for file in files
]

PUBLIC = [
    "AUTO",
    "STATIC",
    "UNDECIDED",
    "AxesBuilder",
    "BatchError",
    "BatchedFunction",
    "BindConflictError",
    "BindError",
    "BoundAxes",
    "ConflictError",
    "FieldError",
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
LONGEST = 370


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
            yield next(file for file in FILES if f"{rest}.".startswith(f"{file}."))


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
    inits = [f"{folder}.__init__" for folder in FOLDERS]
    assert sorted(FILES) == sorted([*ORDER, *inits, "__init__"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_folders_only_say_what_they_are(folder):
    """A folder has a docstring, and nothing has two addresses."""
    (doc,) = ast.parse(FILES[f"{folder}.__init__"].read_text()).body
    assert isinstance(doc, ast.Expr)


def test_imports_run_one_way(file, tree):
    """A file imports files above it alone, so there is no cycle."""
    above = ORDER[: ORDER.index(file)] if file in ORDER else ORDER
    assert set(of_package(tree)) <= set(above)


def test_the_order_is_told():
    """CONTRIBUTING.md has the very layers that are tested here."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| `(\w+)/` \| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
    told = {folder: re.findall(r"`(\w+)`", files) for folder, files in rows}
    assert told == FOLDERS


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
    assert lines <= LONGEST


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


@pytest.mark.parametrize("name", PUBLIC)
def test_the_readme_names_all(name):
    """Every public name is in the README."""
    text = (Path(__file__).parents[1] / "README.md").read_text()
    assert f"`{name}`" in text


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
        for file in FILES
        if file.startswith(("_words.", "errors", "_record.", "_json."))
        for name, _ in imports(ast.parse(FILES[file].read_text()))
        if name.split(".")[0] == "jax"
    ]
    assert knows == []
