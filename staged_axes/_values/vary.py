"""One declaration for the axis and the data: arrays put in where a value varies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from staged_axes._record.axes import AXES
from staged_axes._record.decisions import Decision, Default, Stage
from staged_axes._record.placeholders import Places, walk
from staged_axes._record.record import Record, orders
from staged_axes._record.staging import StageBlock
from staged_axes._resolve.fit import fit
from staged_axes._resolve.misses import problem, unmatched
from staged_axes._resolve.resolve import Resolution, resolve
from staged_axes._structure import tree as _tree
from staged_axes._structure.leaves import is_array, shape_of
from staged_axes._structure.match import Located
from staged_axes._values import members as _members
from staged_axes._words.display import short
from staged_axes._words.paths import Path, code, parse
from staged_axes._words.provenance import Source
from staged_axes.errors import BindError, Problem, RecordError, error, unfit


@frozen
class _Leaf:
    """A leaf of the value: what it is, what it becomes, and at whose demand."""

    path: Path
    own: Any
    new: Any
    ask: Decision | None = None


def vary(
    root: Places, value: Any, arrays: Any, like: Any, stage: Stage, source: Source
) -> Any:
    """The value with batched arrays put in, and their axes recorded.

    Args:
      root: The builder.
      value: One example, or a batch where `like` is given.
      arrays: By place.
      like: One example.
      stage: The stage that decides.
      source: The line that decides.

    Raises:
      RecordError: A key is no place.
      ConflictError: Another stage decided that such a place is shared.
      BindError: Arrays, value and record do not fit; with every reason.
    """
    record = root.__record__
    own, treedef = _tree.flatten(value)
    leaves = list(map(_Leaf, _tree.paths(value), own, own))
    whole = Located(value, treedef)
    problems: list[Problem] = []
    for ask, array in _asked(root, arrays, stage, source):
        problems += _put(leaves, ask, array, whole)
    new = [leaf.new for leaf in leaves]

    def resolved() -> Resolution:
        return resolve(record.entries(), AXES, value, new, treedef)

    # What is recorded here is taken back where the arrays turn out not to fit.
    with StageBlock(record, stage):
        _record_axes(record, leaves, resolved().payloads)
        if like is None:
            problems += _left_out(leaves, resolved())
        try:
            fit(
                record.entries(),
                value,
                leaves=new,
                like=value if like is None else like,
            )
        except BindError as e:
            problems += _besides(problems, e.problems)
        if problems:
            raise unfit(problems)
        return treedef.unflatten(new)


def _asked(
    root: Places, arrays: Any, stage: Stage, source: Source
) -> Iterator[tuple[Decision, Any]]:
    """A decision for each place that is to vary, and the array for it."""
    if not isinstance(arrays, Mapping):
        raise error(
            RecordError,
            f"vary takes a dict from place to array, not a {type(arrays).__name__}.",
            Problem(kind="argument", path="arrays", there=short(arrays)),
            fixes=['spec.vary(model, {"opt.timestep": timesteps})'],
        )
    for key, array in arrays.items():
        decision = Decision(
            path=_path(root, key),
            payload=0,
            stage=stage,
            source=source,
            order=next(orders),
        )
        yield decision, array


def _path(root: Places, key: Any) -> Path:
    """The path that a key means, checked against a declared class."""
    if isinstance(key, str):
        return walk(root, parse(key)).__path__
    if isinstance(key, Places) and key.__record__ is root.__record__:
        return key.__path__
    what = "a place of another builder" if isinstance(key, Places) else short(key)
    raise error(
        RecordError,
        f"vary takes places of this builder, as text or as spec.x, not {what}.",
        Problem(kind="path", path="arrays", there=what),
        fixes=['spec.vary(model, {"opt.timestep": timesteps, spec.body_mass: masses})'],
    )


def _put(
    leaves: list[_Leaf], ask: Decision, array: Any, whole: Located
) -> list[Problem]:
    """Puts the array for one place in; says why not where it does not belong there."""
    found = whole.at(ask.path)
    if len(found) != 1:
        return [_no_place(ask, whole.node, len(found))]
    node, numbers = found[0].node, found[0].numbers
    parts = [array]
    if _tree.is_node(node):
        if not numbers:
            return [_nothing_there(ask, node)]
        if _tree.paths(array) != _tree.paths(node):
            return [_other_leaves(ask, node, array)]
        parts, _ = _tree.flatten(array)
    problems = []
    for i, part in zip(numbers, parts, strict=True):
        fault = _fault(leaves[i], ask, part)
        if fault:
            problems.append(fault)
        if is_array(part):
            leaves[i] = evolve(leaves[i], new=part, ask=ask)
    return problems


def _record_axes(
    record: Record, leaves: list[_Leaf], payloads: tuple[Any, ...]
) -> None:
    """Decides axis 0 where nothing is said that maps a leaf that varies."""
    said = {
        leaf.ask.path
        for leaf, payload in zip(leaves, payloads, strict=True)
        if leaf.ask and isinstance(payload, int)
    }
    unsaid: dict[Path, Decision] = {}
    for leaf, payload in zip(leaves, payloads, strict=True):
        if leaf.ask and not isinstance(payload, int):
            place = leaf.path if leaf.ask.path in said else leaf.ask.path
            unsaid[place] = evolve(leaf.ask, path=place)
    for decision in unsaid.values():
        record.write(decision)


def _left_out(leaves: list[_Leaf], resolved: Resolution) -> list[Problem]:
    """The problems of leaves that are mapped, or varied again, with nothing new."""
    problems = []
    for leaf, axis, decider in zip(
        leaves, resolved.payloads, resolved.deciders, strict=True
    ):
        shape = shape_of(leaf.new)
        if not isinstance(axis, int):
            continue
        if leaf.ask is None:
            problems.append(
                problem(
                    "not-varied",
                    code(leaf.path, "value"),
                    decider,
                    there=short(leaf.own),
                    asked=f"axis {axis}, but there is no array for it",
                    axis=axis,
                    shape=shape,
                    fix="sa.AxesBuilder(default=None) shares all that nobody decides"
                    if isinstance(decider, Default)
                    else "give each of them an array; where they were varied before: "
                    "like=..., the value of one example",
                )
            )
        elif shape == shape_of(leaf.own):
            problems.append(
                problem(
                    "twice",
                    code(leaf.path, "value"),
                    decider,
                    there=f"{short(leaf.own)} already",
                    asked=f"axis {axis}: an array of this very shape",
                    axis=axis,
                    shape=shape,
                    fix="was it varied before? Then give the value as it was before, "
                    "or like=..., the value of one example\n"
                    "otherwise give the array a batch axis",
                )
            )
    return problems


def _besides(known: list[Problem], others: tuple[Problem, ...]) -> list[Problem]:
    """The problems that do not just follow from those that are known."""
    paths = {p.path for p in known}
    follow = {"nothing-mapped"} if known else set()
    if any(p.kind in ("not-array", "not-varied") for p in known):
        follow.add("size")
    return [p for p in others if p.path not in paths and p.kind not in follow]


# What is wrong with one place ---------------------------------------------------


def _no_place(ask: Decision, value: Any, count: int) -> Problem:
    """The problem of a path that leads nowhere, or to several places."""
    if count:
        return problem(
            "several",
            code(ask.path),
            ask,
            there=f"{count} places",
            asked="one array",
            fix="name each of them: {'layers[0].w': ..., 'layers[1].w': ...}",
        )
    (missed,) = unmatched([ask], AXES, value, "value", "spec")
    if missed.kind != "static":
        return missed
    fix = "static data is the same in the whole batch: make it a leaf to vary it"
    return evolve(missed, fix=fix)


def _nothing_there(ask: Decision, node: Any) -> Problem:
    """The problem of a place that holds None or an empty container."""
    return problem(
        "empty",
        code(ask.path, "value"),
        ask,
        there=short(node),
        asked="an array of many",
        fix="build the value with an array there first",
    )


def _other_leaves(ask: Decision, node: Any, data: Any) -> Problem:
    """The problem of data that does not have the leaves of the node for which it is."""
    return problem(
        "leaves",
        code(ask.path, "value"),
        ask,
        there=f"{type(node).__name__} of {_leaves(node)}",
        asked=f"given {type(data).__name__} of {_leaves(data)}",
        fix="name the leaves one by one, or give a tree with the same leaves",
    )


def _leaves(x: Any) -> str:
    """`1 leaf`, `2 leaves`."""
    n = len(_tree.flatten(x)[0])
    return "1 leaf" if n == 1 else f"{n} leaves"


def _fault(leaf: _Leaf, ask: Decision, part: Any) -> Problem | None:
    """What is wrong with the data for one leaf, its shape apart."""
    place = code(leaf.path, "value")
    if leaf.ask is not None:
        return problem(
            "twice",
            place,
            ask,
            there=f"varied by {code(leaf.ask.path)}",
            asked=f"varied by {code(ask.path)} too",
            fix="keep one of the two",
        )
    if not is_array(leaf.own):
        return problem(
            "not-array",
            place,
            ask,
            there=short(leaf.own),
            asked="to vary, but it is no array",
            fix="what is no array is the same in the whole batch",
        )
    if not is_array(part):
        return problem(
            "not-array",
            place,
            ask,
            there=short(leaf.own),
            asked=f"given a {type(part).__name__}, which is no array",
            fix="np.asarray(...) makes an array of a list of numbers",
        )
    if not _members.are_of_one_kind(leaf.own, part):
        return problem(
            "dtype",
            place,
            ask,
            there=short(leaf.own),
            asked=f"given {short(part)}: other numbers",
            shape=shape_of(part),
            fix=f"array.astype({_members.dtype_of(leaf.own)})",
        )
    return None
