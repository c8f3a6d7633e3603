"""Several builders -> one: their records together, under the rule for conflicts."""

from __future__ import annotations

from staged_axes._bind.builder import AxesBuilder, builder_of
from staged_axes._record.axes import AXES
from staged_axes._record.decisions import UNDECIDED
from staged_axes._record.record import Record, in_order
from staged_axes._words import provenance as _provenance
from staged_axes._words.display import short
from staged_axes.errors import (
    ConflictError,
    Problem,
    RecordError,
    error,
    with_article,
)


def merge(*builders: AxesBuilder) -> AxesBuilder:
    """A new builder with the records of all, under the rule for conflicts.

    What counts as later is what was written later, in whatever order they are given.

    Raises:
      ConflictError: Two of them decide one place, or the default, differently.
      RecordError: One of them is no builder.

    Example:
      >>> import staged_axes as sa
      >>> a, b = sa.AxesBuilder(default=None), sa.AxesBuilder(default=None)
      >>> a.x = 0
      >>> b.y = 1
      >>> sa.merge(a, b)
      <AxesBuilder: 2 decisions, 0 rules, default None>
    """
    for builder in builders:
        if not isinstance(builder, AxesBuilder):
            raise error(
                RecordError,
                f"merge takes builders, not {with_article(short(builder))}.",
                Problem(kind="argument", path="sa.merge(...)", there=short(builder)),
                fixes=["sa.merge(spec, other)"],
            )
    records = [b.__record__ for b in builders]
    merged = Record(AXES, UNDECIDED, _provenance.caller())
    for record in records:
        if record.default is not UNDECIDED:
            if merged.default not in (UNDECIDED, record.default):
                raise _defaults_differ(records)
            merged.default, merged.source = record.default, record.source
    own = [record.own() for record in records]
    for decision in in_order(d for entries in own for d in entries.decisions):
        merged.write(decision)
    for rule in in_order(r for entries in own for r in entries.rules):
        merged.write_rule(rule)
    types = [b.__type__ for b in builders]
    is_one = bool(types) and all(type_ == types[0] for type_ in types)
    return builder_of(merged, types[0] if is_one else None)


def _defaults_differ(records: list[Record]) -> ConflictError:
    """The error for builders with different defaults."""
    return error(
        ConflictError,
        "the builders have different defaults.",
        *(
            Problem(
                kind="conflict",
                path=f"default={r.form.text(r.default)}",
                file=r.source.file,
                line=r.source.line,
                decided_by=str(r.source),
            )
            for r in records
        ),
        fixes=["give all of them one default, or sa.UNDECIDED to all but one"],
    )
