"""Attribute and item sugar over the record: `spec.wheel.drag = 0`.

Reading a name gives a placeholder for the place; writing records a decision. With a
class, names are checked at the line that writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from attrs import evolve

from staged_axes._record.axes import Optional
from staged_axes._record.decisions import Mounted
from staged_axes._record.record import Record
from staged_axes._structure import schema as _schema
from staged_axes._words.paths import (
    Index,
    Key,
    Name,
    Path,
    Span,
    Step,
    code,
    item_step,
    nearest,
)
from staged_axes.errors import FieldError, Problem, RecordError, error, few


class Places:
    """What a builder and its placeholders share: the record, a path, a declared type.

    The state has dunder names, so that it cannot meet a field of the user's.
    """

    __slots__ = ("__path__", "__record__", "__type__")
    __path__: Path
    __record__: Record
    __type__: Any

    def __init__(self, record: Record, path: Path, type_: Any) -> None:
        object.__setattr__(self, "__record__", record)
        object.__setattr__(self, "__path__", path)
        object.__setattr__(self, "__type__", type_)

    def __getattr__(self, name: str) -> Placeholder:
        if is_hook(name):
            raise AttributeError(name)
        return child(self, Name(name))

    def __setattr__(self, name: str, axis: Any) -> None:
        if hasattr(type(self), name):
            raise _own_name(name)
        decide(child(self, Name(name)), axis)

    def __delattr__(self, name: str) -> None:
        forget(child(self, Name(name)))

    def __getitem__(self, item: Any) -> Placeholder:
        return child(self, item_step(item))

    def __setitem__(self, item: Any, axis: Any) -> None:
        decide(child(self, item_step(item)), axis)

    def __delitem__(self, item: Any) -> None:
        forget(child(self, item_step(item)))

    def __iter__(self) -> Iterator[Any]:
        _no_value(self, "iterated over")

    def __contains__(self, item: object) -> bool:
        _no_value(self, "searched with `in`")

    def __dir__(self) -> list[str]:
        fields = _schema.fields_of(self.__type__) or {}
        depth = len(self.__path__)
        recorded = {
            step.name
            for decision in self.__record__.entries().decisions
            if decision.path[:depth] == self.__path__
            for step in decision.path[depth : depth + 1]
            if isinstance(step, Name)
        }
        known = {name for name, field in fields.items() if not field.static}
        own = [n for n in object.__dir__(self) if hasattr(type(self), n)]
        return sorted({*own, *recorded, *known})


class Placeholder(Places):
    """A place, read before there is a value. It can be written to, and that is all."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<place {code(self.__path__)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Placeholder, (self.__record__, self.__path__, self.__type__)

    def __hash__(self) -> int:
        return hash(self.__path__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Placeholder):
            _no_value(self, "compared")
        return self.__record__ is other.__record__ and self.__path__ == other.__path__

    def __ne__(self, other: object) -> bool:
        return not self == other


def _refuse(what: str) -> Any:
    """A method that says that a placeholder cannot be used so."""

    def method(self: Placeholder, *_: Any, **__: Any) -> NoReturn:
        _no_value(self, what)

    return method


for _names, _what in (
    ("bool", "used as a truth value"),
    ("len", "measured with len()"),
    ("lt le gt ge", "compared"),
    ("array jax_array", "turned into an array"),
    ("int float complex index round trunc floor ceil", "turned into a number"),
    (
        "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or "
        "radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift "
        "rand rxor ror iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift "
        "irshift iand ixor ior neg pos abs invert",
        "used in arithmetic",
    ),
):
    for _name in _names.split():
        setattr(Placeholder, f"__{_name}__", _refuse(_what))


def is_hook(name: str) -> bool:
    """Is it a name that Python, a notebook or rich asks every object for?"""
    is_special = name.startswith(("__", "_repr_", "_ipython_")) and name.endswith("_")
    return is_special or name == _RICH_PROBE


# By this name rich finds out objects that answer to any name, and shows their `repr`.
_RICH_PROBE = "aihwerij235234ljsdnp34ksodfipwoe234234jlskjdf"


def child(parent: Places, step: Step) -> Placeholder:
    """The place one step below.

    Raises:
      RecordError: The declared class has no such field, or the field is static.
    """
    path = (*parent.__path__, step)
    return Placeholder(parent.__record__, path, _child_type(parent, step))


def walk(parent: Places, path: Path) -> Placeholder:
    """The place some steps below, each checked against the declared class."""
    place = Placeholder(parent.__record__, parent.__path__, parent.__type__)
    for step in path:
        place = child(place, step)
    return place


def _child_type(parent: Places, step: Step) -> Any:
    """The declared type of a child, None where nothing is declared."""
    if parent.__type__ is None:
        return None
    cls = _schema.class_of(parent.__type__)
    fields = _schema.fields_of(parent.__type__)
    match step:
        case Name(name) if fields is not None:
            field = fields.get(name)
            # A field may hold a subclass of what it is annotated with.
            if field is None and parent.__path__:
                field = _schema.field_of_subclass(cls, name)
            if field is None:
                raise _unknown(parent, step, cls, fields)
            if field.static:
                raise _static(parent, step, cls)
            return field.type
        case Name(key) | Index(key):
            return _schema.item_type(parent.__type__, key)
        case Span():
            return _schema.item_type(parent.__type__, None)
        case Key():
            return _schema.item_type(parent.__type__, None)


def decide(place: Places, axis: Any) -> None:
    """Records a decision for the place.

    Raises:
      RecordError: The axis is none.
      ConflictError: Another stage decided the place differently.
    """
    record, path = place.__record__, place.__path__
    optional = isinstance(axis, Optional)
    payload = axis.payload if isinstance(axis, Optional) else axis
    if isinstance(payload, Places):
        payload = _mounted(place, payload)
    payload = record.form.check(payload, code(path, record.name))
    record.decide(path, payload, optional=optional)


def _mounted(place: Places, inner: Places) -> Mounted:
    """The payload by which another builder counts at a place."""
    if isinstance(inner, Placeholder):
        raise error(
            RecordError,
            f"{code(inner.__path__)} is a place, not an axis: nothing is known of it "
            "before a value is bound.",
            Problem(kind="placeholder", path=code(place.__path__), there="a place"),
            fixes=[f"{code(place.__path__)} = 0, or None for shared"],
        )
    if inner.__record__.reaches(place.__record__):
        raise error(
            RecordError,
            "a builder cannot be mounted inside itself.",
            Problem(kind="mount", path=code(place.__path__), there="this builder"),
            fixes=["mount another builder, or a copy.copy() of this one"],
        )
    return Mounted(inner.__record__)


def forget(place: Places) -> None:
    """Takes back what the open stage decided at and below the place.

    Raises:
      RecordError: This stage decided nothing there.
    """
    record, path = place.__record__, place.__path__
    if record.forget(path):
        return
    others = [d for d in record.own().decisions if d.path[: len(path)] == path]
    problems = [
        Problem(
            kind="forget",
            path=d.code(record.form),
            stage=d.stage.name,
            file=d.source.file,
            line=d.source.line,
            decided_by=str(d),
        )
        for d in others
    ]
    raise error(
        RecordError,
        "there is no decision of this stage to take back.",
        *(problems or [Problem(kind="forget", path=code(path), there="undecided")]),
        fixes=[
            f'with spec.stage("late", override=True): del {code(path)}'
            if others
            else f"remove  del {code(path)}"
        ],
    )


def _no_value(place: Places, what: str) -> NoReturn:
    """Says that a placeholder is not a value."""
    path = code(place.__path__)
    kind = "a place" if place.__path__ else "a builder"
    target = path if place.__path__ else f"{path}.x"
    raise error(
        RecordError,
        f"{path} is {kind}, not a value, and cannot be {what}: what is there is known "
        "when a value is bound.",
        Problem(kind="placeholder", path=path, there=kind, asked=what),
        fixes=[
            f"{target} = 0 decides an axis; sa.per_leaf(fn) and sa.from_node(fn) "
            "decide from the data"
        ],
    )


def _own_name(name: str) -> RecordError:
    """The error for a field whose name the builder uses itself."""
    return error(
        RecordError,
        f"the builder uses the name {name!r} itself.",
        Problem(kind="name", path=f"spec.{name}", there=f"the method {name}()"),
        fixes=[f"spec[{name!r}] = ..., or below it  sa.at(spec, {name!r}).x = ..."],
    )


def _unknown(parent: Places, step: Name, cls: Any, fields: Any) -> FieldError:
    """The error for a name that the declared class does not have."""
    path = code((*parent.__path__, step))
    names = [name for name, field in fields.items() if not field.static]
    like = nearest(step.name, names)
    better = [code((*parent.__path__, evolve(step, name=n))) for n in like[:1]]
    return error(
        FieldError,
        f"{cls.__name__} has no field {step.name!r}.",
        Problem(
            kind="unknown",
            path=path,
            there=f"{cls.__name__} has the fields "
            + few([*like, *(n for n in names if n not in like)]),
        ),
        fixes=[f"did you mean  {better[0]} ?" if better else "check the name"],
    )


def _static(parent: Places, step: Name, cls: Any) -> FieldError:
    """The error for a field that is static data."""
    return error(
        FieldError,
        f"{cls.__name__}.{step.name} is a static field: it is no leaf and has no axis.",
        Problem(
            kind="static",
            path=code((*parent.__path__, step)),
            there="static field",
        ),
        fixes=["remove the line: static fields are never mapped and need no decision"],
    )
