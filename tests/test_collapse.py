"""Many rows become the few that tell all of it."""

import pytest

from staged_axes._words.collapse import Row, collapse


def leaf(text, axis="None", array="f32[]", by=""):
    """A row from a path whose steps are separated by blanks."""
    return Row(("value", *text.split()), (array, axis, by))


def lines(rows, limit=24):
    """The collapsed rows as text; what is mapped is notable."""
    found = collapse(
        rows, limit, decision=(1,), notable=lambda row: row.cells[1] != "None"
    )
    return ["  ".join(["".join(row.path), *row.cells]).rstrip() for row in found]


def test_few_rows_stay():
    """As many rows as the limit allows are shown as they are."""
    rows = [leaf(f".x [{i}]") for i in range(4)]
    assert collapse(rows, 4, decision=(1,)) == rows


def test_one_more_row_than_the_limit():
    """A whole value that is decided alike is one row."""
    rows = [leaf(f".x [{i}]") for i in range(5)]
    assert collapse(rows, 4, decision=(1,)) == [
        Row(("value", ".x"), ("5 x f32[]", "None", ""))
    ]


def test_no_rows():
    """A value without leaves has no rows."""
    assert collapse([], 0, decision=(1,)) == []


def test_subtrees_that_agree():
    """The largest subtree whose leaves agree is one row, mapped ones too."""
    rows = [
        leaf(".wheel .drag", "0"),
        leaf(".wheel .tyre .grip", "0", "f32[3]"),
        leaf(".body .mass", "None"),
        leaf(".body .pose .x", "0"),
        leaf(".body .pose .y", "0"),
    ]
    assert lines(rows, 4) == [
        "value.wheel  2 leaves  0",
        "value.body.mass  f32[]  None",
        "value.body.pose  2 x f32[]  0",
    ]


def test_model_with_three_mapped_leaves():
    """The mapped leaves of a big flat model stand out, before the rest."""
    mapped = {".f7", ".f50", ".opt .f3"}
    names = [f".f{i}" for i in range(40)]
    names += [f".opt .f{i}" for i in range(10)]
    names += [f".stat .f{i}" for i in range(14)]
    names += [f".f{i}" for i in range(40, 100)]
    rows = [leaf(name, "0" if name in mapped else "None") for name in names]
    assert len(rows) == 124
    assert lines(rows) == [
        "value.f7  f32[]  0",
        "value.opt.f3  f32[]  0",
        "value.opt (9 of 10)  9 x f32[]  None",
        "value.f50  f32[]  0",
        "value (99 of 102)  112 x f32[]  None",
    ]


def test_layers_of_a_network():
    """Children that are decided alike below are one, in the form of a slice."""
    rows = [
        leaf(f".layers [{i}] {name}", axis, array)
        for i in range(1000)
        for name, axis, array in [(".bias", "None", "f32[4]"), (".w", "0", "f32[4,4]")]
    ]
    assert lines(rows) == [
        "value.layers[:].bias  1000 x f32[4]  None",
        "value.layers[:].w  1000 x f32[4,4]  0",
    ]


def test_runs_of_indices():
    """Neighbours that are decided alike are one range; the quiet rest comes last."""
    rows = [leaf(f"[{i}] .w", "0" if i in (3, 4, 7) else "None") for i in range(30)]
    assert lines(rows) == [
        "value[3:5].w  2 x f32[]  0",
        "value[7].w  f32[]  0",
        "value (27 of 30).w  27 x f32[]  None",
    ]


def test_ranges_cover_everything_in_flatten_order():
    """Where ranges say all, nothing is counted."""
    rows = [leaf(f"[{i}]", "0" if i < 20 else "None") for i in range(30)]
    assert lines(rows) == [
        "value[0:20]  20 x f32[]  0",
        "value[20:30]  10 x f32[]  None",
    ]


def test_ranges_give_way_when_there_are_too_many():
    """Rows that are not notable are counted together first, notable ones last."""
    rows = [leaf(f"[{i}]", "0" if i % 10 == 3 else "None") for i in range(40)]
    assert lines(rows, 8) == [
        "value[3]  f32[]  0",
        "value[13]  f32[]  0",
        "value[23]  f32[]  0",
        "value[33]  f32[]  0",
        "value (36 of 40)  36 x f32[]  None",
    ]
    assert lines(rows, 4) == [
        "value (36 of 40)  36 x f32[]  None",
        "value (4 of 40)  4 x f32[]  0",
    ]


def test_fewer_names_the_less_room_there_is():
    """Two quiet siblings lose their names if they must, notable ones after that."""
    rows = [
        leaf(f".{a} .{b}", "0" if b == "x" else "None") for a in "ab" for b in "xyz"
    ]
    rows += [leaf(".c .x", "0"), leaf(".c .y"), leaf(".c .z", "1")]
    rows += [leaf(f".d [{i}]", "None") for i in range(9)]
    assert lines(rows, 10) == [
        "value.a.x  f32[]  0",
        "value.a.y  f32[]  None",
        "value.a.z  f32[]  None",
        "value.b.x  f32[]  0",
        "value.b.y  f32[]  None",
        "value.b.z  f32[]  None",
        "value.c.x  f32[]  0",
        "value.c.y  f32[]  None",
        "value.c.z  f32[]  1",
        "value.d  9 x f32[]  None",
    ]
    assert lines(rows, 9) == [
        "value.a.x  f32[]  0",
        "value.a (2 of 3)  2 x f32[]  None",
        "value.b.x  f32[]  0",
        "value.b (2 of 3)  2 x f32[]  None",
        "value.c.x  f32[]  0",
        "value.c.y  f32[]  None",
        "value.c.z  f32[]  1",
        "value.d  9 x f32[]  None",
    ]
    assert lines(rows, 7) == [
        "value.c.x  f32[]  0",
        "value.c.y  f32[]  None",
        "value.c.z  f32[]  1",
        "value.d  9 x f32[]  None",
        "value (2 of 4).x  2 x f32[]  0",
        "value (2 of 4) (2 of 3)  4 x f32[]  None",
    ]


def test_cut():
    """What is still too much is cut, rows that are not notable first."""
    rows = [leaf(f".x{i}", f"{i}" if i % 2 else "None", by=f"{i}") for i in range(12)]
    found = collapse(
        rows, 3, decision=(1, 2), notable=lambda row: row.cells[1] != "None"
    )
    assert found == [
        leaf(".x1", "1", by="1"),
        leaf(".x3", "3", by="3"),
        leaf(".x5", "5", by="5"),
        Row(("and 9 more",), ("9 x f32[]", "", "")),
    ]


@pytest.mark.parametrize(
    ("arrays", "bys", "expected"),
    [
        (["f32[2]", "f32[2]"], ["a", "a"], ("2 x f32[2]", "0", "a")),
        (["f32[2]", "i32[]"], ["a", "a"], ("2 leaves", "0", "a")),
        (["f32[2]", "f32[2]"], ["a", "b"], ("2 x f32[2]", "0", "")),
    ],
    ids=["all in common", "arrays differ", "others differ"],
)
def test_cells_of_one_row_for_many(arrays, bys, expected):
    """A merged cell is what all have in common; one column counts."""
    rows = [
        leaf(f".x{i}", "0", array, by)
        for i, (array, by) in enumerate(zip(arrays, bys, strict=True))
    ]
    assert [row.cells for row in collapse(rows, 1, decision=(1,))] == [expected]


def test_count_in_another_column():
    """Whoever asks says which column counts."""
    rows = [Row(("value", f".x{i}"), ("0", "f32[]")) for i in range(3)]
    (row,) = collapse(rows, 2, decision=(0,), count=1)
    assert row.cells == ("0", "3 x f32[]")


def test_two_leaves_of_one_path():
    """A class may give two children one key; no leaf is lost."""
    rows = [leaf(".x", "0"), leaf(".x", "None"), leaf(".y", "1"), leaf(".x .z", "2")]
    assert lines(rows, 3) == [
        "value.x  f32[]  0",
        "value.x.z  f32[]  2",
        "value.y  f32[]  1",
        "and 1 more  f32[]  None",
    ]


def test_a_row_above_others_that_agree():
    """A leaf at a place that also has children is counted with them."""
    rows = [leaf(".a .b"), leaf(".c"), leaf(".c .b"), leaf(".d", "0")]
    assert lines(rows, 3) == [
        "value.a.b  f32[]  None",
        "value.c  2 x f32[]  None",
        "value.d  f32[]  0",
    ]
    assert lines(rows, 2) == [
        "value.d  f32[]  0",
        "value (2 of 3)  3 x f32[]  None",
    ]


def test_ten_thousand_rows():
    """A large value prints as few rows as tell all of it."""
    rows = [
        leaf(f".f{i} [{j}] .x{k}", "0" if (i, k) == (3, 2) else "None", f"f32[{k}]")
        for i in range(10)
        for j in range(100)
        for k in range(10)
    ]
    assert lines(rows) == [
        "value.f3[:].x2  100 x f32[2]  0",
        "value.f3[:] (9 of 10)  900 leaves  None",
        "value (9 of 10)  9000 leaves  None",
    ]
