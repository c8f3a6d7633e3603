"""Record and structure -> one decision for each leaf.

The rule: the decision nearest to a leaf wins; an exact place beats a slice at the same
depth; paths beat rules; rules beat the default. Stages that disagree about one place,
and decisions and rules that match nothing, are problems; all of them are gathered.

Only nodes on the way to a decision are looked into, so the cost is that of flattening
plus the decisions, however large the value.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
from attrs import Factory, define, frozen

from staged_axes._record.axes import FromNode, PerLeaf
from staged_axes._record.decisions import (
    UNDECIDED,
    Decision,
    Default,
    Entries,
    Form,
    Rule,
    Undecided,
    conflict,
)
from staged_axes._resolve.misses import (
    Decider,
    disagreeing,
    idle,
    problem,
    unmatched,
)
from staged_axes._structure import patterns as _patterns, tree as _tree
from staged_axes._structure.match import match
from staged_axes._words.display import short
from staged_axes._words.paths import Name, Path, Span, Step, code
from staged_axes.errors import Problem


@frozen
class Resolution:
    """What was decided for each leaf, in flatten order, and by whom.

    Attributes:
      payloads: An axis, None, `STATIC` or `UNDECIDED` for each leaf.
      deciders: The decision, rule or default behind each.
      problems: Everything that does not fit.
      is_general: Does it hold for every value of the same treedef?
    """

    payloads: tuple[Any, ...]
    deciders: tuple[Decider, ...]
    problems: tuple[Problem, ...]
    is_general: bool


@define
class _Place:
    """A node of the tree of decisions."""

    here: list[Decision] = Factory(list)
    below: dict[Step, _Place] = Factory(dict)
    scopes: set[Path] = Factory(set)


@frozen(eq=False)
class _Range:
    """The leaves `start:stop` below one node of the value."""

    node: Any
    path: Path
    start: int
    stop: int


_Visit: TypeAlias = tuple[list[tuple[_Place, int]], _Range, Any, tuple[Decision, ...]]


@define
class _Work:
    """What one resolution gathers on its way."""

    form: Form
    root: str
    name: str
    deciders: list[Decider | None]
    payloads: list[Any]
    problems: list[Problem] = Factory(list)
    scopes: dict[Path, list[_Range]] = Factory(dict)
    reached: set[Path] = Factory(set)
    is_general: bool = True


def resolve(
    entries: Entries,
    form: Form,
    value: Any,
    leaves: Sequence[Any],
    treedef: Any,
    root: str = "value",
) -> Resolution:
    """One decision for each leaf of the value.

    Args:
      entries: What the record says.
      form: Prints payloads.
      value: The concrete pytree; its classes are read, its contents are not, except by
        the user's own `per_leaf`, `from_node` and rules.
      leaves: Its leaves.
      treedef: Its treedef.
      root: What the value is called in messages.
    """
    n = len(leaves)
    work = _Work(form, root, entries.name, [None] * n, [UNDECIDED] * n)
    work.problems.extend(entries.conflicts)
    whole = _Range(value, (), 0, n)
    _descend(work, _plant(entries), whole, treedef)
    missed = [
        decision
        for decision in entries.decisions
        if decision.path not in work.reached and not decision.optional
    ]
    work.problems += unmatched(missed, form, value, root, entries.name)
    _apply_rules(work, entries.rules, value)
    _apply_defaults(work, entries.defaults)
    _ask_leaves(work, leaves, value)
    return Resolution(
        tuple(work.payloads),
        tuple(d for d in work.deciders if d is not None),
        tuple(work.problems),
        work.is_general,
    )


# Paths --------------------------------------------------------------------------


def _plant(entries: Entries) -> _Place:
    """The decisions as a tree of places."""
    root = _Place()

    def place(path: Path) -> _Place:
        at = root
        for step in path:
            at = at.below.setdefault(step, _Place())
        return at

    for decision in entries.decisions:
        place(decision.path).here.append(decision)
    scopes = {r.under for r in entries.rules} | {d.path for d in entries.defaults}
    for scope in scopes:
        place(scope).scopes.add(scope)
    return root


def _descend(work: _Work, root: _Place, whole: _Range, treedef: Any) -> None:
    """Applies what is decided at each node, and looks only into nodes that matter.

    On the stack is a node with the places that stand for it, each with the number of
    slices on its way (several, since `[-1]`, `[2]` and `[:]` may be one child), and
    with what was decided for exact places above.
    """
    stack: list[_Visit] = [([(root, 0)], whole, treedef, ())]
    while stack:
        active, at, treedef, above = stack.pop()
        rivals = _rivals(work, active, above)
        winner = _winner(work, rivals)
        for place, _ in active:
            for scope in place.scopes:
                work.scopes.setdefault(scope, []).append(at)
        if winner is not None:
            _fill(work, winner, at)
        if not any(place.below for place, _ in active):
            continue
        above = (*above, *(d for d, spans in rivals if spans == 0))
        below = _tree.children(at.node)
        chosen: dict[int, list[tuple[_Place, int]]] = {}
        for place, spans in active:
            for step, next_place in place.below.items():
                work.is_general &= below.is_named or not isinstance(step, Name)
                for i in match(at.node, below, step):
                    chosen.setdefault(i, []).append(
                        (next_place, spans + isinstance(step, Span))
                    )
        parts = treedef.children()
        stops = list(itertools.accumulate(part.num_leaves for part in parts))
        for i in sorted(chosen, reverse=True):
            path = (*at.path, below.step(i))
            stop = at.start + stops[i]
            inner = _Range(below.values[i], path, stop - parts[i].num_leaves, stop)
            stack.append((chosen[i], inner, parts[i], above))


def _rivals(
    work: _Work, active: list[tuple[_Place, int]], above: tuple[Decision, ...]
) -> list[tuple[Decision, int]]:
    """The decisions for a node, each with its slices, that nothing above replaces.

    The record has seen to places of one spelling; a slice, an index or a field of a
    named tuple may be the same place in another.
    """
    here = [(d, spans) for place, spans in active for d in place.here]
    work.reached.update(d.path for d, _ in here)
    return [
        (d, spans)
        for d, spans in here
        if not d.is_mount
        and not any(
            a.order > d.order and (a.stage == d.stage or a.stage.override)
            for a in above
        )
    ]


def _winner(work: _Work, rivals: list[tuple[Decision, int]]) -> Decision | None:
    """The decision that counts at a node, of all that were made for it."""
    best: Decision | None = None
    fewest = min((spans for _, spans in rivals), default=0)
    exact = [d for d, spans in rivals if spans == fewest]
    for rival in sorted(exact, key=lambda d: d.order):
        if best is not None and _clash(best, rival):
            work.problems.extend(conflict(best, rival, work.form).problems)
        best = rival
    return best


def _clash(old: Decision | Rule, new: Decision | Rule) -> bool:
    """Do two stages disagree, and the later may not override?"""
    return (
        old.stage != new.stage and old.payload != new.payload and not new.stage.override
    )


def _fill(work: _Work, winner: Decision, at: _Range) -> None:
    """Writes a decision to all leaves below the node."""
    payload = _of_node(work, winner, at)
    count = at.stop - at.start
    work.payloads[at.start : at.stop] = [payload] * count
    work.deciders[at.start : at.stop] = [winner] * count


def _of_node(work: _Work, decider: Decision | Default, at: _Range) -> Any:
    """What was decided for a node, which `from_node` is asked about."""
    if not isinstance(decider.payload, FromNode):
        return decider.payload
    work.is_general = False
    return _ask(work, decider, decider.payload.fn, at.node, at.path)


def _ask(
    work: _Work,
    decider: Decider,
    fn: Callable[[Any], Any],
    x: Any,
    path: Path,
) -> Any:
    """The axis that a user's function gives, checked."""
    place = code(path, work.root)
    with _noted(f"in the function that decides {place}, recorded at {decider}"):
        answer = fn(x)
    if answer is None:
        return None
    if isinstance(answer, int | np.integer) and not isinstance(answer, bool):
        return int(answer)
    work.problems.append(
        problem(
            "payload",
            place,
            decider,
            there=short(x),
            asked=f"the function gave {short(answer)}, not an axis",
            fix="let the function give an int, or None for shared",
        )
    )
    return None


@contextmanager
def _noted(note: str) -> Iterator[None]:
    """Lets what the user's function raises pass, with a note."""
    try:
        yield
    except Exception as e:
        e.__notes__ = [*getattr(e, "__notes__", ()), note]
        raise


# Rules, defaults ----------------------------------------------------------------


def _apply_rules(work: _Work, rules: Iterable[Rule], value: Any) -> None:
    """Decides the leaves that no path decided; names the rules that match nothing."""
    texts = functools.cache(lambda at: _patterns.texts_of(at.node))
    chosen: dict[int, Rule] = {}
    disagree: dict[Problem, None] = {}
    for rule in rules:
        work.is_general &= _patterns.is_structural(rule.pattern)
        found: set[int] = set()
        with _noted(f"in the pattern of {rule.place}, recorded at {rule}"):
            for at in work.scopes.get(rule.under, ()):
                known = functools.partial(texts, at)
                hits = _patterns.matching(rule.pattern, at.node, known)
                found.update(at.start + i for i in hits)
        if not found and not rule.optional:
            work.problems.append(idle(rule, work.form, value))
        for i in (i for i in sorted(found) if work.deciders[i] is None):
            old = chosen.get(i)
            if old is not None and _clash(old, rule):
                disagree |= dict.fromkeys(disagreeing(old, rule, work.form))
            chosen[i] = rule
    work.problems.extend(disagree)
    for i, rule in chosen.items():
        work.deciders[i], work.payloads[i] = rule, rule.payload


def _apply_defaults(work: _Work, defaults: Iterable[Default]) -> None:
    """Fills what is left, the default of the innermost mounted record first."""
    for default in reversed(list(defaults)):
        if default.payload is UNDECIDED and default.path:
            continue
        deciders, payloads = work.deciders, work.payloads
        for at in work.scopes.get(default.path, ()):
            payload = _of_node(work, default, at)
            for i in range(at.start, at.stop):
                if deciders[i] is None:
                    deciders[i], payloads[i] = default, payload


def _ask_leaves(work: _Work, leaves: Sequence[Any], value: Any) -> None:
    """Lets decisions by leaf see their leaves; names the leaves nobody decided.

    For a rule, which decides leaf by leaf, the node of `from_node` is the leaf.
    """
    late = PerLeaf | FromNode
    kinds = set(map(type, work.payloads))
    if kinds.isdisjoint({PerLeaf, FromNode, Undecided}):
        return
    by_leaf = [i for i, p in enumerate(work.payloads) if isinstance(p, late)]
    undecided = [i for i, p in enumerate(work.payloads) if p is UNDECIDED]
    work.is_general &= not by_leaf
    paths = _tree.paths(value)
    for i in by_leaf:
        decider = work.deciders[i]
        assert decider is not None
        fn = work.payloads[i].fn
        work.payloads[i] = _ask(work, decider, fn, leaves[i], paths[i])
    for i in undecided:
        place = code(paths[i], work.root)
        decision = code(paths[i], work.name)
        default = "; or a default for the builder" if work.name == "spec" else ""
        work.problems.append(
            problem(
                "undecided",
                place,
                work.deciders[i],
                there=short(leaves[i]),
                asked="nobody decided",
                fix=f"{decision} = 0, or None for shared{default}",
            )
        )
