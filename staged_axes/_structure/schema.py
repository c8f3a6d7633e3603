"""What a class says of its fields, read from its declarations alone.

In comes a class or an annotation, out goes which names are fields, which of them are
static data, and what each is annotated with. No instance is made and nothing is
imported: flax, equinox, attrs, chex and JAX classes are known by what their decorators
leave on the class. It knows nothing of paths, axes and values.

An answer of None always means "not known": whoever asks must then allow everything.
"""

import collections.abc
import dataclasses
import functools
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve, frozen

_WRAPPERS = {"Final", "ClassVar", "Required", "NotRequired", "ReadOnly"}
_CONTAINER_MODULES = {"builtins", "collections", "collections.abc"}


@frozen
class Field:
    """One declared field: its name, whether it is static data, what it may hold.

    The annotation is worked out when `type` is read and not before, so that classes
    that name themselves, or a class that is defined further down, are no trouble.
    """

    name: str
    static: bool
    _annotation: Any
    _owner: Any
    _arguments: Mapping[Any, Any]

    @property
    def type(self) -> Any:
        """The resolved annotation, or None where it cannot be resolved."""
        return _substitute(_resolve(self._annotation, self._owner), self._arguments)


def fields_of(cls: Any) -> Mapping[str, Field] | None:
    """The fields that a class declares, by name and in order.

    Understood are dataclasses (also those of flax.struct, equinox, chex and JAX), attrs
    classes, named tuples and typed dicts. Static is what the field's own metadata calls
    so: `static=True` or `pytree_node=False`. Statics that are named elsewhere, as in
    `jax.tree_util.register_dataclass(cls, meta_fields=...)`, are not seen here.

    A class without any field of its own (an empty base class, say) tells nothing, and
    neither does a class that inherits a declaration but was not declared itself.

    Args:
      cls: A class, or an annotation that stands for one, such as `Box[Wheel] | None`.

    Returns:
      The fields, or None where the class declares none: anything is allowed below.

    Example:
      >>> import dataclasses
      >>> @dataclasses.dataclass
      ... class Wheel:
      ...     drag: float
      ...     label: str = dataclasses.field(metadata={"static": True})
      >>> {name: field.static for name, field in fields_of(Wheel).items()}
      {'drag': False, 'label': True}
    """
    declared = class_of(cls)
    if declared is None:
        return None
    fields = _declared(declared)
    if _is_subscripted(cls):
        arguments = _arguments(_strip(cls))
        fields = {
            name: evolve(field, arguments=arguments.get(field._owner, {}))
            for name, field in fields.items()
        }
    return types.MappingProxyType(fields) if fields else None


def field_of_subclass(cls: Any, name: str) -> Field | None:
    """The field of that name which a known subclass declares, if one does."""
    for sub in type.__subclasses__(cls):
        field = (fields_of(sub) or {}).get(name) or field_of_subclass(sub, name)
        if field is not None:
            return field
    return None


def item_type(annotation: Any, key: str | int | slice | None) -> Any:
    """What an item of an annotated container is annotated with.

    Args:
      annotation: As in `dict[str, Wheel]`, `tuple[A, B]`, a typed dict, a named tuple,
        or a class that derives from one of them. A class with fields has its fields as
        items too: an attribute and an item of one name are one place.
      key: The item; None or a slice stands for all of them, which are then known only
        if they agree.

    Returns:
      The item's annotation, or None if it is not known.

    Example:
      >>> item_type(tuple[int, str], 1)
      <class 'str'>
      >>> item_type(list[int] | None, slice(None))
      <class 'int'>
    """
    annotation = _strip(annotation)
    cls = class_of(annotation)
    if cls is None:
        return None
    fields = fields_of(annotation)
    if fields:
        return _field_item(cls, fields, key)
    if cls.__module__ not in _CONTAINER_MODULES:
        arguments = _arguments(annotation).get(cls, {})
        bases = (_substitute(base, arguments) for base in _generic_bases(cls))
        return next((found for base in bases if (found := item_type(base, key))), None)
    return _builtin_item(cls, typing.get_args(annotation), key)


def class_of(annotation: Any) -> type | None:
    """The one class that an annotation stands for, if it stands for one.

    Optional, Annotated, Final, ClassVar and the like are taken off, a NewType and a
    type alias are followed, a type variable stands for its bound, and a subscripted
    class for the class.

    Example:
      >>> class_of(list[int] | None)
      <class 'list'>
      >>> class_of(int | str) is None
      True
    """
    annotation = _strip(annotation)
    found = typing.get_origin(annotation) or annotation
    # From Python 3.11 on `Any` is a class.
    if not isinstance(found, type) or found is Any or found is types.NoneType:
        return None
    return found


def _field_item(cls: type, fields: Mapping[str, Field], key: Any) -> Any:
    """The item of a class with fields; only a tuple counts them."""
    if isinstance(key, str):
        return fields[key].type if key in fields else None
    if issubclass(cls, tuple):
        return _select([field.type for field in fields.values()], key)
    if isinstance(key, int):
        return None
    return _select([f.type for f in fields.values() if not f.static], None)


def _builtin_item(cls: type, args: tuple[Any, ...], key: Any) -> Any:
    """The item of a subscripted container of the standard library."""
    if issubclass(cls, collections.abc.Mapping):
        return args[1] if args[1:] else None
    if not issubclass(cls, collections.abc.Sequence) or isinstance(key, str):
        return None
    if cls is not tuple or args[1:] == (...,):
        return args[0] if args else None
    return _select(args, key)


def _select(items: Iterable[Any], key: Any) -> Any:
    """The item at an index, or what all items of a slice agree on."""
    items = tuple(items)
    if isinstance(key, int):
        return items[key] if -len(items) <= key < len(items) else None
    chosen = items[key] if isinstance(key, slice) else items
    return chosen[0] if chosen and all(item == chosen[0] for item in chosen) else None


@functools.lru_cache(maxsize=256)
def _declared(cls: type) -> Mapping[str, Field]:
    """The fields in the class's own declaration; empty if it has none."""
    declared: list[tuple[str, Mapping[Any, Any], Any, type]] = []
    if "__dataclass_fields__" in vars(cls):
        declared = [
            (f.name, f.metadata, f.type, _dataclass_owner(cls, f))
            for f in dataclasses.fields(cls)
        ]
    elif "__attrs_attrs__" in vars(cls):
        declared = [
            (f.name, f.metadata, f.type, _attrs_owner(cls, f.name))
            for f in cls.__attrs_attrs__  # type: ignore[attr-defined]
        ]
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        owner = next(base for base in cls.__mro__ if "_fields" in vars(base))
        hints = getattr(owner, "__annotations__", {})
        declared = [(name, {}, hints.get(name), owner) for name in cls._fields]
    elif issubclass(cls, dict) and hasattr(cls, "__total__"):
        declared = [(name, {}, raw, cls) for name, raw in cls.__annotations__.items()]
    arguments = _arguments(cls)
    return {
        name: Field(name, _is_static(metadata), raw, owner, arguments.get(owner, {}))
        for name, metadata, raw, owner in declared
    }


def _is_static(metadata: Mapping[Any, Any]) -> bool:
    """Whether a field's metadata calls it static, in any library's words."""
    return bool(metadata.get("static", False) or not metadata.get("pytree_node", True))


def _dataclass_owner(cls: type, field: Any) -> type:
    """The class whose body declares a dataclass field."""
    # A dataclass takes over the very field objects of its bases.
    return [
        base
        for base in cls.__mro__
        if vars(base).get("__dataclass_fields__", {}).get(field.name) is field
    ][-1]


def _attrs_owner(cls: type, name: str) -> type:
    """The class whose body declares an attrs field."""
    for base in cls.__mro__:
        for field in vars(base).get("__attrs_attrs__", ()):
            if field.name == name and not field.inherited:
                return base
    return cls


def _resolve(annotation: Any, owner: type) -> Any:
    """An annotation without strings, or None if a name in it is out of reach."""
    if annotation is None:
        return None
    holder = type("_", (), {"__annotations__": {"_": annotation}})
    parameters = {p.__name__: p for p in getattr(owner, "__type_params__", ())}
    module = vars(sys.modules.get(owner.__module__, types))
    try:
        # Looked up in the order of `get_type_hints`: a class attribute never hides
        # a module's name. Only the class itself goes first, as it may be a local one.
        return typing.get_type_hints(
            holder,
            globalns={**vars(owner), **parameters},
            localns={**module, owner.__name__: owner},
        )["_"]
    except Exception:  # evaluating a user's annotation may raise anything
        return None


def _strip(annotation: Any) -> Any:
    """An annotation without what stands around the one type in it; None if several."""
    origin = typing.get_origin(annotation)
    args = typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        options = [arg for arg in args if arg is not types.NoneType]
        return _strip(options[0]) if len(options) == 1 else None
    if origin is typing.Annotated or (args and _form_name(origin) in _WRAPPERS):
        return _strip(args[0])
    if isinstance(annotation, typing.NewType):
        return _strip(annotation.__supertype__)
    if isinstance(annotation, typing.TypeVar):
        return _strip(annotation.__bound__)
    if type(origin or annotation).__name__ == "TypeAliasType":
        return _strip(_alias_value(origin or annotation, args))
    return annotation


def _form_name(origin: Any) -> str:
    """The name of a special form, be it of typing or of typing_extensions."""
    return "" if isinstance(origin, type) else repr(origin).rpartition(".")[2]


def _alias_value(alias: Any, args: tuple[Any, ...]) -> Any:
    """What a `type X[T] = ...` statement stands for, or None if it cannot be told."""
    try:
        return _substitute(
            alias.__value__, dict(zip(alias.__type_params__, args, strict=False))
        )
    except Exception:  # the value is evaluated here, and may raise anything
        return None


def _is_subscripted(annotation: Any) -> bool:
    """Whether an annotation gives arguments to a generic class."""
    return bool(typing.get_args(_strip(annotation)))


def _arguments(annotation: Any) -> dict[Any, dict[Any, Any]]:
    """What stands for the type variables of a class, and of each of its bases."""
    cls = typing.get_origin(annotation) or annotation
    own = dict(zip(_parameters(cls), typing.get_args(annotation), strict=False))
    found = {cls: own}
    for base in _generic_bases(cls):
        found |= _arguments(_substitute(base, own))
    return found


def _parameters(cls: Any) -> tuple[Any, ...]:
    """The type variables of a class, in the order in which it takes arguments."""
    if hasattr(cls, "__parameters__"):
        return tuple(cls.__parameters__)
    # A class over `collections.abc.Mapping[K, V]`, as FrozenDict, is not told its own.
    bases = _generic_bases(cls)
    return tuple(
        dict.fromkeys(p for b in bases for p in getattr(b, "__parameters__", ()))
    )


def _generic_bases(cls: Any) -> tuple[Any, ...]:
    """The bases as written, with their type arguments; plain ones as they are."""
    if not isinstance(cls, type):
        return ()
    bases: tuple[Any, ...] = vars(cls).get("__orig_bases__", cls.__bases__)
    return bases


def _substitute(annotation: Any, arguments: Mapping[Any, Any]) -> Any:
    """An annotation with its type variables replaced where they are known."""
    if isinstance(annotation, typing.TypeVar):
        return arguments.get(annotation, annotation)
    parameters = getattr(annotation, "__parameters__", ())
    if typing.get_origin(annotation) is None or not parameters or not arguments:
        return annotation
    try:
        return annotation[tuple(arguments.get(p, p) for p in parameters)]
    except TypeError:  # as Generic[T] itself, or with a ParamSpec
        return annotation
