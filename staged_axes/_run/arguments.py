"""`in_axes` in all its forms -> one record for each argument of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from staged_axes._record.axes import AXES, STATIC, FromNode, Optional, PerLeaf
from staged_axes._record.axes_tree import is_axis, says
from staged_axes._record.decisions import Says
from staged_axes._record.placeholders import Places
from staged_axes._record.record import Record
from staged_axes._structure import tree as _tree
from staged_axes._words.display import short
from staged_axes._words.paths import nearest
from staged_axes._words.provenance import Source
from staged_axes.errors import (
    BindError,
    Problem,
    RecordError,
    count,
    error,
    few,
    with_article,
)


@frozen
class Argument:
    """One argument of a call, and who says its axes.

    Attributes:
      name: What it is called in messages.
      place: What its entry in `in_axes` is called there.
    """

    name: str
    place: str
    value: Any
    says: Says


@frozen
class InAxes:
    """`in_axes`, normalised.

    Attributes:
      form: `"every"` positional argument alike, `"each"` positional argument has an
        entry, by `"name"`, or the `"only"` argument.
      entries: For `"name"` by parameter name, else by position.
      keyword: Who says the axes of arguments that nothing names: mapped on axis 0.
      signature: That of the mapped function, where Python can tell.
      static: The names of parameters that are kept as they are, whoever says what.
        They need no entry.
    """

    form: str
    entries: Mapping[Any, Says]
    keyword: Says
    signature: inspect.Signature | None
    static: frozenset[str] = frozenset()

    def place(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Argument]:
        """The arguments in flatten order, each with who says its axes.

        Raises:
          BindError: The entries do not fit the arguments.
        """
        names = self._names(len(args))
        says = self._says(names, args, kwargs)
        self._check_used([*names, *kwargs])
        arguments = [
            *(
                Argument(
                    name,
                    f"in_axes[{name!r}]" if self.form == "name" else f"in_axes[{i}]",
                    args[i],
                    says[i],
                )
                for i, name in enumerate(names)
            ),
            *(
                Argument(
                    name,
                    f"in_axes[{name!r}]",
                    kwargs[name],
                    self._named(name),
                )
                for name in sorted(kwargs)
            ),
        ]
        return [
            evolve(a, says=_KEPT) if a.name in self.static else a for a in arguments
        ]

    def everyone(self) -> list[Says]:
        """All that say something of the axes of arguments."""
        return [*self.entries.values(), self.keyword]

    def _named(self, name: str) -> Says:
        """Who says the axes of the argument of this name."""
        if name in self.entries:
            return self.entries[name]
        return self.entries.get(_collector(self.signature, name), self.keyword)

    def _check_used(self, given: Sequence[str]) -> None:
        """Refuses a call in which a name in `in_axes` means nothing.

        The parameter of such a name may be left out, if it has a default.
        """
        declared = self.signature.parameters if self.signature else {}
        idle = [
            name
            for name, says in self.entries.items()
            if self.form == "name"
            and not (name in declared or name in given or _is_optional(says))
        ]
        if idle:
            raise _no_such_argument(idle, given)

    def _names(self, count: int) -> list[str]:
        """What the positional arguments are called."""
        names = list(_positional(self.signature))[:count]
        star = _star(self.signature)
        rest = range(len(names), count)
        return names + [
            f"{star}[{i - len(names)}]" if star else f"args[{i}]" for i in rest
        ]

    def _says(
        self, names: list[str], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[Says]:
        """Who says the axes of each positional argument."""
        if self.form == "every":
            return [self.entries[0]] * len(args)
        if self.form == "name":
            return list(map(self._named, names))
        rest = [name for name in names if name not in self.static]
        if len(rest) == len(self.entries):
            entries = iter(self.entries.values())
            return [_KEPT if name in self.static else next(entries) for name in names]
        if len(names) != len(self.entries):
            raise _count_differs(self, names, kwargs)
        return list(self.entries.values())


_KEPT = Record(AXES, STATIC, Source("", 0), "static_argnames")


def in_axes_of(in_axes: Any, fn: Callable[..., Any], source: Source) -> InAxes:
    """Reads `in_axes` as `jax.vmap` takes it, and builders, callables and names.

    Raises:
      RecordError: It is no such thing.
    """
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        signature = None
    keyword = Record(AXES, 0, source, "no entry in in_axes", name="")
    if isinstance(in_axes, Mapping):
        _check_names(in_axes, signature)
        entries: dict[Any, Says] = {
            name: says(entry, f"in_axes[{name!r}]", source)
            for name, entry in in_axes.items()
        }
        return InAxes("name", entries, keyword, signature)
    if isinstance(in_axes, tuple | list) and not hasattr(in_axes, "_fields"):
        each: dict[Any, Says] = {
            i: says(entry, f"in_axes[{i}]", source) for i, entry in enumerate(in_axes)
        }
        return InAxes("each", each, keyword, signature)
    if isinstance(in_axes, Places | Says):
        return InAxes("only", {0: says(in_axes, "in_axes", source)}, keyword, signature)
    is_late = isinstance(in_axes, PerLeaf | FromNode | Optional)
    is_fn = callable(in_axes) and not _tree.is_node(in_axes)
    if not (is_axis(in_axes) or is_late or is_fn):
        raise error(
            RecordError,
            "in_axes is an axis, a tuple with an entry for each argument, a dict by "
            f"parameter name, or a builder, not {with_article(short(in_axes))}.",
            Problem(kind="argument", path="in_axes", there=type(in_axes).__name__),
            fixes=["for the axes tree of the only argument:  in_axes=(axes,)"],
        )
    every = says(in_axes, "in_axes", source, name="")
    return InAxes("every", {0: every}, keyword, signature)


def _positional(signature: inspect.Signature | None) -> Iterator[str]:
    """The names of the parameters that positional arguments go to."""
    for p in signature.parameters.values() if signature else ():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            yield p.name


def _star(signature: inspect.Signature | None) -> str:
    """The name of `*args`, where there is one."""
    return _name_of(signature, inspect.Parameter.VAR_POSITIONAL)


def _collector(signature: inspect.Signature | None, name: str) -> str:
    """The name of the `*args` or `**kwargs` into which an argument goes, if any."""
    if name.endswith("]"):
        return name.split("[", maxsplit=1)[0]
    if signature and name in signature.parameters:
        return ""
    return _name_of(signature, inspect.Parameter.VAR_KEYWORD)


def _name_of(signature: inspect.Signature | None, kind: Any) -> str:
    """The name of the parameter of a kind of which there is at most one."""
    parameters = signature.parameters.values() if signature else ()
    return next((p.name for p in parameters if p.kind is kind), "")


def _is_optional(says: Says) -> bool:
    """Was it said with `sa.optional`, that it may be absent?"""
    decisions = says.entries().decisions
    return bool(decisions) and all(d.optional for d in decisions)


def _no_such_argument(idle: Sequence[str], given: Sequence[str]) -> BindError:
    """The error for names in `in_axes` that no argument of a call has."""
    like = nearest(idle[0], given)
    return error(
        BindError,
        f"in_axes names {count(len(idle), 'argument')} that this call does not have: "
        f"{few(list(map(repr, idle)))}.",
        *(
            Problem(
                kind="argument",
                path=f"in_axes[{name!r}]",
                there=f"the call has {few(list(given))}" if given else "no arguments",
            )
            for name in idle
        ),
        fixes=[
            f"did you mean {like[0]!r}?"
            if like
            else f"if it may be absent:  in_axes[{idle[0]!r}] = sa.optional(...)"
        ],
    )


def _check_names(in_axes: Mapping[Any, Any], signature: Any) -> None:
    """Refuses a name in a dict that is no parameter."""
    parameters = signature.parameters if signature else {}
    open_ended = signature is None or any(
        p.kind is p.VAR_KEYWORD for p in parameters.values()
    )
    unknown = [
        name
        for name in in_axes
        if not isinstance(name, str) or not (name in parameters or open_ended)
    ]
    if not unknown:
        return
    like = nearest(str(unknown[0]), parameters)
    raise error(
        RecordError,
        "in_axes is a dict, so its keys are parameter names, and "
        f"{len(unknown)} {'is' if len(unknown) == 1 else 'are'} not: "
        f"{few(list(map(repr, unknown)))}.",
        *(
            Problem(
                kind="argument",
                path=f"in_axes[{name!r}]",
                there=f"the parameters are {few(list(parameters))}",
            )
            for name in unknown
        ),
        fixes=[
            *([f"did you mean {like[0]!r}?"] if like else []),
            "for one argument that is a dict:  in_axes=({...},)",
        ],
    )


def _count_differs(
    axes: InAxes, names: list[str], kwargs: Mapping[str, Any]
) -> BindError:
    """The error for a wrong number of entries, with the arguments by name."""
    wanted, given = len(axes.entries), len(names)
    entries = count(wanted, "entry", "entries")
    arguments = count(given, "positional argument")
    said = (
        f"in_axes is one builder, for the only argument, and there are {given}"
        if axes.form == "only"
        else f"in_axes has {entries} for {arguments}"
    )
    known = [*names, *list(_positional(axes.signature))[given:]]
    rows = [
        Problem(kind="argument", path=name, there="has no entry in in_axes")
        for name in names[wanted:]
    ] + [
        Problem(
            kind="argument",
            path=f"in_axes[{i}]",
            there=f"{known[i]} was given by keyword"
            if i < len(known) and known[i] in kwargs
            else "has no argument",
        )
        for i in range(given, wanted)
    ]
    entry = "spec" if axes.form == "only" else "0"
    each = ", ".join([entry, *["0"] * (given - 1)])
    fix = each if "," in each else f"{each},"
    return error(
        BindError,
        said + (f": {few(names)}." if names else "."),
        *rows,
        fixes=[f"in_axes=({fix}), or by name: in_axes={{{known[0]!r}: {entry}, ...}}"]
        if known
        else [],
    )
