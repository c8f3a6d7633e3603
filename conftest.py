"""Everything that pytest runs here: the devices, and the examples in the texts."""

import os
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

# Before JAX starts: four CPU devices, for the tests that place a batch on a mesh.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)

import jax
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser

import staged_axes

DOCTEST = ELLIPSIS | NORMALIZE_WHITESPACE

texts = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=DOCTEST), SkipParser()],
    patterns=["README.md", "docs/*.md"],
)
docstrings = Sybil(
    parsers=[DocTestParser(optionflags=DOCTEST)],
    patterns=["staged_axes/**/*.py"],
    document_types={".py": PythonDocStringDocument},
)
pytest_collect_file = (texts + docstrings).pytest()


def pytest_report_header() -> str:
    """Say which JAX is tested, and which copy of the package."""
    place = os.path.dirname(staged_axes.__file__)
    return f"jax {jax.__version__} on {jax.device_count()} devices, {place}"
