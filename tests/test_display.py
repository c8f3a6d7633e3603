"""Short forms of values, and tables as text, as HTML and on a terminal."""

import collections
import enum
import functools
import io
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

from staged_axes._words.display import Table, short


class Wheel:
    """A user's class with a `repr` that must not be called."""

    def __repr__(self):
        """Fail."""
        raise AssertionError


class Hostile(Wheel):
    """A user's class of which not even the attributes can be read."""

    def __getattr__(self, name):
        """Fail, and not as Python expects it."""
        raise RuntimeError(name)


class Quantized(Wheel):
    """A user's container that looks like an array."""

    shape = (3, 4)
    dtype = np.dtype("int8")


class Vague(Wheel):
    """A user's container whose shape and dtype are something else."""

    shape = "round"
    dtype = jnp.float32


class Colour(enum.IntEnum):
    """A number that is more than a number."""

    RED = 1


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (jnp.zeros((32, 4)), "f32[32,4]"),
        (jnp.zeros((), jnp.bfloat16), "bf16[]"),
        (jnp.zeros(2, jnp.float16), "f16[2]"),
        (jnp.zeros(3, jnp.int32), "i32[3]"),
        (jnp.zeros(2, bool), "bool[2]"),
        (jnp.zeros((0, 5), jnp.uint8), "u8[0,5]"),
        (jnp.zeros(1, jnp.complex64), "c64[1]"),
        (jnp.zeros(1, jnp.float8_e4m3fn), "f8_e4m3fn[1]"),
        (jax.random.key(0), "key<fry>[]"),
        (jax.random.split(jax.random.key(0), 4), "key<fry>[4]"),
        (jax.random.PRNGKey(0), "u32[2]"),
        (np.zeros(3), "f64[3]"),
        (np.float32(1), "f32[]"),
        (np.int64(1), "i64[]"),
        (np.array([None]), "object[1]"),
        (jax.ShapeDtypeStruct((2, 3), jnp.float32), "f32[2,3]"),
        (sparse.BCOO.fromdense(jnp.zeros((2, 3))), "BCOO f32[2,3]"),
        (Quantized(), "Quantized i8[3,4]"),
        (Vague(), "Vague"),
        (1, "int"),
        (1.0, "float"),
        (True, "bool"),
        (1j, "complex"),
        (Colour.RED, "Colour"),
        ("secret", "str"),
        (b"secret", "bytes"),
        (None, "None"),
        (jax.nn.relu, "function relu"),
        (jnp.sin, "function sin"),
        (len, "function len"),
        (lambda: 0, "function <lambda>"),
        (np.add, "function add"),
        (functools.partial(len, ()), "partial"),
        (Wheel, "class Wheel"),
        (Wheel(), "Wheel"),
        (Hostile(), "Hostile"),
        ([1, 2], "list"),
        ({"a": 1}, "dict"),
        (Point(1, 2), "Point"),
        (type("N" * 99, (), {})(), "N" * 19 + "..." + "N" * 18),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_short(value, expected):
    """The short form says what a value is and shows nothing of what is in it."""
    assert short(value) == expected


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad])
def test_short_of_tracers(transform):
    """A tracer looks like the array it stands for."""
    seen = []

    def fn(x):
        seen.append(short(x))
        return (x * 1.0).sum()

    transform(fn)(jnp.ones(()) if transform is jax.grad else jnp.ones((3, 2)))
    assert seen == [
        {jax.jit: "f32[3,2]", jax.vmap: "f32[2]", jax.grad: "f32[]"}[transform]
    ]


def test_short_of_traced_keys():
    """A typed key stays one inside a transformation."""
    keys = jax.random.split(jax.random.key(0), 3)
    assert jax.eval_shape(lambda k: len(short(k)) * jnp.ones(()), keys).shape == ()
    assert short(jax.eval_shape(lambda k: k, keys)) == "key<fry>[3]"


def test_rich_is_imported_when_it_is_needed():
    """Plain tables and short forms do without rich."""
    code = (
        "import sys, staged_axes._words.display as d\n"
        "d.short([1]), d.Table('', ('',), (('x',),)).plain()\n"
        "print([m for m in ('rich', 'flax') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture
def table():
    """A table like the one that is printed for bound axes."""
    return Table(
        "Axes of Model: 1 of 4 leaves is mapped, batch size 32",
        ("path", "array", "axis", "decided by"),
        (
            ("value.wheel.drag", "f32[32,4]", "0", "sysid  train.py:12"),
            ("value['a b']", "f32[]", "", "default=None"),
            ("value.names[0]", "str", "", ""),
        ),
        "1 more leaf is static.",
    )


def test_plain(table):
    """Columns are as wide as they must be, and no line ends in blanks."""
    assert (
        table.plain()
        == """\
Axes of Model: 1 of 4 leaves is mapped, batch size 32

path              array      axis  decided by
value.wheel.drag  f32[32,4]  0     sysid  train.py:12
value['a b']      f32[]            default=None
value.names[0]    str

1 more leaf is static."""
    )


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (
            53,
            """\
path              array      axis  decided by
value.wheel.drag  f32[32,4]  0     sysid  train.py:12
value['a b']      f32[]            default=None
value.names[0]    str""",
        ),
        (
            52,
            """\
path              array      axis  decided by
value.wheel.drag  f32[32,4]  0     sysid  ...n.py:12
value['a b']      f32[]            default=None
value.names[0]    str""",
        ),
        (
            46,
            """\
path           array      axis  decided by
value....drag  f32[32,4]  0     sysid ...py:12
value['a b']   f32[]            default=None
value...es[0]  str""",
        ),
        (
            1,
            """\
path          array      axis  decided by
value...drag  f32[32,4]  0     sysid...y:12
value['a b']  f32[]            default=None
value...s[0]  str""",
        ),
    ],
    ids=["fits", "one too many", "several", "as narrow as it gets"],
)
def test_plain_at_a_width(table, width, expected):
    """Below its own width a table cuts its widest cells in their middle."""
    body = table.plain(width).split("\n\n")[1]
    assert body == expected
    assert max(map(len, body.splitlines())) <= max(width, 44)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("", ("a", "b"), (("1", "2"),), ""), "a  b\n1  2"),
        (("T", ("", ""), (("1", "2"),), ""), "T\n\n1  2"),
        (("", ("", ""), (("1", "2"), ("33", "")), "F"), "1   2\n33\n\nF"),
        (("T", ("a",), (), ""), "T\n\na"),
        (("T", ("",), (), ""), "T"),
    ],
    ids=["no title", "no header", "only rows and footer", "no rows", "only a title"],
)
def test_plain_without_some_parts(parts, expected):
    """What is empty leaves no empty lines."""
    assert Table(*parts).plain() == expected


def test_plain_keeps_a_cell_on_its_line():
    """A dict key may hold anything, and must not break the table or the terminal."""
    table = Table("", ("path", "x"), (("value['a\nb\x1b[31m']", "1"), ("ö", "2")))
    assert table.plain() == (
        "path                   x\nvalue['a\\nb\\x1b[31m']  1\nö                      2"
    )


def test_html(table):
    """The table in a notebook has its title, header, rows and footer."""
    assert table.html() == (
        "<table>"
        "<caption>Axes of Model: 1 of 4 leaves is mapped, batch size 32</caption>"
        "<thead><tr><th>path</th><th>array</th><th>axis</th><th>decided by</th></tr>"
        "</thead><tbody>"
        "<tr><td>value.wheel.drag</td><td>f32[32,4]</td><td>0</td>"
        "<td>sysid  train.py:12</td></tr>"
        "<tr><td>value[&#x27;a b&#x27;]</td><td>f32[]</td><td></td>"
        "<td>default=None</td></tr>"
        "<tr><td>value.names[0]</td><td>str</td><td></td><td></td></tr>"
        '</tbody><tfoot><tr><td colspan="4">1 more leaf is static.</td></tr></tfoot>'
        "</table>"
    )


def test_html_is_escaped():
    """Nothing that comes from the user's data is taken for HTML."""
    table = Table("<b>", ("<i>",), (("<script>&'\"",),), "<u>")
    assert table.html() == (
        "<table><caption>&lt;b&gt;</caption><thead><tr><th>&lt;i&gt;</th></tr></thead>"
        "<tbody><tr><td>&lt;script&gt;&amp;&#x27;&quot;</td></tr></tbody>"
        '<tfoot><tr><td colspan="1">&lt;u&gt;</td></tr></tfoot></table>'
    )


def test_html_without_some_parts():
    """An empty title, header or footer leaves no empty element."""
    table = Table("", ("",), (("1",),))
    assert table.html() == "<table><tbody><tr><td>1</td></tr></tbody></table>"


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of 80 columns that takes colour."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)


def without_colour(text):
    """Text without the codes for colour, and without blanks at the ends of lines."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return "\n".join(line.rstrip() for line in plain.splitlines())


def test_text_on_a_terminal(table, terminal):
    """On a terminal the same layout comes in colour."""
    text = table.text()
    assert without_colour(text) == table.plain()
    assert "\x1b[36mvalue.wheel.drag" in text


def test_text_on_a_narrow_terminal(table, terminal, monkeypatch):
    """On a narrow terminal long cells are folded, and nothing of them is lost."""
    monkeypatch.setenv("COLUMNS", "40")
    text = without_colour(table.text())
    assert max(map(len, text.splitlines())) <= 40
    assert sorted("".join(text.split())) == sorted("".join(table.plain().split()))


@pytest.mark.parametrize(
    ("name", "value"),
    [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "unknown")],
    ids=["NO_COLOR", "dumb", "unknown"],
)
def test_text_on_a_terminal_without_colour(table, terminal, monkeypatch, name, value):
    """A terminal that is not to show colour gets the plain table."""
    monkeypatch.setenv(name, value)
    assert table.text() == table.plain()


@pytest.mark.parametrize("stdout", [io.StringIO(), None], ids=["file", "none"])
def test_text_without_a_terminal(table, monkeypatch, stdout):
    """A file gets the plain table, and so does a program without standard output."""
    monkeypatch.setattr(sys, "stdout", stdout)
    assert table.text() == table.plain()


def test_text_without_some_parts(terminal):
    """What is empty leaves no empty lines on a terminal either."""
    table = Table("", ("", ""), (("value[0]", "[red]"), ("[/]", "x")))
    assert (
        without_colour(table.text()) == table.plain() == "value[0]  [red]\n[/]       x"
    )
