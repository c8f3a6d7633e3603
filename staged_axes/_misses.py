"""What is there instead of a place or a leaf that a record names: the problems."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from attrs import evolve

from staged_axes import _tree
from staged_axes._decisions import Decision, Default, Form, Rule, conflict
from staged_axes._display import short
from staged_axes._match import held_children, match
from staged_axes._paths import Name, code, nearest
from staged_axes.errors import Problem, few

Decider: TypeAlias = Decision | Rule | Default


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


def unmatched(
    decision: Decision, form: Form, value: Any, root: str, name: str
) -> Problem:
    """What is there instead of the place that a decision names.

    Args:
      decision: It matches nothing.
      form: Prints payloads.
      value: What it was to match.
      root: What the value is called in code.
      name: What the record is called in code.
    """
    node, depth = value, 0
    for step in decision.path:
        below = _tree.children(node)
        found = match(node, below, step)
        if not found:
            break
        node, depth = below.values[found[0]], depth + 1
    step, parent = decision.path[depth], code(decision.path[:depth], root)
    below = _tree.children(node)
    written = decision.code(form, name)
    static = _tree.statics(node, below) if below or _tree.is_node(node) else {}
    if isinstance(step, Name) and step.name in static:
        return problem(
            "static",
            written,
            decision,
            there=f"{parent}.{step.name} is a static field of {type(node).__name__}",
            axis=decision.payload,
            fix=f"remove  {written}  (static data is no leaf and has no axis)",
        )
    names = _names(node, below)
    if isinstance(step, Name) and step.name in names:
        return problem(
            "unknown",
            written,
            decision,
            there=f"{parent}.{step.name} is several children of a {type(node).__name__}",
            axis=decision.payload,
            fix=f"say which one by its position:  {code(decision.path[:depth], name)}[0]",
        )
    like = nearest(step.name, names) if isinstance(step, Name) else []
    better = [
        (*decision.path[:depth], evolve(step, name=n), *decision.path[depth + 1 :])
        for n in like[:1]
        if isinstance(step, Name)
    ]
    optional = evolve(decision, optional=True)
    fix = (
        f"did you mean  {evolve(decision, path=better[0]).code(form, name)} ?"
        if better
        else f"check the path; if it may be absent:  {optional.code(form, name)}"
    )
    return problem(
        "unknown",
        written,
        decision,
        there=f"{parent} is {_inventory(node, below, static, like)}",
        axis=decision.payload,
        fix=fix,
    )


def _names(node: Any, below: _tree.Children) -> list[str]:
    """The names by which children of a node are reached."""
    if not below.is_named:
        return list(held_children(node, below))
    return [step.name for step in below.steps if isinstance(step, Name)]


def _inventory(
    node: Any, below: _tree.Children, static: dict[str, Any], like: list[str]
) -> str:
    """What a node has, in short; names like the one that was written come first."""
    if not below:
        return short(node)
    kind = type(node).__name__
    names = _names(node, below)
    if not names:
        return f"a {kind} of {len(below)}"
    names = [*like, *(n for n in names if n not in like)]
    names += [f"{n} (static)" for n in static if not n.startswith("(")]
    return f"a {kind} with {few(names)}"


def idle(rule: Rule, form: Form, value: Any) -> Problem:
    """The problem of a rule that no leaf answers to."""
    better = _better(rule.pattern, value)
    optional = evolve(rule, optional=True)
    return problem(
        "unmatched",
        rule.code(form),
        rule,
        there="matches no leaf",
        axis=rule.payload,
        fix=f"did you mean  {evolve(rule, pattern=better).code(form)} ?"
        if better
        else f"check the pattern; if it may match nothing:  {optional.code(form)}",
    )


def _better(pattern: Any, value: Any) -> str | None:
    """A glob with its last name replaced by one like it in the value."""
    if not isinstance(pattern, str):
        return None
    names = {
        step.name
        for path in _tree.paths(value)
        for step in path
        if isinstance(step, Name)
    }
    *_, (start, stop) = [(0, 0), *(m.span() for m in re.finditer(r"\w+", pattern))]
    like = nearest(pattern[start:stop], sorted(names))
    return pattern[:start] + like[0] + pattern[stop:] if like else None


def disagreeing(old: Rule, new: Rule, form: Form) -> tuple[Problem, ...]:
    """The problems of two rules of different stages that disagree on a leaf."""
    return conflict(old, new, form).problems
