"""Which decision wins at each leaf, compared with a naive walk over plain lists."""

import contextlib
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st

import staged_axes as sa
import winners
from staged_axes._record.axes import AXES
from staged_axes._resolve.resolve import resolve
from staged_axes._structure import tree as _tree
from winners import LEAF, Disagree, Pair


def write(spec, w):
    """Writes as a user does: attributes, items and `with`."""
    named = w.stage is not None
    with (
        spec.stage(w.stage, override=w.override) if named else contextlib.nullcontext()
    ):
        if not w.path:
            sa.record(spec, "", w.axis)
            return
        place = spec
        for step in w.path[:-1]:
            place = place[step]
        place[w.path[-1]] = w.axis


def recorded(program, default=None):
    """A builder with a whole program."""
    spec = sa.AxesBuilder(default=default)
    for w in program:
        write(spec, w)
    return spec


def axes(spec, value):
    """The axes for a value whose axes all have one size."""
    return spec.bind(value, axis_size=winners.SIZE).leaf_axes


ARRAY = winners.value_of(LEAF)
CAR = {"mass": ARRAY, "wheel": {"drag": ARRAY, "size": ARRAY}}


@given(st.data(), winners.models(), winners.AXES)
def test_winners(data, model, default):
    """Every leaf gets the axis of the write that the naive walk finds."""
    program = data.draw(winners.programs(model))
    value = winners.value_of(model)
    try:
        expected = winners.axes(model, winners.written(program), default)
    except Disagree:
        with pytest.raises(sa.ConflictError, match="decided differently") as e:
            axes(recorded(program, default), value)
        conflicts = [p for p in e.value.problems if p.kind == "conflict"]
        assert all(p.line and p.file == __file__ for p in conflicts)
        assert len(conflicts) >= 2
    else:
        assert axes(recorded(program, default), value) == expected


@given(st.data(), winners.models())
def test_order_of_stages(data, model):
    """Stages may come in any order: the axes are the same, if nothing conflicts."""
    program = data.draw(winners.programs(model, ("x", "y", "z"), overriding=()))
    blocks = [[w for w in program if w.stage == name] for name in ("x", "y", "z")]
    value = winners.value_of(model)
    found = set()
    for order in itertools.permutations(blocks):
        with contextlib.suppress(sa.ConflictError):
            found.add(axes(recorded(itertools.chain(*order)), value))
    assert len(found) <= 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["above first", "below first"])
def test_the_nearest_wins(order):
    """The decision nearest to a leaf wins, whichever stage came first."""
    spec = sa.AxesBuilder(default=2)
    for i in order:
        with spec.stage(f"stage {i}"):
            if i:
                spec.wheel.drag = 0
            else:
                spec.wheel = None
    assert axes(spec, CAR) == (2, 0, None)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["slice first", "index first"])
def test_an_exact_place_beats_a_slice(order):
    """Of an exact place and a slice at one depth the exact one wins, in any order."""
    spec = sa.AxesBuilder(default=None)
    for i in order:
        if i:
            spec.layers[1].w = 1
        else:
            spec.layers[:].w = 0
    layers = [{"w": ARRAY}] * 3
    assert axes(spec, {"layers": layers}) == (0, 1, 0)


def test_a_slice_replaces_nothing_exact():
    """A slice above an exact place leaves it as it is, though it comes later."""
    spec = sa.AxesBuilder(default=2)
    spec.layers[0].w = 1
    spec.layers[:] = None
    assert axes(spec, {"layers": [{"w": ARRAY, "b": ARRAY}] * 2}) == (
        None,
        1,
        None,
        None,
    )


def test_an_exact_place_replaces_a_slice_below():
    """Writing to a place replaces what the stage wrote below it through a slice."""
    spec = sa.AxesBuilder(default=None)
    spec.layers[:].w = 0
    spec.layers[1] = 2
    assert axes(spec, {"layers": [{"w": ARRAY}] * 3}) == (0, 2, 0)


@pytest.mark.parametrize("override", [True, False], ids=["override", "no override"])
def test_override_replaces_another_spelling_below(override):
    """A stage that overrides replaces what was written below, in any spelling."""
    spec = sa.AxesBuilder(default=2)
    with spec.stage("first"):
        spec.pair.first.x = 0
    with spec.stage("second", override=override):
        spec.pair[0] = None
    value = {"pair": Pair({"x": ARRAY}, ARRAY)}
    assert axes(spec, value) == (None if override else 0, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [("[2]", "[-1]"), (".first", "[0]"), ("[:]", "[0:]"), ("[0:1]", "[:1]")],
    ids=["negative", "field", "slice", "bounds"],
)
def test_conflict_between_two_spellings(one, other):
    """Two stages that decide one place in two spellings are a conflict at bind."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        sa.record(spec, f"x{one}", 0)
    with spec.stage("second"):
        sa.record(spec, f"x{other}", None)
    value = {"x": Pair(ARRAY, ARRAY) if "first" in one else [ARRAY] * 3}
    with pytest.raises(sa.BindError, match="decided differently by two stages") as e:
        axes(spec, value)
    assert isinstance(e.value, sa.ConflictError)
    first, second, *_ = e.value.problems
    assert (first.path, first.stage, first.axis) == (f"spec.x{one} = 0", "first", 0)
    assert (second.path, second.stage) == (f"spec.x{other} = None", "second")
    assert second.line == first.line + 2


def test_two_spellings_may_agree():
    """Two stages that decide one place alike are no conflict."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        spec.x[2] = 0
    with spec.stage("second"):
        spec.x[-1] = 0
    assert axes(spec, {"x": [ARRAY] * 3}) == (None, None, 0)


# Rules --------------------------------------------------------------------------

KEYS = ("a", "b", "layer c", 0, 1, "first")
RULES = st.lists(
    st.tuples(st.sampled_from(["x", "y", "z"]), st.sampled_from(KEYS), winners.AXES),
    min_size=1,
    max_size=4,
)


def names_of(leaf):
    """What the steps to a leaf are called; the fields of a named tuple by name."""
    return [
        Pair._fields[name] if isinstance(node, Pair) else name for node, name in leaf
    ]


@given(st.data(), winners.models(), RULES)
def test_rules(data, model, rules):
    """Paths beat rules, and the later rule wins; rules of two stages must agree."""
    writes = data.draw(winners.programs(model, stages=("x",), max_size=2))
    spec = recorded(writes, default=2)
    for stage, key, axis in rules:
        with spec.stage(stage):
            sa.rule(spec, f"**/{key}", sa.optional(axis))
    # The same pattern in the same stage is written once.
    last = {(stage, key): axis for stage, key, axis in rules}
    order = list(dict.fromkeys(reversed([rule[:2] for rule in rules])))[::-1]
    standing = winners.written(writes)
    expected, conflict = [], False
    for leaf in winners.leaves(model):
        best = winners.winner(standing, leaf)
        hits = [(s, last[s, k]) for s, k in order if k in names_of(leaf)]
        if best is None:
            conflict |= any(
                old[0] != new[0] and old[1] != new[1]
                for old, new in itertools.pairwise(hits)
            )
        axis = best.axis if best else hits[-1][1] if hits else 2
        expected.append(None if axis is None else axis % winners.SIZE)
    if conflict:
        with pytest.raises(sa.ConflictError, match="decided differently"):
            axes(spec, winners.value_of(model))
    else:
        assert axes(spec, winners.value_of(model)) == tuple(expected)


def test_rules_of_two_stages_that_disagree():
    """The conflict names both rules, once for all leaves."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        sa.rule(spec, "**/drag", 0)
    with spec.stage("second"):
        sa.rule(spec, "wheel", None)
    with pytest.raises(sa.ConflictError, match="1 place is decided differently") as e:
        axes(spec, {"wheel": {"drag": [ARRAY, ARRAY]}})
    assert [(p.path, p.stage) for p in e.value.problems] == [
        ("sa.rule(spec, '**/drag', 0)", "first"),
        ("sa.rule(spec, 'wheel', None)", "second"),
    ]


def test_a_rule_may_override():
    """A rule in a stage that overrides beats those of earlier stages."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        sa.rule(spec, "**/drag", 0)
    with spec.stage("second", override=True):
        sa.rule(spec, "wheel", 1)
    assert axes(spec, CAR) == (None, 1, 1)


def test_a_path_settles_what_rules_dispute():
    """Where a path decides, it does not matter that rules disagree."""
    spec = sa.AxesBuilder(default=None)
    with spec.stage("first"):
        sa.rule(spec, "**/drag", 0)
    with spec.stage("second"):
        sa.rule(spec, "wheel/drag", 1)
    spec.wheel.drag = 2
    assert axes(spec, CAR) == (None, 2, None)


def test_a_rule_holds_below_its_place():
    """A rule of a place sees paths from there on, and no other leaf."""
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec.layers[:], "w", 0)
    value = {"layers": [{"w": ARRAY, "b": ARRAY}, {"w": ARRAY}], "w": ARRAY}
    assert axes(spec, value) == (None, 0, 0, None)


def test_a_rule_that_matches_only_decided_leaves_is_no_miss():
    """A rule has its match although a path decides there."""
    spec = sa.AxesBuilder(default=None)
    spec.wheel = 1
    sa.rule(spec, "**/drag", 0)
    assert axes(spec, CAR) == (None, 1, 1)


# Defaults -----------------------------------------------------------------------


def test_without_a_default_each_leaf_must_be_decided():
    """With `UNDECIDED` a leaf that nobody decided is an error, and each is named."""
    spec = sa.AxesBuilder(default=sa.UNDECIDED)
    spec.wheel.drag = 0
    with pytest.raises(sa.BindError, match="nobody decided about 2 leaves") as e:
        axes(spec, CAR)
    assert [(p.kind, p.path) for p in e.value.problems] == [
        ("undecided", "value['mass']"),
        ("undecided", "value['wheel']['size']"),
    ]


def test_a_default_may_look_at_the_leaves():
    """A `per_leaf` default decides each leaf that nobody else does."""
    spec = sa.AxesBuilder(default=sa.per_leaf(lambda x: 0 if x.ndim == 3 else None))
    spec.a = None
    value = {"a": ARRAY, "b": ARRAY, "c": ARRAY[0]}
    assert axes(spec, value) == (None, 0, None)


# Nothing is silent --------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "whel",
        "wheel.drag.x",
        "wheel[0]",
        "layers[3]",
        "layers[-4]",
        "layers.w",
        "layers[:].v",
        "empty[:]",
        "empty[0]",
        "none.x",
        "mass[:]",
        "[0]",
    ],
)
@pytest.mark.parametrize("axis", [None, 0, sa.STATIC], ids=str)
def test_a_decision_for_nothing_is_an_error(path, axis):
    """A place that is not there is named; `optional` says that this is no fault."""
    value = {
        **CAR,
        "layers": [{"w": ARRAY}] * 3,
        "empty": [],
        "none": None,
    }
    spec = sa.AxesBuilder(default=0)
    sa.record(spec, path, axis)
    with pytest.raises(sa.BindError, match=r"^1 decision points at something") as e:
        axes(spec, value)
    dot = "" if path.startswith("[") else "."
    assert [(p.kind, p.path) for p in e.value.problems] == [
        ("unknown", f"spec{dot}{path} = {AXES.text(axis)}")
    ]
    sa.record(spec, path, sa.optional(axis))
    assert axes(spec, value) == (0,) * 6


def test_a_slice_need_not_match_everywhere():
    """A decision through a slice is no miss if one child has the place."""
    spec = sa.AxesBuilder(default=None)
    spec.layers[:].w = 0
    assert axes(spec, {"layers": [{"b": ARRAY}, {"w": ARRAY}]}) == (None, 0)


def test_a_field_that_holds_none_is_there():
    """A decision for a field that holds None maps nothing and is no miss."""
    spec = sa.AxesBuilder(default=None)
    spec.extra = 0
    spec.x = 1
    assert axes(spec, {"extra": None, "x": ARRAY}) == (1,)


@pytest.mark.parametrize(
    "pattern",
    ["**/drga", "drag", lambda path, leaf: False],
    ids=["name", "no stars", "function"],
)
def test_a_rule_for_nothing_is_an_error(pattern):
    """A rule that no leaf answers to is named, unless it is `optional`."""
    spec = sa.AxesBuilder(default=0)
    sa.rule(spec, pattern, None)
    with pytest.raises(sa.BindError, match=r"^1 rule matches no leaf") as e:
        axes(spec, CAR)
    assert [p.kind for p in e.value.problems] == ["unmatched"]
    sa.rule(spec, pattern, sa.optional(None))
    assert axes(spec, CAR) == (0, 0, 0)


def test_a_rule_below_a_missing_place_is_an_error():
    """A rule of a place that is not there matches nothing."""
    spec = sa.AxesBuilder(default=0)
    sa.rule(spec.whel, "**", None)
    with pytest.raises(sa.BindError, match=r"^1 rule matches no leaf"):
        axes(spec, CAR)


def test_every_problem_is_in_the_one_error():
    """Misses, conflicts and undecided leaves are gathered, and all are raised once."""
    spec = sa.AxesBuilder(default=sa.UNDECIDED)
    with spec.stage("first"):
        spec.layers[0] = 0
        spec.whel = 0
    with spec.stage("second"):
        spec.layers[-2] = 1
        sa.rule(spec, "**/nobody", 0)
    spec.wheel.drag = 7
    with pytest.raises(sa.BindError, match="decided differently") as e:
        axes(spec, {**CAR, "layers": [ARRAY, ARRAY]})
    kinds = [p.kind for p in e.value.problems]
    assert sorted(set(kinds)) == [
        "axis",
        "conflict",
        "undecided",
        "unknown",
        "unmatched",
    ]
    assert kinds.count("undecided") == 3


# Decisions that wait for the value ----------------------------------------------


def test_per_leaf_sees_each_leaf():
    """`per_leaf` is asked for each leaf below its place, and for no other."""
    seen = []

    def decide(leaf):
        seen.append(leaf)
        return np.int64(-1)

    spec = sa.AxesBuilder(default=None)
    spec.wheel = sa.per_leaf(decide)
    spec.wheel.size = 0
    assert axes(spec, CAR) == (None, 2, 0)
    assert [x is CAR["wheel"]["drag"] for x in seen] == [True]


def test_from_node_sees_the_concrete_node():
    """`from_node` is asked once for each node at its place, with its static data."""
    seen = []

    def decide(node):
        seen.append(node)
        return 0 if len(node) == 1 else None

    spec = sa.AxesBuilder(default=2)
    spec.layers[:] = sa.from_node(decide)
    layers = [{"w": ARRAY}, {"w": ARRAY, "b": ARRAY}]
    assert axes(spec, {"layers": layers, "x": ARRAY}) == (0, None, None, 2)
    assert [a is b for a, b in zip(seen, layers, strict=True)] == [True, True]


@pytest.mark.parametrize("answer", [True, 1.0, "0", (0,), sa.STATIC, sa.UNDECIDED])
@pytest.mark.parametrize("late", [sa.per_leaf, sa.from_node])
def test_a_function_that_gives_no_axis(late, answer):
    """What a function gives is an int or None; anything else is a problem."""
    spec = sa.AxesBuilder(default=0)
    spec.wheel.drag = late(lambda _: answer)
    with pytest.raises(
        sa.BindError, match=r"^1 place got something that is no axis"
    ) as e:
        axes(spec, CAR)
    (problem,) = e.value.problems
    assert (problem.kind, problem.path) == ("payload", "value['wheel']['drag']")


@pytest.mark.parametrize("late", [sa.per_leaf, sa.from_node])
def test_a_function_that_raises(late):
    """An exception of the user's passes as it is, with a note on who decided."""

    def decide(_):
        return 1 // 0

    spec = sa.AxesBuilder(default=0)
    with spec.stage("sysid"):
        spec.wheel.drag = late(decide)
    with pytest.raises(ZeroDivisionError, match="by zero") as e:
        axes(spec, CAR)
    (note,) = e.value.__notes__
    place = "value['wheel']['drag']"
    assert note.startswith(f"in the function that decides {place}, recorded at sysid  ")


def test_a_pattern_that_raises():
    """An exception out of a rule's own function says which rule it was."""
    spec = sa.AxesBuilder(default=0)
    with spec.stage("sysid"):
        sa.rule(spec, lambda path, leaf: 1 // 0, None)
    with pytest.raises(ZeroDivisionError, match="by zero") as e:
        axes(spec, CAR)
    (note,) = e.value.__notes__
    assert note.startswith("in the pattern of sa.rule(spec, ")
    assert ", recorded at sysid  " in note


def test_late_decisions_inside_jit():
    """Functions see tracers, which have a shape, where the value is traced."""

    @jax.jit
    def traced(car):
        spec = sa.AxesBuilder(default=sa.per_leaf(lambda x: x.ndim - 1))
        return jnp.array(axes(spec, car))

    assert traced(CAR).tolist() == [2, 2, 2]


# What a resolution holds for ----------------------------------------------------


@jax.tree_util.register_pytree_node_class
class Keyless:
    def __init__(self, x):
        self.x = x

    def tree_flatten(self):
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def by_path(spec):
    """Names and positions."""
    spec.wheel.drag = 0
    spec.keyless[0] = 0
    sa.rule(spec, "**/drag", 0)


def by_leaf(spec):
    """What a leaf is."""
    spec.wheel.drag = sa.per_leaf(lambda _: 0)


def by_node(spec):
    """What a node is."""
    spec.wheel.drag = sa.from_node(lambda _: 0)


def by_function(spec):
    """A function of the user's."""
    sa.rule(spec, lambda path, _: "drag" in path, 0)


def by_attribute(spec):
    """An attribute, which may hold anything."""
    spec.keyless.x = 0


@pytest.mark.parametrize(
    ("decide", "expected"),
    [
        (by_path, True),
        (by_leaf, False),
        (by_node, False),
        (by_function, False),
        (by_attribute, False),
    ],
)
def test_is_general(decide, expected):
    """A resolution holds for a whole treedef unless it looked at the value's data."""
    spec = sa.AxesBuilder(default=None)
    decide(spec)
    value = {**CAR, "keyless": Keyless(ARRAY)}
    leaves, treedef = _tree.flatten(value)
    found = resolve(spec.__record__.entries(), AXES, value, leaves, treedef)
    assert found.is_general is expected
    assert found.problems == ()


# Functions of the user's in rules and defaults ----------------------------------


def test_from_node_in_a_rule():
    """It is asked about each leaf that the rule matches."""
    spec = sa.AxesBuilder(default=None)
    sa.rule(spec, "w*", sa.from_node(lambda leaf: 0 if leaf.ndim > 1 else None))
    value = {"w1": np.ones((3, 2)), "w2": np.ones(3), "x": np.ones(3)}
    assert spec.bind(value).leaf_axes == (0, None, None)


def test_from_node_as_a_default():
    """It is asked about the whole value, or about what a builder is mounted for."""
    inner = sa.AxesBuilder(default=sa.from_node(lambda node: node["n"]))
    inner.n = None
    spec = sa.AxesBuilder(default=sa.from_node(lambda node: len(node) - 2))
    spec.inner = inner
    value = {"inner": {"n": 1, "w": np.ones((2, 3))}, "x": np.ones(3)}
    assert spec.bind(value).leaf_axes == (None, 1, 0)


def test_what_a_function_of_a_rule_raises_names_the_rule():
    """The user's own exception comes through, with the line of the rule."""
    spec = sa.AxesBuilder(default=0)
    sa.rule(spec, "w", sa.from_node(lambda leaf: leaf.missing))
    with pytest.raises(AttributeError, match="missing") as caught:
        spec.bind({"w": np.ones(3)})
    assert "the function that decides value['w']" in caught.value.__notes__[0]
    assert "test_resolve.py:" in caught.value.__notes__[0]


def test_many_decisions_in_one_row():
    """Children of a row are looked through once, not once for each decision."""
    looked = []

    class Row(list):
        def __iter__(self):
            looked.append(1)
            return super().__iter__()

    jax.tree_util.register_pytree_with_keys(
        Row,
        lambda row: (
            [(jax.tree_util.SequenceKey(i), row[i]) for i in range(len(row))],
            None,
        ),
        lambda _, items: Row(items),
    )
    spec = sa.AxesBuilder(default=None)
    for i in range(1, 41):
        spec[-i] = 0 if i % 2 else None
        spec[40 - i : 41 - i] = 0 if i % 2 else None
    bound = spec.bind(Row([np.ones(3)] * 40))
    assert bound.leaf_axes == (None, 0) * 20
    assert len(looked) < 10
