"""What is there instead of a place or a leaf that a record names: the problems."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from attrs import evolve

from staged_axes import _tree
from staged_axes._decisions import Decision, Default, Form, Rule, conflict
from staged_axes._display import short
from staged_axes._match import held_children, match
from staged_axes._paths import Index, Name, code, nearest
from staged_axes._patterns import matching
from staged_axes.errors import Problem, few, with_article

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
        by_position = (*decision.path[:depth], Index(0), *decision.path[depth + 1 :])
        exact = evolve(decision, path=by_position).code(form, name)
        return problem(
            "unknown",
            written,
            decision,
            there=f"{parent}.{step.name} is several children of {_kind(node)}",
            axis=decision.payload,
            fix=f"say which one by its position:  {exact}",
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
        is_empty = node is not None and _tree.is_node(node)
        return f"an empty {type(node).__name__}" if is_empty else short(node)
    names = _names(node, below)
    if not names:
        return f"{_kind(node)} of {len(below)}"
    names = [*like, *(n for n in names if n not in like)]
    names += [f"{n} (static)" for n in static if not n.startswith("(")]
    return f"{_kind(node)} with {few(names)}"


def _kind(node: Any) -> str:
    """The class of a node, with its article."""
    return with_article(type(node).__name__)


def idle(rule: Rule, form: Form, value: Any) -> Problem:
    """The problem of a rule that no leaf answers to."""
    better = _better(rule, value)
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


def _better(rule: Rule, value: Any) -> str | None:
    """A glob that does match: at any depth, or with its last name spelt as there."""
    pattern = rule.pattern
    if not isinstance(pattern, str):
        return None
    if not rule.under and matching(f"**/{pattern}", value):
        return f"**/{pattern}"
    names = {
        step.name
        for path in _tree.paths(value)
        for step in path
        if isinstance(step, Name)
    }
    *_, (start, stop) = [(0, 0), *(m.span() for m in re.finditer(r"\w+", pattern))]
    like = nearest(pattern[start:stop], sorted(names - {pattern[start:stop]}))
    return pattern[:start] + like[0] + pattern[stop:] if like else None


def disagreeing(old: Rule, new: Rule, form: Form) -> tuple[Problem, ...]:
    """The problems of two rules of different stages that disagree on a leaf."""
    return conflict(old, new, form).problems
