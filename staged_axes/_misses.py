"""What is there instead of a place or a leaf that a record names: the problems."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from attrs import frozen

from staged_axes import _tree
from staged_axes._decisions import Decision, Default, Form, Rule, conflict
from staged_axes._display import short
from staged_axes._match import match
from staged_axes._paths import Name, Path, code, nearest
from staged_axes.errors import Problem

Decider: TypeAlias = Decision | Rule | Default

NAMES = 6


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


@frozen
class Miss:
    """What there is instead of a place.

    Attributes:
      kind: `"static"` or `"unknown"`.
      there: What is there, in short.
      better: The path that was meant most likely.
    """

    kind: str
    there: str
    better: Path | None


def miss(path: Path, value: Any, root: str) -> Miss:
    """Looks why a path leads nowhere."""
    node, depth = value, 0
    for step in path:
        below = _tree.children(node)
        found = match(node, below, step)
        if not found:
            break
        node, depth = below[found[0]].value, depth + 1
    step, parent = path[depth], code(path[:depth], root)
    below = _tree.children(node)
    static = _tree.statics(node, below) if below or _tree.is_node(node) else {}
    if isinstance(step, Name) and step.name in static:
        kind = type(node).__name__
        return Miss("static", f"{parent}.{step.name} is a static field of {kind}", None)
    names = [c.step.name for c in below if isinstance(c.step, Name)]
    like = nearest(step.name, names) if isinstance(step, Name) else []
    better = (*path[:depth], Name(like[0]), *path[depth + 1 :]) if like else None
    return Miss(
        "unknown", f"{parent} is {_inventory(node, below, static, like)}", better
    )


def unmatched(decision: Decision, form: Form, value: Any, root: str) -> Problem:
    """What is there instead of the place that a decision names."""
    missed = miss(decision.path, value, root)
    place, payload = code(decision.path), form.text(decision.payload)
    if missed.kind == "static":
        fix = f"remove {place}: static data is no leaf and has no axis"
    elif missed.better:
        fix = f"did you mean  {code(missed.better)} = {payload} ?"
    else:
        fix = (
            "check the path, or say that it may be absent: "
            f"{place} = sa.optional({payload})"
        )
    return problem(
        missed.kind,
        f"{place} = {payload}",
        decision,
        there=missed.there,
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
    rest = len(names) - NAMES
    more = f", and {rest} more" if rest > 0 else ""
    return f"a {kind} with {', '.join(names[:NAMES])}{more}"


def idle(rule: Rule, form: Form, value: Any) -> Problem:
    """The problem of a rule that no leaf answers to."""
    like = _ends_like(rule.pattern, value)
    return problem(
        "unmatched",
        f"{rule.place} = {form.text(rule.payload)}",
        rule,
        there="matches no leaf",
        axis=rule.payload,
        fix=f"did you mean {' or '.join(like)}?"
        if like
        else "correct the pattern, or say that it may match nothing: "
        f"sa.rule(..., sa.optional({form.text(rule.payload)}))",
    )


def _ends_like(pattern: Any, value: Any) -> list[str]:
    """Names in the value like the last one in a pattern that is a text."""
    if not isinstance(pattern, str | re.Pattern):
        return []
    written = pattern if isinstance(pattern, str) else pattern.pattern
    names = {
        step.name
        for path in _tree.paths(value)
        for step in path
        if isinstance(step, Name)
    }
    return nearest(re.split(r"\W+", written.rstrip("*/$"))[-1], sorted(names))


def disagreeing(old: Rule, new: Rule, form: Form) -> tuple[Problem, ...]:
    """The problems of two rules of different stages that disagree on a leaf."""
    return conflict(old, new, form).problems
