"""Many rows into few: the leaves of a big tree, as few lines as tell all of it.

In come rows, one a leaf, each with its path and its cells as text; out go rows of the
same form for whole places. It knows nothing of axes: which cells must agree is said by
whoever asks.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import Factory, define, frozen


@frozen
class Row:
    """One leaf, or one place that stands for many: the steps to it and its cells."""

    path: tuple[str, ...]
    cells: tuple[str, ...]


def collapse(
    rows: Sequence[Row],
    limit: int = 24,
    *,
    decision: Sequence[int],
    count: int = 0,
    notable: Callable[[Row], bool] = lambda row: False,
) -> list[Row]:
    """The same rows in fewer lines, if there are more than `limit`.

    A subtree whose leaves agree in the decision becomes one row. So do siblings that
    are decided alike in everything below them: `layers[0:5]`, `layers[:]` if it is all
    of them, and `wheel (7 of 9)` for others, which comes after those that differ.
    Notable rows are told apart as long as there is room. What is still too much is cut,
    notable rows last.

    Args:
      rows: The leaves of a tree in flatten order.
      limit: How many rows there may be; one that says "and 7 more" may follow.
      decision: The columns in which rows must agree to become one. The other columns
        keep what all rows have in common, or are left empty.
      count: The column that says how many: "12 x f32[3]", "12 leaves" if they differ.
      notable: Whether a row is shown before others; depends on the decision alone.

    Example:
      >>> rows = [Row(("value", f".x[{i}]"), ("f32[]", "None")) for i in range(9)]
      >>> rows.append(Row(("value", ".mass"), ("f32[8]", "0")))
      >>> for row in collapse(rows, 4, decision=(1,)):
      ...     print("".join(row.path), row.cells)
      value.mass ('f32[8]', '0')
      value (9 of 10) ('9 x f32[]', 'None')
    """
    if len(rows) <= limit:
        return list(rows)
    tree = _tree(rows, decision)
    lines: list[_Line] = []
    for smallest, everything in ((3, False), (2, False), (2, True)):
        fold = _Fold(smallest, everything, notable)
        lines = list(fold.lines([tree], ()))
        if len(lines) <= limit:
            break
    kept = sorted(range(len(lines)), key=lambda i: (not notable(lines[i][1][0]), i))
    found = [_one_row(*lines[i], count) for i in sorted(kept[:limit])]
    if rest := [row for i in kept[limit:] for row in lines[i][1]]:
        found.append(_one_row((f"and {len(kept) - limit} more",), rest, count))
    return found


_Line = tuple[tuple[str, ...], list[Row]]


@define
class _Node:
    """A place in the tree of rows; places that are decided alike have the same kind."""

    rows: list[Row] = Factory(list)
    children: "dict[str, _Node]" = Factory(dict)
    kind: int = -1
    agrees: bool = False

    def leaves(self) -> Iterator[Row]:
        """The rows at and below this place."""
        yield from self.rows
        for child in self.children.values():
            yield from child.leaves()


def _tree(rows: Iterable[Row], decision: Sequence[int]) -> _Node:
    """The rows as a tree, each place with its kind."""
    root = _Node()
    kinds: dict[object, int] = {}
    for row in rows:
        node = root
        for step in row.path:
            node = node.children.setdefault(step, _Node())
        node.rows.append(row)

    def decide(node: _Node) -> set[int]:
        """Set the kinds from the leaves upwards; give the decisions at and below."""
        own = [
            kinds.setdefault(tuple(row.cells[i] for i in decision), len(kinds))
            for row in node.rows
        ]
        decided = set(own).union(*map(decide, node.children.values()))
        below = [(step, child.kind) for step, child in node.children.items()]
        node.agrees = len(decided) == 1
        node.kind = (
            min(decided)
            if node.agrees
            else kinds.setdefault((*own, *below), len(kinds))
        )
        return decided

    decide(root)
    return root


@frozen
class _Fold:
    """How far siblings that are decided alike are made one."""

    smallest: int
    everything: bool
    notable: Callable[[Row], bool]

    def lines(self, members: list[_Node], path: tuple[str, ...]) -> Iterator[_Line]:
        """The lines for places of one kind that are shown as one."""
        first = members[0]
        if first.agrees:
            yield _down_to_the_fork(members, path)
            return
        for i in range(len(first.rows)):
            yield path, [member.rows[i] for member in members]
        last: list[_Line] = []
        for steps in self.groups(first.children):
            step = _exact_step(steps, len(first.children))
            below = [member.children[step] for member in members for step in steps]
            if step is None:
                step = f" ({len(steps)} of {len(first.children)})"
                last.extend(self.lines(below, (*path, step)))
            else:
                yield from self.lines(below, (*path, step))
        yield from last

    def groups(self, children: dict[str, _Node]) -> list[list[str]]:
        """The steps to the children, those together that are shown as one."""
        alike: dict[int, list[str]] = {}
        for step, child in children.items():
            alike.setdefault(child.kind, []).append(step)
        found = []
        for steps in alike.values():
            child = children[steps[0]]
            quiet = child.agrees and not self.notable(next(child.leaves()))
            if _exact_step(steps, len(children)) is not None or (
                len(steps) >= self.smallest and (quiet or self.everything)
            ):
                found.append(steps)
            else:
                found.extend(_runs(steps))
        order = {step: i for i, step in enumerate(children)}
        return sorted(found, key=lambda steps: order[steps[0]])


def _down_to_the_fork(members: list[_Node], path: tuple[str, ...]) -> _Line:
    """One line for agreeing places, its path as long as it is the same for all."""
    while (
        len({tuple(member.children) for member in members}) == 1
        and len(members[0].children) == 1
        and not any(member.rows for member in members)
    ):
        (step,) = members[0].children
        members = [member.children[step] for member in members]
        path = (*path, step)
    return path, [row for member in members for row in member.leaves()]


def _runs(steps: list[str]) -> list[list[str]]:
    """Steps cut where one is not the index after the one before it."""
    runs: list[list[str]] = []
    for step in steps:
        if runs and _index(step) == _index(runs[-1][-1]) + 1 > 0:
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs


def _exact_step(steps: list[str], total: int) -> str | None:
    """One step that names these children and no others, if there is one."""
    if len(steps) == 1:
        return steps[0]
    if len(steps) == total:
        return "[:]"
    if len(_runs(steps)) == 1:
        return f"[{_index(steps[0])}:{_index(steps[-1]) + 1}]"
    return None


def _index(step: str) -> int:
    """The index in a step such as `[3]`, or -1."""
    return int(step[1:-1]) if re.fullmatch(r"\[\d+\]", step) else -1


def _one_row(path: tuple[str, ...], leaves: Sequence[Row], count: int) -> Row:
    """One row for many leaves: what they have in common, and how many they are."""
    columns = zip(*(row.cells for row in leaves), strict=True)
    cells = [column[0] if len(set(column)) == 1 else "" for column in columns]
    if len(leaves) > 1:
        common = cells[count]
        cells[count] = (
            f"{len(leaves)} x {common}" if common else f"{len(leaves)} leaves"
        )
    return Row(path, tuple(cells))
