"""`AxesBuilder`: decisions early, by several modules, bound late."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from staged_axes._bind import bind as _bind
from staged_axes._bind.bound import BoundAxes
from staged_axes._json import dump as _json_dump, load as _json_load
from staged_axes._programs.batch import batch
from staged_axes._programs.batched import BatchedFunction
from staged_axes._record.axes import AXES
from staged_axes._record.axes_tree import record_of_tree
from staged_axes._record.decisions import UNDECIDED, Decision, Rule, Stage
from staged_axes._record.placeholders import Places
from staged_axes._record.record import Record
from staged_axes._record.staging import StageBlock
from staged_axes._values.vary import vary
from staged_axes._words import provenance as _provenance
from staged_axes._words.display import Table, short
from staged_axes._words.news import Bound, Guarded
from staged_axes.errors import Problem, RecordError, count, error, with_article


class AxesBuilder(Places):
    """Records which leaves are mapped, before there is a value.

    Attributes and items name places: `spec.wheel.drag = None`, `spec["layers"][2].w =
    1`, `spec.layers[:].w = 1`. A decision holds for the whole subtree, unless another
    one is nearer to a leaf. Within a stage, a later line replaces what was decided at
    and below its place; what other stages decided stays. Nothing is looked up until a
    value is bound, except in the declared class, where one is given.

    Args:
      cls: The class of the value. Names that it does not have, and static fields, are
        then refused at the line that writes them.
      default: The axis of leaves for which nobody decides: an int, None for shared, a
        `per_leaf` decision, or `UNDECIDED`, which makes such a leaf an error.

    Raises:
      RecordError: The default is no axis, or `cls` is no class.

    Example:
      >>> import jax.numpy as jnp, staged_axes as sa
      >>> spec = sa.AxesBuilder(default=0)
      >>> spec.bar = None
      >>> spec.bind({"a": jnp.ones(3), "bar": {"b": jnp.ones(2)}}).leaf_axes
      (0, None)

    Source:
      https://github.com/jax-ml/jax/issues/19729
    """

    __slots__ = ()

    def __init__(self, cls: Any = None, *, default: Any = 0) -> None:
        if not (cls is None or isinstance(cls, type) or hasattr(cls, "__origin__")):
            raise error(
                RecordError,
                "AxesBuilder takes the class of the value, not "
                f"{with_article(short(cls))}.",
                Problem(kind="class", path="sa.AxesBuilder(...)", there=short(cls)),
                fixes=[
                    f"sa.AxesBuilder(default={cls})"
                    if isinstance(cls, int)
                    else f"sa.AxesBuilder({type(cls).__name__})"
                ],
            )
        if default is not UNDECIDED:
            default = AXES.check(default, "default")
        super().__init__(Record(AXES, default, _provenance.caller()), (), cls)

    @classmethod
    def from_tree(cls, tree: Any) -> AxesBuilder:
        """The builder that says what an ordinary axes tree says.

        Args:
          tree: A prefix of the values to come, with an int or None at each leaf. Its
            static data is not read; lists stand for tuples and dicts for FrozenDicts.

        Returns:
          A builder that leaves undecided what the tree does not reach.

        Raises:
          RecordError: A leaf of the tree is no axis.

        Example:
          >>> import jax.numpy as jnp, staged_axes as sa
          >>> spec = sa.AxesBuilder.from_tree({"a": 0, "bar": None})
          >>> spec.bind({"a": jnp.ones(3), "bar": {"b": jnp.ones(2)}}).leaf_axes
          (0, None)
        """
        builder = cls.__new__(cls)
        record = record_of_tree(tree, "axes tree", _provenance.caller())
        Places.__init__(builder, record, (), None)
        return builder

    def stage(self, name: str, *, override: bool = False) -> StageBlock:
        """Labels the decisions inside; a context manager and a decorator.

        Where the body raises, its decisions are taken back, and those of the stages
        inside it; what it wrote to other builders stays. As a decorator it takes
        `async` functions too.

        Args:
          name: What the stage is called in tables and messages.
          override: Let this stage decide differently from earlier ones; it then also
            replaces what they wrote below.

        Raises:
          RecordError: There is no name; or what is decorated is no function, or a
            generator.

        Example:
          >>> import staged_axes as sa
          >>> spec = sa.AxesBuilder(default=None)
          >>> with spec.stage("sysid"):
          ...     spec.world.mass = 0
          >>> @spec.stage("control")
          ... def tune():
          ...     spec.gain = 0
          >>> tune()
        """
        if not isinstance(name, str) or not name:
            raise error(
                RecordError,
                "a stage needs a name.",
                Problem(
                    kind="stage", path="spec.stage(...)", there=type(name).__name__
                ),
                fixes=['with spec.stage("sysid"): ...  or  @spec.stage("sysid")'],
            )
        record = self.__record__
        return StageBlock(record, Stage(name, record.owner, override))

    def bind(
        self, value: Any, *, like: Any = None, axis_size: int | None = None
    ) -> BoundAxes:
        """One axis for each leaf of a value, checked.

        Args:
          value: Any pytree: arrays, tracers, or what `jax.eval_shape` gives. Not
            changed; structure, shapes and types are read.
          like: The value of one example. Mapped leaves must then have its shape with
            the batch axis put in, shared leaves its very shape.
          axis_size: The batch size. Needed only where no leaf is mapped.

        Returns:
          The axes; print them to see who decided.

        Raises:
          BindError: Record and value do not fit; `problems` has every reason.
          BindConflictError: ... and two stages disagree, among the reasons.

        Example:
          >>> import jax.numpy as jnp, staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> spec.b = None
          >>> bound = spec.bind({"a": jnp.ones((3, 2)), "b": jnp.ones(2)})
          >>> bound.leaf_axes, bound.batch_size
          ((0, None), 3)
        """
        return _bind.bind(self.__record__, value, like=like, axis_size=axis_size)

    def vary(self, value: Any, arrays: Mapping[Any, Any], *, like: Any = None) -> Any:
        """The value with batched arrays in the places that vary, and the axes recorded.

        One declaration for the axis and the data. A place for which the record says no
        axis gets axis 0; one that was decided earlier keeps its axis, and is drawn
        again by another call. Afterwards `bind(result, like=value)` fits.

        Args:
          value: One example. Not changed.
          arrays: The array of each place that varies, by path (`"opt.timestep"`) or by
            place (`spec.opt.timestep`). For a place with several leaves, a tree of the
            same leaves.
          like: The value of one example, where `value` has been varied before: then
            these places are drawn again, or others beside them.

        Returns:
          A value of the same class with the same static data; all other leaves are the
          same objects, and nothing is copied. It is built once, from real arrays.

        Shapes:
          An array is that of the field with the batch axis put in: for a field of shape
          `(3,)` and axis 0, `(n, 3)`. All arrays have one n, and the kind of numbers
          that the field has.

        Raises:
          RecordError: A key is no place of this builder.
          ConflictError: Another stage decided that such a place is shared.
          BindError: Arrays, value and record do not fit; with every reason. The record
            is then as it was before.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> model = {"mass": np.ones(2), "opt": {"timestep": 0.01}}
          >>> spec = sa.AxesBuilder(default=None)
          >>> many = spec.vary(model, {"opt.timestep": np.array([0.01, 0.02, 0.04])})
          >>> spec.bind(many).leaf_axes
          (None, 0)
        """
        stage = self.__record__.current_stage()
        return vary(self, value, arrays, like, stage, _provenance.caller())

    def batch(
        self, fn: Callable[..., Any], out_axes: Any = 0, **options: Any
    ) -> BatchedFunction:
        """Maps and compiles a function of one argument as `sa.batch` does.

        Args:
          fn: The function of one example.
          out_axes: As in `sa.batch`.
          **options: The other options of `sa.batch`.

        Returns:
          The function over batches. What is recorded later counts from the next call.

        Example:
          >>> import jax.numpy as jnp, staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> spec.b = None
          >>> fast = spec.batch(lambda v: v["a"] + v["b"].sum())
          >>> fast({"a": jnp.arange(3.0), "b": jnp.ones(2)})
          Array([2., 3., 4.], dtype=float32)
        """
        return batch(fn, in_axes=self, out_axes=out_axes, **options)

    def on_bind(self, callback: Callable[[BoundAxes], object]) -> Callable[[], None]:
        """Calls back with the axes, each time `bind` has fitted the record to a value.

        For programs that are no `Pipeline`. An error of the callback does no harm: the
        first one becomes a warning. Copies of the builder do not call it.

        Args:
          callback: Called with the `BoundAxes`, in the thread that binds.

        Returns:
          A function that ends it.

        Example:
          >>> import numpy as np, staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> stop = spec.on_bind(lambda bound: print(bound.batch_size))
          >>> bound = spec.bind(np.ones(3))
          3
          >>> stop()
        """
        guarded = Guarded(callback)

        def listener(news: Any) -> None:
            if isinstance(news, Bound):
                guarded(news.axes)

        return self.__record__.listeners.add(listener)

    def to_json(self) -> str:
        """The record as text: decisions and rules, who decided and where.

        Functions and classes are written by the name under which they can be imported;
        what a script or a notebook defines has none.

        Raises:
          RecordError: Something in the record has no such name, or a key has no text.

        Example:
          >>> import staged_axes as sa
          >>> spec = sa.AxesBuilder(default=0)
          >>> spec.wheel.drag = None
          >>> sa.AxesBuilder.from_json(spec.to_json())
          <AxesBuilder: 1 decision, 0 rules, default 0>
        """
        return _json_dump.dump(self.__record__, self.__type__)

    @classmethod
    def from_json(cls, text: str) -> AxesBuilder:
        """The builder that `to_json` wrote, or that somebody wrote by hand.

        Modules that the text names are imported, and functions in them are called when
        a value is bound: read only text that you trust.

        Args:
          text: An object with the members `version` (1), `default`, and `decisions`
            and `rules`, which are lists. Stage, file and line may be left out.

        Raises:
          RecordError: The text is no such record; every reason, with line and column.

        Example:
          >>> import staged_axes as sa
          >>> spec = sa.AxesBuilder.from_json('''{
          ...   "version": 1, "default": 0,
          ...   "decisions": [{"place": "layers[:].w", "axis": 1}],
          ...   "rules": [{"glob": "**/bias", "axis": null}]
          ... }''')
          >>> spec
          <AxesBuilder: 1 decision, 1 rule, default 0>
        """
        return builder_of(*_json_load.load(text, AXES))

    def table(self) -> Table:
        """What was recorded, by stage, with the line that decided."""
        record = self.__record__
        entries = record.entries()
        made: list[Decision | Rule] = [*entries.decisions, *entries.rules]
        rows = [
            (
                d.stage.name or "",
                d.place,
                record.form.text(d.payload) + (" if there" if d.optional else ""),
                str(d.source),
            )
            for d in made
        ]
        default = record.form.text(record.default)
        return Table(
            f"AxesBuilder, default {default}",
            ("stage", "place", "axis", "decided at"),
            tuple(rows),
        )

    def __str__(self) -> str:
        return self.table().text()

    def __repr__(self) -> str:
        entries = self.__record__.entries()
        default = self.__record__.form.text(self.__record__.default)
        decisions = count(len(entries.decisions), "decision")
        rules = count(len(entries.rules), "rule")
        return f"<AxesBuilder: {decisions}, {rules}, default {default}>"

    def __rich__(self) -> Any:
        return self.table().__rich__()

    def _repr_html_(self) -> str:
        return self.table().html()

    def __reduce__(self) -> tuple[Any, ...]:
        return builder_of, (self.__record__, self.__type__)

    def __copy__(self) -> AxesBuilder:
        return builder_of(copy.copy(self.__record__), self.__type__)


def builder_of(record: Record, type_: Any) -> AxesBuilder:
    """A builder around a record."""
    builder = AxesBuilder.__new__(AxesBuilder)
    Places.__init__(builder, record, (), type_)
    return builder
