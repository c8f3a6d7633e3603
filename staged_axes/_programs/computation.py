"""When two traced computations are one: a key for a jaxpr, equal only for the same.

JAX compiles a program from its jaxpr, the constants in it, the types and places of the
inputs, and the configuration; from nothing else. So two jaxprs that are equal up to the
names of variables give the same program on every platform and every device. What cannot
be told to be equal is different: objects are compared by identity, except those of JAX
and NumPy, whose `__eq__` JAX itself relies on for its caches.

Left out on purpose: the rules for derivatives of `custom_jvp` and `custom_vjp`. They
are new objects in each trace, so nothing could ever be shared; whoever shares by this
key must not differentiate what is shared.
"""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import numpy as np
from attrs import define, field

from staged_axes._compat import constants, equation_settings, operation
from staged_axes._structure.content import Key, Reader, Uncomparable

# What `custom_jvp` and `custom_vjp` keep for derivatives, in JAX 0.4.30 to 0.12.0.1. A
# name missing here costs a compile: the parameter is a new object in each trace.
_FOR_DERIVATIVES = frozenset(
    {"jvp_jaxpr_fun", "jvp_jaxpr_thunk", "fwd_jaxpr_thunk", "bwd", "out_trees"}
)
_TRUSTED = ("jax", "jaxlib", "numpy")


class _Unlike(Exception):  # noqa: N818 (a signal that never leaves this file)
    """The computation is like no other: it has effects, or calls back to Python."""


def computation_key(jaxpr: Any, inputs: int) -> Key | None:
    """The key of a traced computation; None for one that is like no other.

    It holds identities, and is good for as long as the jaxpr is kept. The constants
    that NumPy made are replaced by copies, so that what they hold now is what JAX will
    compile at any later time.

    Args:
      jaxpr: What was traced.
      inputs: How many inputs were given. A function that closes over a tracer has one
        more than that, which JAX supplies, and nothing tells which tracer it was.
    """
    if len(jaxpr.in_avals) != inputs:
        return None
    try:
        return _Walk().jaxpr(jaxpr)
    except (_Unlike, Uncomparable, RecursionError):
        return None


@define
class _Walk:
    """One walk over a jaxpr and those inside it, which are often the same few."""

    seen: dict[int, Key] = field(factory=dict)
    reader: Reader = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.reader = Reader(self.other)

    def jaxpr(self, jaxpr: Any) -> Key:
        """The key of a jaxpr, closed or open."""
        if id(jaxpr) not in self.seen:
            self.seen[id(jaxpr)] = self._jaxpr(jaxpr)
        return self.seen[id(jaxpr)]

    def _jaxpr(self, jaxpr: Any) -> Key:
        consts = tuple(self.read(x) for x in constants(jaxpr))
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        if inner.effects:
            raise _Unlike
        inputs = (*inner.constvars, *inner.invars)
        numbers = {id(v): i for i, v in enumerate(inputs)}
        equations = []
        for equation in inner.eqns:
            equations.append(self._equation(equation, numbers))
            for v in equation.outvars:
                numbers[id(v)] = len(numbers)
        return (
            "jaxpr",
            consts,
            len(inner.constvars),
            tuple(v.aval for v in inputs),
            tuple(equations),
            tuple(self._atom(v, numbers) for v in inner.outvars),
        )

    def _equation(self, equation: Any, numbers: dict[int, int]) -> Key:
        """Primitive, context, inputs and parameters; the outputs follow from them."""
        name = equation.primitive.name
        if "callback" in name:
            raise _Unlike
        params = sorted(equation.params.items())
        if name.startswith("custom_"):
            params = [(k, v) for k, v in params if k not in _FOR_DERIVATIVES]
        return (
            id(equation.primitive),
            self._context(equation),
            tuple(self._atom(v, numbers) for v in equation.invars),
            tuple((k, self.read(v)) for k, v in params),
            len(equation.outvars),
        )

    def _context(self, equation: Any) -> Key:
        """Where the equation runs, and the settings that it was traced under."""
        if id(equation.ctx) not in self.seen:
            settings = equation_settings(equation)
            self.seen[id(equation.ctx)] = self.read(settings)
        return self.seen[id(equation.ctx)]

    def _atom(self, atom: Any, numbers: dict[int, int]) -> Key:
        """A variable by its number, a literal by its value."""
        if hasattr(atom, "val"):
            return ("literal", self.read(atom.val), atom.aval)
        return (numbers[id(atom)], atom.aval)

    def read(self, x: Any) -> Key:
        """The key of a parameter or constant."""
        if isinstance(x, np.ndarray | jax.Array) and not isinstance(x, jax.core.Tracer):
            kind, *rest = self.reader.read_array(x)
            # A digest: constants may be large, and JAX keeps them already.
            return (kind, *(_digest(r) if isinstance(r, bytes) else r for r in rest))
        return self.reader.read(x)

    def other(self, x: Any) -> Key:
        """The key of what is no plain data."""
        if hasattr(x, "eqns") or hasattr(getattr(x, "jaxpr", None), "eqns"):
            return self.jaxpr(x)
        if (parts := operation(x)) is not None:
            return self.read(parts)
        if hasattr(x, "__array__"):
            return (type(x), getattr(x, "weak_type", None), self.read(np.asarray(x)))
        if type(x).__module__.split(".")[0] in _TRUSTED and not callable(x):
            try:
                hash(x)
            except TypeError:
                pass
            else:
                return (type(x), x)
        return ("identity", id(x))


def _digest(data: bytes) -> bytes:
    """What stands for the bytes of a constant."""
    return hashlib.blake2b(data, digest_size=32).digest()
