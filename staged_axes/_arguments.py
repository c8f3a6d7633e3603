"""`in_axes` in all its forms -> one record for each argument of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from attrs import evolve, frozen

from staged_axes import _tree
from staged_axes._axes import AXES, STATIC, PerLeaf
from staged_axes._decisions import UNDECIDED, Entries
from staged_axes._display import short
from staged_axes._paths import Name, Path, code, nearest
from staged_axes._placeholders import Placeholder, Places, decide, walk
from staged_axes._provenance import Source
from staged_axes._record import Record
from staged_axes.errors import (
    BindError,
    Problem,
    RecordError,
    count,
    error,
    few,
    with_article,
)


@runtime_checkable
class Says(Protocol):
    """Whatever says which axes are meant: a record, or a bound one."""

    def entries(self) -> Entries:
        """What it says now."""


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
        arguments = [
            *(
                Argument(name, f"in_axes[{i}]", args[i], says[i])
                for i, name in enumerate(names)
            ),
            *(
                Argument(
                    name,
                    f"in_axes[{name!r}]",
                    kwargs[name],
                    self.entries.get(name, self.keyword),
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
            return [
                self.entries.get(name.split("[")[0], self.keyword) for name in names
            ]
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
    keyword = Record(AXES, 0, source, "keyword arguments", name="")
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
    is_one = not isinstance(in_axes, Places) and isinstance(in_axes, Says)
    if isinstance(in_axes, Places) or is_one:
        return InAxes("only", {0: says(in_axes, "in_axes", source)}, keyword, signature)
    if not (is_axis(in_axes) or callable(in_axes)):
        raise error(
            RecordError,
            "in_axes is an axis, a tuple with an entry for each argument, a dict by "
            f"parameter name, or a builder, not {with_article(short(in_axes))}.",
            Problem(kind="argument", path="in_axes", there=type(in_axes).__name__),
            fixes=["for the axes tree of the only argument:  in_axes=(axes,)"],
        )
    every = says(in_axes, "in_axes", source, name="")
    return InAxes("every", {0: every}, keyword, signature)


def is_axis(x: Any) -> bool:
    """Is it an axis, or something close enough to be refused as one?"""
    return x is None or x is STATIC or isinstance(x, int | np.integer | float)


def says(entry: Any, label: str, source: Source, *, name: str | None = None) -> Says:
    """Who says the axes of one argument: a record for whatever the user gave.

    Args:
      entry: What the user gave.
      label: What it is called in messages.
      source: The line that gave it.
      name: What it is called in code; the label unless it is given.
    """
    name = label if name is None else name
    if isinstance(entry, Placeholder):
        raise error(
            RecordError,
            f"{label} is the place {code(entry.__path__)}, not a builder.",
            Problem(kind="placeholder", path=label, there=code(entry.__path__)),
            fixes=["give the builder itself, or another builder for this argument"],
        )
    if isinstance(entry, Places):
        return entry.__record__
    if isinstance(entry, Says) and not isinstance(entry, type):
        return entry
    if is_axis(entry):
        axis = AXES.check(entry, label)
        return Record(AXES, axis, source, f"{label}={entry!r}", name)
    if callable(entry) and not _tree.is_node(entry):
        return Record(AXES, PerLeaf(entry), source, label, name)
    return record_of_tree(entry, label, source, name)


def record_of_tree(tree: Any, label: str, source: Source, name: str = "spec") -> Record:
    """The record of an ordinary axes tree; its static data is not read.

    A leaf that the tree does not reach is undecided, which is an error when a value is
    bound, as it is for `jax.vmap`.
    """
    _tree.flatten(tree)
    record = Record(AXES, UNDECIDED, source, label, name)
    root = Places(record, (), None)
    for path, entry in _entries(tree, ()):
        is_fn = callable(entry) and not isinstance(entry, Places | PerLeaf)
        decide(walk(root, path), PerLeaf(entry) if is_fn else entry)
    return record


def _entries(node: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Path and axis of each leaf of an axes tree, None among them."""
    below = _tree.children(node)
    if not below:
        if node is None or not _tree.is_node(node):
            yield path, node
        return
    if any(c.is_named for c in below):
        steps = [(child.step, child.value) for child in below]
    else:
        steps = _by_attribute(node, below) or [(c.step, c.value) for c in below]
    for step, x in steps:
        yield from _entries(x, (*path, step))


def _by_attribute(node: Any, below: list[_tree.Child]) -> list[tuple[Any, Any]]:
    """The children of a keyless node by the attributes that hold them.

    Such a class may leave a child that is None out of its children, so positions in an
    axes tree need not be those in the value (https://github.com/jax-ml/jax/issues/26053).
    """
    if isinstance(node, tuple | list):
        return []
    held = {
        name: x
        for name, x in _tree.attributes(node).items()
        if x is None or any(x is c.value for c in below)
    }
    if sum(x is not None for x in held.values()) != len(below):
        return []
    return [(Name(name), x) for name, x in held.items()]


def _positional(signature: inspect.Signature | None) -> Iterator[str]:
    """The names of the parameters that positional arguments go to."""
    for p in signature.parameters.values() if signature else ():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            yield p.name


def _star(signature: inspect.Signature | None) -> str:
    """The name of `*args`, where there is one."""
    found = [
        p.name
        for p in (signature.parameters.values() if signature else ())
        if p.kind is p.VAR_POSITIONAL
    ]
    return found[0] if found else ""


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
    fix = ", ".join([entry, *["0"] * (given - 1)]) + ("," if given == 1 else "")
    return error(
        BindError,
        said + (f": {few(names)}." if names else "."),
        *rows,
        fixes=[f"in_axes=({fix}), or by name: in_axes={{{known[0]!r}: {entry}, ...}}"]
        if known
        else [],
    )
