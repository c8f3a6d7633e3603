"""Static data as a key: what it holds, with its types; equal keys mean equal data.

`1`, `1.0`, `True` and `0.0`, `-0.0` are equal for Python and different here, at any
depth. Arrays, lists, dicts, sets and objects that cannot be hashed are read by content,
so one that was changed in place has another key. Any other object is asked by its own
`__hash__` and `__eq__`; where a class wrote its own `__eq__`, the plain attributes of
the object count too, since an `__eq__` that forgets a field would give wrong numbers,
and an attribute too many costs no more than a trace.
"""

from __future__ import annotations

import collections
import enum
import sys
import types
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np
from attrs import define

from staged_axes._compat import node_class, node_data, treedef_nodes
from staged_axes._structure import tree as _tree
from staged_axes._structure.tracers import holds_tracer
from staged_axes._words.display import short
from staged_axes.errors import clip

Key: TypeAlias = Hashable

_EXACT = frozenset(
    {type(None), bool, int, str, bytes, type(Ellipsis), type(NotImplemented)}
)
_TOLD = (str, bytes, int, float, complex, bool, type(None))
_SEQUENCES = (tuple, list, collections.deque)
_MAPPINGS = (dict, types.MappingProxyType)
_SETS = (set, frozenset)
_FROZEN = ("jax", "jaxlib", "numpy", "flax")  # their hashable objects do not change
_MUTABLE = (list, collections.deque, dict, types.MappingProxyType, set, np.ndarray)


class Uncomparable(Exception):  # noqa: N818 (a signal, always turned into an error)
    """Static data that gives no key.

    Attributes:
      x: The object.
      kind: `"tracer"` or `"static-data"`, as in `Problem.kind`.
      why: What it does, in a few words.
    """

    def __init__(self, x: Any, kind: str, why: str) -> None:
        super().__init__(why)
        self.x = x
        self.kind = kind
        self.why = why


@define
class Reader:
    """Reads static data into keys.

    Attributes:
      other: The key of an object that has no plain content.
      is_stable: Is everything that was read so far unchangeable?
    """

    other: Callable[[Any], Key]
    is_stable: bool = True

    def read(self, x: Any) -> Key:  # noqa: PLR0911 (one return for each kind)
        """The key of `x`: equal for equal content of equal types.

        Raises:
          Uncomparable: `x` holds a tracer, or something that cannot be compared.
        """
        kind: Any = type(x)
        if kind in _EXACT:
            return (kind, x)
        if kind in (range, slice):
            return (kind, *map(self.read, (x.start, x.stop, x.step)))
        if isinstance(x, float | complex) and not isinstance(x, np.generic):
            # JAX has subclasses, with a dtype.
            return (kind, float.hex(x.real), float.hex(x.imag), *self._extra(x))
        if isinstance(x, _MUTABLE):
            self.is_stable = False
        if is_sequence(x):
            return (kind, *map(self.read, x), *self._extra(x))
        if is_mapping(x):
            made_by = self.read(getattr(x, "default_factory", None))
            items = [(self.read(k), self.read(v)) for k, v in x.items()]
            return (kind, made_by, *items, *self._extra(x))
        if is_set(x):
            return (kind, frozenset(map(self.read, x)), *self._extra(x))
        if isinstance(x, jax.core.Tracer):
            raise Uncomparable(x, "tracer", "holds a tracer")
        if is_plain_array(x):
            return self.read_array(x)
        if kind is jtu.PyTreeDef:
            return (kind, *self.treedef(x))
        return self.other(x)

    def treedef(self, treedef: Any) -> Iterable[Key]:
        """A key for each node: its class, its number of children, its static data."""
        rows = []
        for row in treedef_nodes(treedef):
            data, custom = node_data(row), node_class(row)
            # The keys of a dict are a list that JAX has just made.
            if custom is None and isinstance(data, list):
                data = tuple(data)
            rows.append((*row[:2], custom, self.read(data)))
        return rows

    def _extra(self, x: Any) -> tuple[Key, ...]:
        """What a subclass of a plain container holds beside its items."""
        held = getattr(x, "__dict__", None)
        return (self.read(held),) if held else ()

    def read_array(self, x: Any) -> tuple[Any, ...]:
        """The key of an array: dtype, shape, contents."""
        if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
            data = jax.random.key_data(x)
            return (type(x), str(x.dtype), *self._bytes(data))
        return (type(x), getattr(x, "weak_type", None), *self._bytes(x))

    def _bytes(self, x: Any) -> tuple[Key, ...]:
        """Dtype, shape and contents."""
        try:
            plain = np.asarray(x)
        except Exception as e:  # deleted, or on another host
            raise Uncomparable(x, "static-data", "cannot be read") from e
        if plain.dtype.hasobject:
            return (plain.shape, *map(self.read, plain.ravel().tolist()))
        return (plain.dtype, plain.shape, plain.tobytes())


def is_plain_array(x: Any) -> bool:
    """An array whose contents are all there is to it (a masked one has a mask too)."""
    return type(x) is np.ndarray or isinstance(x, np.generic | jax.Array)


def is_sequence(x: Any) -> bool:
    """A tuple, list or deque, or one by another name that compares like it."""
    return isinstance(x, _SEQUENCES) and _compares_like(x, _SEQUENCES)


def is_mapping(x: Any) -> bool:
    """A dict of any kind that compares like Python's own."""
    plain = (*_MAPPINGS, collections.OrderedDict)
    return isinstance(x, _MAPPINGS) and _compares_like(x, plain)


def is_set(x: Any) -> bool:
    """A set that compares like Python's own."""
    return isinstance(x, _SETS) and _compares_like(x, _SETS)


def _compares_like(x: Any, plain: tuple[type, ...]) -> bool:
    """Did nobody write an `__eq__` of his own into this kind of container?"""
    return any(type(x).__eq__ is base.__eq__ for base in plain)


# Objects -----------------------------------------------------------------------------


class Held:
    """An object that is compared by its own `__eq__`, identity and hash first."""

    __slots__ = ("_attributes", "_hash", "_x", "is_stable")

    def __init__(self, x: Any) -> None:
        self._x = x
        try:
            own = hash(x)
        except Exception as e:
            why = "cannot be hashed, and is no plain container"
            raise Uncomparable(x, "static-data", why) from e
        self._attributes, self.is_stable = _attributes(x, set())
        self._hash = hash((type(x), own, self._attributes))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Held) or self._hash != other._hash:
            return False
        if self._x is other._x:
            return True
        if type(self._x) is not type(other._x) or self._attributes != other._attributes:
            return False
        try:
            return bool(self._x == other._x)
        except Exception as e:
            why = f"has an __eq__ that raises {type(e).__name__}"
            raise Uncomparable(other._x, "static-data", why) from e


def _attributes(x: Any, above: set[int]) -> tuple[Key, bool]:
    """The plain attributes of an object that is not compared by identity.

    Returns:
      Their key, and whether it can never change.
    """
    cls: Any = type(x)
    if cls.__eq__ is object.__eq__ or isinstance(x, type) or id(x) in above:
        return None, True
    above = above | {id(x)}

    def other(inner: Any) -> Key:
        key, is_stable = _attributes(inner, above)
        reader.is_stable &= is_stable
        return (type(inner), key)

    reader = Reader(other)
    names = [
        *(name for c in cls.__mro__ for name in _slots(c)),
        *getattr(x, "__dict__", ()),
    ]
    home = cls.__module__.split(".")[0]
    is_standard = home in sys.stdlib_module_names
    try:
        held = [
            (name, reader.read(getattr(x, name))) for name in names if hasattr(x, name)
        ]
        # Decimals, dates and the like hide what they hold, and show it: 1.0 and 1.00.
        key = (repr(x) if is_standard else "", *held)
    except (RecursionError, Uncomparable):
        return None, False
    is_frozen = not held or is_standard or home in _FROZEN or _is_frozen(cls)
    return key, is_frozen and reader.is_stable


def _is_frozen(cls: Any) -> bool:
    """Does the class promise that its objects keep their attributes?"""
    if issubclass(cls, enum.Enum):
        return True
    declared = getattr(cls, "__dataclass_params__", None)
    return getattr(declared, "frozen", False) or (
        getattr(cls.__setattr__, "__name__", "") == "_frozen_setattrs"  # of attrs
    )


def _slots(c: type) -> Iterable[str]:
    """The names of the slots that hold data, as Python mangles them."""
    slots = vars(c).get("__slots__", ())
    return [
        f"_{c.__name__.lstrip('_')}{name}" if name.startswith("__") else name
        for name in ((slots,) if isinstance(slots, str) else slots)
        if not name.endswith("__")
    ]


def reader_of_statics() -> Reader:
    """A reader for static data: other objects by their own `__eq__`."""

    def other(x: Any) -> Key:
        if holds_tracer(x):
            raise Uncomparable(x, "tracer", "holds a tracer")
        try:
            held = Held(x)
        except Uncomparable:
            if not (parts := parts_of(x)):
                raise
            reader.is_stable = False
            return (type(x), *map(reader.read, parts(x)))
        reader.is_stable &= held.is_stable
        return held

    reader = Reader(other)
    return reader


def content(x: Any) -> tuple[Key, bool]:
    """The key of a piece of static data, and whether it can never change.

    Raises:
      Uncomparable: It gives no key.

    Example:
      >>> content([1, 2.0])[0] == content([1, 2.0])[0], content(1)[0] == content(1.0)[0]
      (True, False)
    """
    reader = reader_of_statics()
    try:
        return reader.read(x), reader.is_stable
    except RecursionError:
        raise Uncomparable(x, "static-data", "contains itself") from None


def parts_of(x: Any) -> Callable[[Any], Iterable[Any]] | None:
    """How to list what an unhashable object is made of, where its class tells."""
    if _tree.is_node(x):
        return lambda node: (*jtu.tree_leaves(node), jtu.tree_structure(node))
    if _tree.declares_fields(type(x)):
        return lambda thing: _tree.attributes(thing).items()
    return None


def value_text(x: Any) -> str:
    """A plain value as code, anything else in short, without the user's `repr`."""
    if isinstance(x, enum.Enum):
        return clip(f"{type(x).__name__}.{x.name}", 40)
    is_plain = type(x) in _TOLD or (
        type(x) is tuple and all(type(item) in _TOLD for item in x)
    )
    return clip(repr(x), 40) if is_plain else short(x)
