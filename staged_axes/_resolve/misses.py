"""What is there instead of a place or a leaf that a record names: the problems."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from attrs import evolve, frozen

from staged_axes._record.decisions import Decision, Default, Form, Rule, conflict
from staged_axes._structure import tree as _tree
from staged_axes._structure.match import held_children, match
from staged_axes._structure.patterns import matching
from staged_axes._words.display import short
from staged_axes._words.paths import Index, Name, code, nearest
from staged_axes.errors import ROWS, Problem, clip, few, with_article

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


@frozen(slots=False, eq=False)
class _Seen:
    """A node, with what is found out about it once, for however many misses."""

    node: Any

    @cached_property
    def below(self) -> _tree.Children:
        """Its children."""
        return _tree.children(self.node)

    @cached_property
    def names(self) -> dict[str, None]:
        """The names by which its children are reached, as keys."""
        if not self.below.is_named:
            return dict.fromkeys(held_children(self.node, self.below))
        return dict.fromkeys(w for w in self.below.words if isinstance(w, str))

    @cached_property
    def static(self) -> dict[str, Any]:
        """Its static data by name."""
        is_node = _tree.is_node(self.node)
        return _tree.statics(self.node, self.below) if is_node else {}

    @property
    def kind(self) -> str:
        """Its class, with an article."""
        return with_article(type(self.node).__name__)

    @cached_property
    def inventory(self) -> str:
        """What it has, in short."""
        return self.inventory_from(())

    def inventory_from(self, like: Sequence[str]) -> str:
        """The same, but names like one that was written come first."""
        if not self.below:
            is_empty = self.node is not None and _tree.is_node(self.node)
            kind = type(self.node).__name__
            return f"an empty {kind}" if is_empty else short(self.node)
        if not self.names and self.below.is_item:
            keys = few([clip(repr(word), 40) for word in self.below.words])
            return f"{self.kind} with the keys {keys}"
        if not self.names:
            return f"{self.kind} of {len(self.below)}"
        names = [*like, *(n for n in self.names if n not in like)]
        names += [f"{n} (static)" for n in self.static if not n.startswith("(")]
        return f"{self.kind} with {few(names)}"


def unmatched(
    decisions: Iterable[Decision], form: Form, value: Any, root: str, name: str
) -> list[Problem]:
    """What is there instead of the places that decisions name.

    Args:
      decisions: They match nothing.
      form: Prints payloads.
      value: What they were to match.
      root: What the value is called in code.
      name: What the record is called in code.
    """
    seen: dict[int, _Seen] = {}
    problems: list[Problem] = []
    for decision in decisions:
        at, depth = seen.setdefault(id(value), _Seen(value)), 0
        for step in decision.path:
            found = match(at.node, at.below, step)
            if not found:
                break
            child = at.below.values[found[0]]
            at, depth = seen.setdefault(id(child), _Seen(child)), depth + 1
        # Like names are looked for among many: for no more than a message shows.
        is_shown = len(problems) < ROWS
        problems.append(
            _unmatched(decision, form, at, depth, root, name, is_shown=is_shown)
        )
    return problems


def _unmatched(
    decision: Decision,
    form: Form,
    at: _Seen,
    depth: int,
    root: str,
    name: str,
    *,
    is_shown: bool,
) -> Problem:
    """What is there instead of the place that one decision names."""
    step, parent = decision.path[depth], code(decision.path[:depth], root)
    written = decision.code(form, name)
    if isinstance(step, Name) and step.name in at.static:
        return problem(
            "static",
            written,
            decision,
            there=f"{parent}.{step.name} is a static field of {type(at.node).__name__}",
            axis=decision.payload,
            fix=f"remove  {written}  (static data is no leaf and has no axis)",
        )
    if isinstance(step, Name) and step.name in at.names:
        by_position = (*decision.path[:depth], Index(0), *decision.path[depth + 1 :])
        exact = evolve(decision, path=by_position).code(form, name)
        return problem(
            "unknown",
            written,
            decision,
            there=f"{parent}.{step.name} is several children of {at.kind}",
            axis=decision.payload,
            fix=f"say which one by its position:  {exact}",
        )
    like = nearest(step.name, at.names) if is_shown and isinstance(step, Name) else []
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
        there=f"{parent} is {at.inventory_from(like) if like else at.inventory}",
        axis=decision.payload,
        fix=fix,
    )


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
    """A glob that does match: with `/` for dots, at any depth, or spelt as there."""
    pattern = rule.pattern
    if not isinstance(pattern, str):
        return None
    slashed = pattern.replace(".", "/")
    if not rule.under and slashed != pattern and matching(slashed, value):
        return slashed
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
