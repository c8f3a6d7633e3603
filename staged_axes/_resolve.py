"""Record and structure -> one decision for each leaf.

The rule: the decision nearest to a leaf wins; an exact place beats a slice at the same
depth; paths beat rules; rules beat the default. Stages that disagree about one place,
and decisions and rules that match nothing, are problems; all of them are gathered.

Only nodes on the way to a decision are looked into, so the cost is that of flattening
plus the decisions, however large the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import Factory, define, evolve, frozen

from staged_axes import _patterns, _tree
from staged_axes._axes import FromNode, PerLeaf
from staged_axes._display import short
from staged_axes._paths import Index, Key, Name, Path, Span, Step, code, nearest
from staged_axes._record import (
    UNDECIDED,
    Decision,
    Default,
    Entries,
    Form,
    Mounted,
    Rule,
    conflict,
    decided_by,
)
from staged_axes.errors import Problem

Decider: TypeAlias = Decision | Rule | Default


@frozen
class Resolution:
    """What was decided for each leaf, in flatten order, and by whom.

    Attributes:
      payloads: An axis, None, `STATIC` or `UNDECIDED` for each leaf.
      deciders: The decision, rule or default behind each.
      keys: The path of each leaf, in JAX's own keys.
      problems: Everything that does not fit.
      is_general: Does it hold for every value of the same treedef?
    """

    payloads: tuple[Any, ...]
    deciders: tuple[Decider, ...]
    keys: tuple[tuple[Any, ...], ...]
    problems: tuple[Problem, ...]
    is_general: bool


@define
class _Place:
    """A node of the tree of decisions."""

    here: list[Decision] = Factory(list)
    below: dict[Step, _Place] = Factory(dict)
    scopes: set[Path] = Factory(set)


@frozen
class _Range:
    """The leaves `start:stop` below one node of the value."""

    node: Any
    path: Path
    start: int
    stop: int


@define
class _Work:
    """What one resolution gathers on its way."""

    form: Form
    root: str
    deciders: list[Decider | None]
    payloads: list[Any]
    problems: list[Problem] = Factory(list)
    scopes: dict[Path, list[_Range]] = Factory(dict)
    reached: set[int] = Factory(set)
    is_general: bool = True


def resolve(
    entries: Entries,
    form: Form,
    value: Any,
    leaves: list[Any],
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
    work = _Work(form, root, [None] * n, [UNDECIDED] * n)
    work.problems.extend(entries.conflicts)
    whole = _Range(value, (), 0, n)
    _descend(work, [(_plant(entries), 0)], whole, treedef)
    _report_unmatched(work, entries, value)
    _apply_rules(work, entries.rules)
    _apply_defaults(work, entries.defaults)
    keys = _tree.key_paths(value)
    _ask_leaves(work, leaves, keys)
    return Resolution(
        tuple(work.payloads),
        tuple(work.deciders),  # type: ignore[arg-type]  # defaults leave no None
        keys,
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
    for item in (*entries.rules, *entries.defaults):
        scope = item.under if isinstance(item, Rule) else item.path
        place(scope).scopes.add(scope)
    return root


def _descend(
    work: _Work, active: list[tuple[_Place, int]], at: _Range, treedef: Any
) -> None:
    """Applies what is decided at a node, then goes on to the children that matter.

    `active` holds the places that stand for this node, each with the number of slices
    on its way: several, since `[-1]`, `[2]` and `[:]` may be one child.
    """
    winner = _winner(work, active)
    for place, _ in active:
        for scope in place.scopes:
            work.scopes.setdefault(scope, []).append(at)
    if winner is not None:
        _fill(work, winner, at)
    if not any(place.below for place, _ in active):
        return
    below = _tree.children(at.node)
    chosen: dict[int, list[tuple[_Place, int]]] = {}
    for place, spans in active:
        for step, next_place in place.below.items():
            found = match(at.node, below, step)
            if any(not below[i].is_named for i in found) and isinstance(step, Name):
                work.is_general = False
            for i in found:
                chosen.setdefault(i, []).append(
                    (next_place, spans + isinstance(step, Span))
                )
    start = at.start
    for i, (child, child_def) in enumerate(zip(below, treedef.children(), strict=True)):
        stop = start + child_def.num_leaves
        if i in chosen:
            path = (*at.path, child.step)
            inner = _Range(child.value, path, start, stop)
            _descend(work, chosen[i], inner, child_def)
        start = stop


def match(node: Any, below: list[_tree.Child], step: Step) -> list[int]:
    """The positions of the children that a step means.

    A field and an item of one name are one place; a tuple's fields are reached by
    index too; a child without a key is reached by the attribute that holds it.
    """
    if isinstance(step, Span):
        every = range(len(below))
        if step.is_all:
            return list(every)
        is_row = isinstance(node, tuple) or all(
            isinstance(c.step, Index) for c in below
        )
        return list(every[step.start : step.stop : step.step]) if is_row else []
    same = [i for i, child in enumerate(below) if child.step == step]
    if same:
        return same
    if isinstance(step, Index):
        is_row = isinstance(node, tuple | list) or not any(c.is_named for c in below)
        i = step.index + len(below) if step.index < 0 else step.index
        return [i] if is_row and 0 <= i < len(below) else []
    if isinstance(step, Name) and not any(c.is_named for c in below):
        held = getattr(node, step.name, _ABSENT)
        held_by = [i for i, c in enumerate(below) if c.value is held]
        return held_by if len(held_by) == 1 or held is None else []
    return []


_ABSENT = object()


def _winner(work: _Work, active: list[tuple[_Place, int]]) -> Decision | None:
    """The decision that counts at a node, of all that were made for it."""
    best: Decision | None = None
    fewest = min((spans for place, spans in active if place.here), default=0)
    rivals = [d for place, spans in active if spans == fewest for d in place.here]
    work.reached.update(d.order for place, _ in active for d in place.here)
    for rival in sorted(rivals, key=lambda d: d.order):
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
    payload = winner.payload
    if isinstance(payload, Mounted):
        return
    if isinstance(payload, FromNode):
        work.is_general = False
        payload = _ask(work, winner, payload.fn, at.node, at.path)
    count = at.stop - at.start
    work.payloads[at.start : at.stop] = [payload] * count
    work.deciders[at.start : at.stop] = [winner] * count


def _ask(
    work: _Work,
    decider: Decider,
    fn: Callable[[Any], Any],
    x: Any,
    path: Path,
) -> Any:
    """The axis that a user's function gives, checked."""
    place = code(path, work.root)
    try:
        answer = fn(x)
    except Exception as e:
        note = f"in the function that decides {place}, recorded at {decider}"
        e.__notes__ = [*getattr(e, "__notes__", ()), note]  # type: ignore[attr-defined]
        raise
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


# Rules, defaults ----------------------------------------------------------------


def _apply_rules(work: _Work, rules: Iterable[Rule]) -> None:
    """Decides the leaves that no path decided; names the rules that match nothing."""
    chosen: dict[int, Rule] = {}
    for rule in rules:
        work.is_general &= _patterns.is_by_path(rule.pattern)
        found = {
            at.start + i
            for at in work.scopes.get(rule.under, ())
            for i in _patterns.matching(rule.pattern, at.node)
        }
        if not found and not rule.optional:
            work.problems.append(_idle_rule(work, rule))
        for i in sorted(found):
            old = chosen.get(i)
            if old is not None and _clash(old, rule):
                work.problems.extend(_rule_conflict(work, old, rule))
            chosen[i] = rule
    for i, rule in chosen.items():
        if work.deciders[i] is None:
            work.deciders[i], work.payloads[i] = rule, rule.payload


def _apply_defaults(work: _Work, defaults: Iterable[Default]) -> None:
    """Fills what is left, the default of the innermost mounted record first."""
    for default in reversed(list(defaults)):
        if default.payload is UNDECIDED and default.path:
            continue
        for at in work.scopes.get(default.path, ()):
            for i in range(at.start, at.stop):
                if work.deciders[i] is None:
                    work.deciders[i], work.payloads[i] = default, default.payload


def _ask_leaves(
    work: _Work, leaves: list[Any], keys: Sequence[tuple[Any, ...]]
) -> None:
    """Lets `per_leaf` decisions see their leaves; names the leaves nobody decided."""
    undecided: list[int] = []
    by_leaf: list[int] = []
    for i, payload in enumerate(work.payloads):
        if payload is UNDECIDED:
            undecided.append(i)
        elif isinstance(payload, PerLeaf):
            by_leaf.append(i)
    work.is_general &= not by_leaf
    paths = {i: tuple(map(_tree.step_of, keys[i])) for i in undecided + by_leaf}
    for i in by_leaf:
        decider = work.deciders[i]
        assert decider is not None
        fn = work.payloads[i].fn
        work.payloads[i] = _ask(work, decider, fn, leaves[i], paths[i])
    for i in undecided:
        place = code(paths[i], work.root)
        decision = code(paths[i], "spec")
        work.problems.append(
            problem(
                "undecided",
                place,
                work.deciders[i],
                there=short(leaves[i]),
                asked="nobody decided",
                fix=f"{decision} = 0, or None for shared; or give the builder a default",
            )
        )


# Problems -----------------------------------------------------------------------


def problem(
    kind: str,
    path: str,
    decider: Decider | None,
    *,
    there: str = "",
    asked: str = "",
    axis: Any = None,
    shape: tuple[int, ...] | None = None,
    fix: str = "",
) -> Problem:
    """A problem, with the data of the decision behind it."""
    stage = None if decider is None or isinstance(decider, Default) else decider.stage
    source = None if decider is None else decider.source
    return Problem(
        kind=kind,
        path=path,
        there=there,
        asked=asked,
        axis=axis if isinstance(axis, int) else None,
        shape=shape,
        stage=stage.name if stage else None,
        file=source.file if source else None,
        line=source.line if source else None,
        decided_by=str(decider) if decider is not None else "",
        fix=fix,
    )


def _report_unmatched(work: _Work, entries: Entries, value: Any) -> None:
    """A problem for each decision that points at nothing."""
    for decision in entries.decisions:
        if decision.order in work.reached or decision.optional:
            continue
        work.problems.append(_unmatched(work, decision, value))


def _unmatched(work: _Work, decision: Decision, value: Any) -> Problem:
    """What is there instead of the place that a decision names."""
    node, depth = value, 0
    for step in decision.path:
        below = _tree.children(node)
        found = match(node, below, step)
        if not found:
            break
        node, depth = below[found[0]].value, depth + 1
    step, parent = decision.path[depth], code(decision.path[:depth], work.root)
    below = _tree.children(node)
    written = f"{code(decision.path)} = {work.form.text(decision.payload)}"
    static = _tree.statics(node, below) if below or _tree.is_node(node) else {}
    if isinstance(step, Name) and step.name in static:
        return problem(
            "static",
            written,
            decision,
            there=f"{parent}.{step.name} is a static field of {type(node).__name__}",
            axis=decision.payload,
            fix=f"remove it: static data is no leaf and has no axis:  {code(decision.path)}",
        )
    names = [c.step.name for c in below if isinstance(c.step, Name)]
    like = nearest(step.name, names) if isinstance(step, Name) else []
    better = (*decision.path[:depth], *(evolve(step, name=n) for n in like[:1]))
    rest = decision.path[depth + 1 :]
    fix = (
        f"did you mean  {code((*better, *rest))} = {work.form.text(decision.payload)} ?"
        if like
        else "check the path, or say that it may be absent: "
        f"{code(decision.path)} = sa.optional({work.form.text(decision.payload)})"
    )
    return problem(
        "unknown",
        written,
        decision,
        there=f"{parent} is {_inventory(node, below, static, like)}",
        axis=decision.payload,
        fix=fix,
    )


def _inventory(
    node: Any, below: list[_tree.Child], static: dict[str, Any], like: list[str]
) -> str:
    """What a node has, in short; names like the one that was written come first."""
    if not below:
        return short(node)
    kind = type(node).__name__
    names = [c.step.name for c in below if isinstance(c.step, Name)]
    if not names:
        return f"a {kind} of {len(below)}"
    names = [*like, *(n for n in names if n not in like)]
    names += [f"{n} (static)" for n in static if not n.startswith("(")]
    more = f", and {len(names) - 6} more" if len(names) > 6 else ""
    return f"a {kind} with {', '.join(names[:6])}{more}"


def _idle_rule(work: _Work, rule: Rule) -> Problem:
    """The problem of a rule that no leaf answers to."""
    text = _patterns.text(rule.pattern)
    like: list[str] = []
    if isinstance(rule.pattern, str | re.Pattern):
        last = re.split(
            r"[/*]+",
            rule.pattern if isinstance(rule.pattern, str) else rule.pattern.pattern,
        )[-1]
        ends = {
            step.name
            for at in work.scopes.get((), ())
            for path in _tree.paths(at.node)
            for step in path
            if isinstance(step, Name)
        }
        like = nearest(last, sorted(ends))
    return problem(
        "unmatched",
        f"sa.rule(spec, {text}, {work.form.text(rule.payload)})",
        rule,
        there="matches no leaf",
        axis=rule.payload,
        fix=f"did you mean {' or '.join(like)}?"
        if like
        else f"correct the pattern, or sa.rule(spec, {text}, sa.optional(...))",
    )


def _rule_conflict(work: _Work, old: Rule, new: Rule) -> tuple[Problem, ...]:
    """The problems of two rules of different stages that disagree; once for a pair."""
    found = conflict(
        old,
        new,
        work.form,
        lambda d: f"sa.rule(spec, {_patterns.text(d.pattern)})",  # type: ignore[union-attr]
    ).problems
    return () if set(found) <= set(work.problems) else found
