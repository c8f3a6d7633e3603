"""Whole texts of errors, one for each kind; only file and line are replaced."""

# A text is kept as it is printed, however long its lines.
# ruff: noqa: B018, D103, E501

import dataclasses
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import staged_axes as sa

X = np.zeros((3, 4), np.float32)


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["radius", "drag"],
    meta_fields=["label"],
)
@dataclasses.dataclass
class Wheel:
    radius: Any
    drag: Any
    label: Any = dataclasses.field(default="front", metadata={"static": True})


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["mass", "wheel", "layers"],
    meta_fields=["name"],
)
@dataclasses.dataclass
class Car:
    mass: Any
    wheel: Wheel
    layers: Any
    name: str = dataclasses.field(default="red", metadata={"static": True})


@jax.tree_util.register_pytree_node_class
class Strict:
    """A class that takes arrays alone."""

    def __init__(self, x):
        self.x = jnp.asarray(x)
        if not self.x.ndim:
            message = "x is an array"
            raise TypeError(message)

    def tree_flatten(self):
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def car(batch=(3,), drag=None):
    """A car with a mass and a radius that are batched."""

    def array(*shape):
        return np.zeros(shape, np.float32)

    return Car(
        array(*batch),
        Wheel(array(*batch, 4), array(4) if drag is None else drag),
        [{"w": array(*batch, 2), "b": array(2)} for _ in range(2)],
    )


def pull(cart, force=0.0):
    """A function to map."""
    return force


def spec(default=0):
    """A builder."""
    return sa.AxesBuilder(default=default)


CASES = []


def says(text):
    """Marks a function that raises an error with this text."""

    def keep(fn):
        CASES.append(pytest.param(fn, text, id=fn.__name__))
        return fn

    return keep


# Recording ----------------------------------------------------------------------


@says("""\
RecordError: an axis is an int or None, and spec.wheel.drag was given a bool.

  spec.wheel.drag  bool

  Fix: spec.wheel.drag = 0 for mapped, spec.wheel.drag = None for shared
""")
def axis_bool():
    spec().wheel.drag = True


@says("""\
RecordError: an axis is an int or None, and spec.wheel.drag was given a float.

  spec.wheel.drag  float

  Fix: spec.wheel.drag = 0, or None for shared
""")
def axis_float():
    spec().wheel.drag = 1.0


@says("""\
RecordError: an axis is an int or None, and spec.wheel.drag was given an f32[3,4].

  spec.wheel.drag  f32[3,4]

  Fix: spec.wheel.drag = 0, or None for shared
""")
def axis_array():
    spec().wheel.drag = X


@says("""\
RecordError: an axis is an int or None, and spec.wheel.drag was given a tuple.

  spec.wheel.drag  tuple

  Fix: to map over two axes, map twice: sa.vmap(sa.vmap(fn, ...), ...); for the items of a container: spec.wheel.drag[0] = ...
""")
def axis_tuple():
    spec().wheel.drag = (0, 1)


@says("""\
RecordError: an axis is an int or None, and spec.wheel was given a dict.

  spec.wheel  dict

  Fix: spec.wheel = sa.AxesBuilder.from_tree({...})
""")
def axis_dict():
    spec().wheel = {"drag": 0}


@says("""\
RecordError: an axis is an int or None, and spec.wheel was given a function len.

  spec.wheel  function len

  Fix: spec.wheel = sa.per_leaf(fn) decides from each leaf
""")
def axis_function():
    spec().wheel = len


@says("""\
RecordError: an axis is an int or None, and spec.wheel was given an Undecided.

  spec.wheel  Undecided

  Fix: to take a decision back:  del spec.wheel
""")
def axis_undecided():
    spec().wheel = sa.UNDECIDED


@says("""\
RecordError: an axis is an int or None, and sa.rule(spec, '**/drag') was given a bool.

  sa.rule(spec, '**/drag')  bool

  Fix: axis = 0 for mapped, axis = None for shared
""")
def axis_of_a_rule():
    sa.rule(spec(), "**/drag", True)


@says("""\
RecordError: an axis is an int or None, and default was given a float.

  default  float

  Fix: default = 0, or None for shared
""")
def axis_of_a_default():
    sa.AxesBuilder(default=1.5)


@says("""\
RecordError: an axis is an int or None, and spec['wheel']['drag'] was given a str.

  spec['wheel']['drag']  str

  Fix: spec['wheel']['drag'] = 0, or None for shared
""")
def axis_of_a_tree():
    sa.AxesBuilder.from_tree({"wheel": {"drag": "0"}})


@says("""\
RecordError: an axis is an int or None, and in_axes[1] was given a bool.

  in_axes[1]  bool

  Fix: in_axes[1] = 0 for mapped, in_axes[1] = None for shared
""")
def axis_of_an_entry():
    sa.vmap(len, in_axes=(0, True))


@says("""\
RecordError: AxesBuilder takes the class of the value, not an int.

  sa.AxesBuilder(...)  int

  Fix: sa.AxesBuilder(default=0)
""")
def class_that_is_none():
    sa.AxesBuilder(0)


@says("""\
RecordError: per_leaf takes a function, not an int.

  sa.per_leaf(...)  int

  Fix: sa.per_leaf(lambda x: 0 if ... else None)
""")
def late_without_a_function():
    spec().x = sa.per_leaf(0)


@says("""\
RecordError: spec.wheel.drag is a place, not a value, and cannot be compared: what is there is known when a value is bound.

  spec.wheel.drag  a place  compared

  Fix: spec.wheel.drag = 0 decides an axis; sa.per_leaf(fn) and sa.from_node(fn) decide from the data
""")
def place_used_as_a_value():
    if spec().wheel.drag > 0:
        pass


@says("""\
RecordError: spec is a builder, not a value, and cannot be iterated over: what is there is known when a value is bound.

  spec  a builder  iterated over

  Fix: spec.x = 0 decides an axis; sa.per_leaf(fn) and sa.from_node(fn) decide from the data
""")
def builder_used_as_a_value():
    list(spec())


@says("""\
RecordError: spec.y is a place, not an axis: nothing is known of it before a value is bound.

  spec.x  a place

  Fix: spec.x = 0, or None for shared
""")
def place_used_as_an_axis():
    made = spec()
    made.x = made.y


@says("""\
RecordError: a list cannot name a place: it is no key, index or slice.

  spec[...]  list

  Fix: spec["name"], spec[2], spec[:] or spec.name
""")
def item_that_names_nothing():
    spec()[[1]] = 0


@says("""\
RecordError: the builder uses the name 'bind' itself.

  spec.bind  the method bind()

  Fix: spec['bind'] = ..., or below it  sa.at(spec, 'bind').x = ...
""")
def own_name():
    spec().bind = 0


@says("""\
RecordError: 'layers[2.w' is no path into a value (column 9).

  layers[2.w  cannot be read from column 9 on

  Fix: "layers[2].w", "params['world'].mass" or "[0].x"
""")
def path_that_is_none():
    sa.record(spec(), "layers[2.w", 0)


@says("""\
RecordError: a path is a text, not an int.

  path  int

  Fix: "layers[2].w", "params['world'].mass" or "[0].x"
""")
def path_that_is_no_text():
    sa.record(spec(), 2, 0)


@says("""\
RecordError: decisions are recorded in a builder or a place of one, not in a dict.

  spec  dict

  Fix: spec = sa.AxesBuilder(default=0)
""")
def no_builder():
    sa.record({}, "x", 0)


@says("""\
RecordError: a rule's pattern is a glob, a compiled regular expression, a function or an nnx filter, not an int.

  sa.rule(spec, ...)  int

  Fix: sa.rule(spec, "**/kernel", 0)
""")
def pattern_that_is_none():
    sa.rule(spec(), 0, 0)


@says("""\
RecordError: a rule decides an axis; a builder is mounted at a place.

  sa.rule(spec, '**')  a builder

  Fix: spec.place = other_builder
""")
def builder_in_a_rule():
    sa.rule(spec(), "**", spec())


@says("""\
FieldError: Wheel has no field 'darg'.

  spec.wheel.darg  Wheel has the fields drag, radius

  Fix: did you mean  spec.wheel.drag ?
""")
def unknown_name():
    sa.AxesBuilder(Car).wheel.darg = 0


@says("""\
FieldError: Wheel.label is a static field: it is no leaf and has no axis.

  spec.wheel.label  static field

  Fix: remove the line: static fields are never mapped and need no decision
""")
def static_name():
    sa.AxesBuilder(Car).wheel.label = 0


@says("""\
RecordError: a builder cannot be mounted inside itself.

  spec.x  this builder

  Fix: mount another builder, or a copy.copy() of this one
""")
def mount_in_itself():
    made = spec()
    made.x = made


@says("""\
RecordError: a stage needs a name.

  spec.stage(...)  builtin_function_or_method

  Fix: with spec.stage("sysid"): ...  or  @spec.stage("sysid")
""")
def stage_without_a_name():
    spec().stage(len)


@says("""\
RecordError: there is no decision of this stage to take back.

  spec.x  undecided

  Fix: remove  del spec.x
""")
def nothing_to_take_back():
    del spec().x


@says("""\
RecordError: there is no decision of this stage to take back.

  spec.x.y = 0  first  file:n

  Fix: with spec.stage("late", override=True): del spec.x
""")
def another_stage_to_take_back():
    made = spec()
    with made.stage("first"):
        made.x.y = 0
    del made.x


@says("""\
ConflictError: spec.wheel.drag is decided differently by two stages.

  spec.wheel.drag = 0     randomise  file:n
  spec.wheel.drag = None  calibrate  file:n

  Fix: remove one, or let the later win:  with spec.stage('calibrate', override=True):
""")
def conflict():
    made = spec()
    with made.stage("randomise"):
        made.wheel.drag = 0
    with made.stage("calibrate"):
        made.wheel.drag = None


@says("""\
ConflictError: spec['wheel']['drag'] is decided differently by two stages.

  spec.wheel.drag = 0                randomise  file:n
  spec['wheel']['drag'] = sa.STATIC  file:n

  Fix: remove one, or let the later win:  with spec.stage('late', override=True):
""")
def conflict_outside_of_stages():
    made = spec()
    with made.stage("randomise"):
        made.wheel.drag = 0
    made["wheel"]["drag"] = sa.STATIC


@says("""\
ConflictError: the builders have different defaults.

  default=0     file:n
  default=None  file:n

  Fix: give all of them one default, or sa.UNDECIDED to all but one
""")
def merge_of_defaults():
    sa.merge(spec(0), spec(None))


@says("""\
RecordError: merge takes builders, not None.

  sa.merge(...)  None

  Fix: sa.merge(spec, other)
""")
def merge_of_something_else():
    sa.merge(spec(), None)


# Binding ------------------------------------------------------------------------


@says("""\
BindError: 1 decision points at something this value does not have.

  spec.wheel.darg = 0  value.wheel is a Wheel with drag, radius, label (static)  file:n

  Fix: did you mean  spec.wheel.drag = 0 ?
""")
def unknown_field():
    made = spec(None)
    made.wheel.darg = 0
    made.mass = 0
    made.bind(car())


@says("""\
BindError: 4 decisions point at something this value does not have.

  spec.qqq.x = 0                        value is a Car with mass, wheel, layers, name (static)  file:n
  spec.layers[7].w = 1                  value.layers is a list of 2                             file:n
  spec.layers[:].ww = sa.per_leaf(len)  value.layers[:] is a dict with w, b                     file:n
  spec.wheel.drag.x = 0                 value.wheel.drag is f32[4]                              file:n

  Fix: check the path; if it may be absent:  spec.qqq.x = sa.optional(0)
       check the path; if it may be absent:  spec.layers[7].w = sa.optional(1)
       did you mean  spec.layers[:].w = sa.per_leaf(len) ?
""")
def unknown_places():
    made = spec(None)
    made.mass = 0
    made.qqq.x = 0
    made.layers[7].w = 1
    made.layers[:].ww = sa.per_leaf(len)
    made.wheel.drag.x = 0
    made.bind(car())


@says("""\
BindError: 2 decisions point at static fields.

  spec.name = 0            value.name is a static field of Car           file:n
  spec.wheel.label = None  value.wheel.label is a static field of Wheel  file:n

  Fix: remove  spec.name = 0  (static data is no leaf and has no axis)
       remove  spec.wheel.label = None  (static data is no leaf and has no axis)
""")
def static_fields():
    made = spec(None)
    made.mass = 0
    made.name = 0
    made.wheel.label = None
    made.bind(car())


@says("""\
BindError: 3 rules match no leaf.

  sa.rule(spec, '**/darg', 0)                    matches no leaf  file:n
  sa.rule(spec, 'drag', 0)                       matches no leaf  file:n
  sa.rule(spec.layers, re.compile('qqq'), None)  matches no leaf  file:n

  Fix: did you mean  sa.rule(spec, '**/drag', 0) ?
       check the pattern; if it may match nothing:  sa.rule(spec.layers, re.compile('qqq'), sa.optional(None))
""")
def idle_rules():
    made = spec(None)
    made.mass = 0
    sa.rule(made, "**/darg", 0)
    sa.rule(made, "drag", 0)
    sa.rule(made.layers, re.compile("qqq"), None)
    made.bind(car())


@says("""\
BindError: nobody decided about 3 leaves.

  value.mass          f32[3]    nobody decided  default  file:n
  value.wheel.radius  f32[3,4]  nobody decided  default  file:n
  value.wheel.drag    f32[4]    nobody decided  default  file:n

  Fix: spec.mass = 0, or None for shared; or a default for the builder
       spec.wheel.radius = 0, or None for shared; or a default for the builder
       spec.wheel.drag = 0, or None for shared; or a default for the builder
""")
def undecided_leaves():
    made = sa.AxesBuilder(default=sa.UNDECIDED)
    made.layers = None
    made.bind(car())


@says("""\
BindError: 3 leaves do not have the axis on which they are mapped.

  value.mass          f32[3]    axis 1, but its shape is (3,)     file:n
  value.wheel.radius  f32[3,4]  axis -3, but its shape is (3, 4)  file:n
  value.wheel.drag    f32[4]    axis -3, but its shape is (4,)    file:n

  Fix: to share it:  spec.mass = None ; to map it, take an axis from -1 to 0
       to share it:  spec.wheel.radius = None ; to map it, take an axis from -2 to 1
       to share it:  spec.wheel.drag = None ; to map it, take an axis from -1 to 0
""")
def missing_axes():
    made = spec(None)
    made.mass = 1
    made.wheel = -3
    made.bind(car())


@says("""\
BindError: 1 leaf does not have the axis on which it is mapped.

  value['dt']  float  axis 0, but its shape is ()  default  file:n

  Fix: to share it:  spec['dt'] = None ; to map it, give it a batch axis
""")
def axis_of_a_number():
    spec().bind({"x": X, "dt": 0.1})


@says("""\
BindError: 2 leaves are mapped but are no arrays.

  value['act']   function relu  axis 0, but it is no array  default  file:n
  value['name']  str            axis 0, but it is no array  default  file:n

  Fix: to share it:  spec['act'] = None
       to share it:  spec['name'] = None
""")
def axis_of_a_text():
    spec().bind({"x": X, "name": "rear", "act": jax.nn.relu})


@says("""\
BindError: the mapped leaves do not agree on the batch size: 3 differ.

  value.mass            f32[3]  axis 0 has size 3                     default  file:n
  value.wheel.drag      f32[4]  axis 0 has size 4, but 3 in 4 leaves  default  file:n
  value.layers[0]['b']  f32[2]  axis 0 has size 2, but 3 in 4 leaves  default  file:n
  value.layers[1]['b']  f32[2]  axis 0 has size 2, but 3 in 4 leaves  default  file:n

  Fix: is value.wheel.drag the same for all 3? Then  spec.wheel.drag = None ; else give it that size
       is value.layers[0]['b'] the same for all 3? Then  spec.layers[0]['b'] = None ; else give it that size
       is value.layers[1]['b'] the same for all 3? Then  spec.layers[1]['b'] = None ; else give it that size
""")
def sizes():
    spec().bind(car())


@says("""\
BindError: 1 mapped leaf does not have the size that axis_size gives.

  value.mass  f32[3]  axis 0 has size 3, but axis_size=8  file:n

  Fix: is value.mass the same for all 8? Then  spec.mass = None ; else give it that size
""")
def size_that_is_given():
    made = spec(None)
    made.mass = 0
    made.bind(car(), axis_size=8)


@says("""\
BindError: no leaf is mapped, so the batch size is not known.

  value  5 leaves, shared  default  file:n
  value  2 leaves, shared  sysid  file:n

  Fix: map something (is a path misspelt?), or say how many there are:  axis_size=n
""")
def nothing_mapped():
    made = spec(None)
    with made.stage("sysid"):
        made.wheel = None
    made.bind(car())


@says("""\
BindError: 4 leaves do not have the shape that the template asks for.

  value.wheel.radius    f32[3,4]  shared: the template (4,) asks for (4,)    default  file:n
  value.wheel.drag      f32[3,5]  axis 0: the template (4,) asks for (3, 4)  file:n
  value.layers[0]['w']  f32[3,2]  shared: the template (2,) asks for (2,)    default  file:n
  value.layers[1]['w']  f32[3,2]  shared: the template (2,) asks for (2,)    default  file:n

  Fix: it has a batch axis: spec.wheel.radius = 0
       make its shape (3, 4)
       it has a batch axis: spec.layers[0]['w'] = 0
""")
def shapes_of_the_template():
    made = spec(None)
    made.mass = made.wheel.drag = 0
    made.bind(car(drag=np.zeros((3, 5), np.float32)), like=car(()))


@says("""\
BindError: value and template differ in 2 leaves.

  value['y']  f32[3,4]  the template has no such leaf  default  file:n
  value['z']  no such leaf  the template has f32[3,4] there

  Fix: give a template of the value's structure
""")
def structure_of_the_template():
    made = spec(None)
    made.x = 0
    made.bind({"x": X, "y": X}, like={"x": X[0], "z": X})


@says("""\
BindConflictError: 1 place is decided differently by two stages.

  spec.layers[1].w = 0      first  file:n
  spec.layers[-1].w = None  second  file:n

  Fix: remove one, or let the later win:  with spec.stage('second', override=True):
""")
def conflict_of_two_spellings():
    made = spec(None)
    with made.stage("first"):
        made.layers[1].w = 0
    with made.stage("second"):
        made.layers[-1].w = None
    made.bind(car())


@says("""\
BindConflictError: 1 place is decided differently by two stages.

  sa.rule(spec, '**/w', 0)           first  file:n
  sa.rule(spec, 'layers/*/*', None)  second  file:n

  Fix: remove one, or let the later win:  with spec.stage('second', override=True):
""")
def conflict_of_rules():
    made = spec(None)
    with made.stage("first"):
        sa.rule(made, "**/w", 0)
    with made.stage("second"):
        sa.rule(made, "layers/*/*", None)
    made.bind(car())


@says("""\
BindError: 3 places got something that is no axis from a function.

  value.layers        list      the function gave bool, not an axis   file:n
  value.wheel.radius  f32[3,4]  the function gave tuple, not an axis  file:n
  value.wheel.drag    f32[4]    the function gave tuple, not an axis  file:n

  Fix: let the function give an int, or None for shared
""")
def function_that_gives_no_axis():
    made = spec(None)
    made.wheel = sa.per_leaf(lambda leaf: leaf.shape)
    made.layers = sa.from_node(lambda node: True)
    made.bind(car())


@says("""\
BindError: 1 static field holds a tracer.

  value.label  a static field that holds a tracer  static data must be concrete

  Fix: make it a leaf, or build the value outside of the transformation
""")
def tracer_in_a_static_field():
    jax.jit(lambda x: spec().bind(Wheel(X, X, label=x)))(1.0)


@says("""\
BindError: 1 decision points at something this value does not have; 1 decision points at a static field; 1 rule matches no leaf; 1 leaf does not have the axis on which it is mapped; the mapped leaves do not agree on the batch size: 1 differs.

  spec.wheel.darg = 0            value.wheel is a Wheel with drag, radius, label (static)  file:n
  spec.name = 0                  value.name is a static field of Car                       file:n
  sa.rule(spec, '**/kernel', 0)  matches no leaf                                           file:n
  value.mass          f32[3]    axis 3, but its shape is (3,)       file:n
  value.wheel.radius  f32[3,4]  axis 0 has size 3                   default  file:n
  value.wheel.drag    f32[4]    axis 0 has size 4, but 3 in 1 leaf  default  file:n

  Fix: did you mean  spec.wheel.drag = 0 ?
       remove  spec.name = 0  (static data is no leaf and has no axis)
       check the pattern; if it may match nothing:  sa.rule(spec, '**/kernel', sa.optional(0))
""")
def many_kinds():
    made = spec()
    made.wheel.darg = 0
    made.name = 0
    sa.rule(made, "**/kernel", 0)
    made.mass = 3
    made.layers = None
    made.bind(car())


@says("""\
BindError: 20 decisions point at something this value does not have; the mapped leaves do not agree on the batch size: 19 differ.

  spec['x0'].y = 0  value is a dict with z0, z1, z10, z11, z12, z13 and 14 more  file:n
  spec['x1'].y = 0  value is a dict with z0, z1, z10, z11, z12, z13 and 14 more  file:n
  spec['x2'].y = 0  value is a dict with z0, z1, z10, z11, z12, z13 and 14 more  file:n
  spec['x3'].y = 0  value is a dict with z0, z1, z10, z11, z12, z13 and 14 more  file:n
  value['z0']   f32[2]   axis 0 has size 2                    default  file:n
  value['z1']   f32[3]   axis 0 has size 3, but 2 in 1 leaf   default  file:n
  value['z10']  f32[12]  axis 0 has size 12, but 2 in 1 leaf  default  file:n
  value['z11']  f32[13]  axis 0 has size 13, but 2 in 1 leaf  default  file:n
  and 32 more

  Fix: check the path; if it may be absent:  spec['x0'].y = sa.optional(0)
       check the path; if it may be absent:  spec['x1'].y = sa.optional(0)
       is value['z1'] the same for all 2? Then  spec['z1'] = None ; else give it that size
""")
def many_of_many_kinds():
    made = spec()
    for i in range(20):
        made[f"x{i}"].y = 0
    made.bind({f"z{i}": np.zeros(i + 2, np.float32) for i in range(20)})


@says("""\
BindError: Strict cannot be built with axes in the place of arrays.

  bound.in_axes  TypeError: x is an array

  Fix: bound.vmap(fn) or bound.batch(fn): they build no object with axes
""")
def class_that_takes_no_axes():
    spec().bind(Strict(X)).in_axes


# Mapping ------------------------------------------------------------------------


@says("""\
BatchError: vmap maps a function, not an int.

  fn  int

  Fix: sa.vmap(fn, in_axes=...)(value)
""")
def mapped_without_a_function():
    sa.vmap(3)


@says("""\
RecordError: in_axes is an axis, a tuple with an entry for each argument, a dict by parameter name, or a builder, not a str.

  in_axes  str

  Fix: for the axes tree of the only argument:  in_axes=(axes,)
""")
def in_axes_of_another_kind():
    sa.vmap(pull, in_axes="x")


@says("""\
RecordError: in_axes[0] is the place spec.x, not a builder.

  in_axes[0]  spec.x

  Fix: give the builder itself, or another builder for this argument
""")
def in_axes_of_a_place():
    sa.vmap(pull, in_axes=(spec().x,))


@says("""\
RecordError: in_axes is a dict, so its keys are parameter names, and 2 are not: 'crat', 'qqq'.

  in_axes['crat']  the parameters are cart, force
  in_axes['qqq']   the parameters are cart, force

  Fix: did you mean 'cart'?
       for one argument that is a dict:  in_axes=({...},)
""")
def in_axes_by_wrong_names():
    sa.vmap(pull, in_axes={"crat": 0, "qqq": 1})


@says("""\
BindError: in_axes has 1 entry for 2 positional arguments: cart, force.

  force  has no entry in in_axes

  Fix: in_axes=(0, 0), or by name: in_axes={'cart': 0, ...}
""")
def too_few_entries():
    sa.vmap(pull, in_axes=(0,))(X, X)


@says("""\
BindError: in_axes has 2 entries for 1 positional argument: cart.

  in_axes[1]  force was given by keyword

  Fix: in_axes=(0,), or by name: in_axes={'cart': 0, ...}
""")
def too_many_entries():
    sa.vmap(pull, in_axes=(0, 0))(X, force=X)


@says("""\
BindError: in_axes is one builder, for the only argument, and there are 2: cart, force.

  force  has no entry in in_axes

  Fix: in_axes=(spec, 0), or by name: in_axes={'cart': spec, ...}
""")
def one_builder_for_two():
    sa.vmap(pull, in_axes=spec())(X, X)


@says("""\
BatchError: axis_size is the number of examples: an int, 0 or more.

  axis_size  -1

  Fix: axis_size=32, or leave it out where a leaf is mapped
""")
def axis_size_that_is_none():
    sa.vmap(pull, axis_size=-1)


@says("""\
BindError: the mapped leaves do not agree on the batch size: 1 differs.

  cart   f32[3,4]  axis 0 has size 3                   in_axes[0]=0  file:n
  force  f64[4,5]  axis 1 has size 5, but 3 in 1 leaf  in_axes[1]=1  file:n

  Fix: is force the same for all 3? Then  in_axes[1] = None ; else give it that size
""")
def sizes_of_two_arguments():
    sa.vmap(pull, in_axes=(0, 1))(X, np.zeros((4, 5)))


@says("""\
BindError: 1 leaf does not have the axis on which it is mapped.

  force  float  axis 0, but its shape is ()  in_axes=0  file:n

  Fix: to share it:  in_axes[1] = None ; to map it, give it a batch axis
""")
def axis_of_an_argument():
    sa.vmap(pull)(X, 0.5)


@says("""\
BindError: 1 leaf does not have the axis on which it is mapped.

  force  float  axis 0, but its shape is ()  no entry in in_axes  file:n

  Fix: to share it:  in_axes['force'] = None ; to map it, give it a batch axis
""")
def axis_of_a_keyword():
    sa.vmap(pull, in_axes=(0,))(X, force=0.5)


@says("""\
BindError: 1 leaf does not have the axis on which it is mapped.

  force['gain']  float  axis 0, but its shape is ()  in_axes[1]=0  file:n

  Fix: to share it:  spec = sa.AxesBuilder(default=0); spec['gain'] = None; in_axes[1] = spec ; to map it, give it a batch axis
""")
def axis_inside_an_argument():
    sa.vmap(pull, in_axes=(0, 0))(X, {"gain": 0.5, "x": X})


@says("""\
BindError: 1 leaf does not have the axis on which it is mapped.

  force['gain']  float  axis 0, but its shape is ()  file:n

  Fix: to share it:  in_axes[1]['gain'] = None ; to map it, give it a batch axis
""")
def axis_in_a_tree():
    sa.vmap(pull, in_axes=(0, {"gain": 0, "x": 0}))(X, {"gain": 0.5, "x": X})


@says("""\
BindError: 1 leaf does not have the axis on which it is mapped.

  force['gain']  float  axis 0, but its shape is ()  in_axes[1]  file:n

  Fix: to share it:  let in_axes[1] give None for it ; to map it, give it a batch axis
""")
def axis_by_a_function():
    sa.vmap(pull, in_axes=(0, lambda leaf: 0))(X, {"gain": 0.5, "x": X})


@says("""\
BindError: 1 decision points at something this value does not have; nobody decided about 1 leaf.

  in_axes[1]['c'] = None  force is a dict with a, b  file:n
  force['b']  f32[3,4]  nobody decided  in_axes[1]  file:n

  Fix: check the path; if it may be absent:  in_axes[1]['c'] = sa.optional(None)
       in_axes[1]['b'] = 0, or None for shared
""")
def tree_that_does_not_fit():
    sa.vmap(pull, in_axes=(0, {"a": 0, "c": None}))(X, {"a": X, "b": X})


@says("""\
BindError: no leaf is mapped, so the batch size is not known.

  cart   1 leaf, shared  in_axes[0]=None  file:n
  force  1 leaf, shared  in_axes[1]=None  file:n

  Fix: map something (is a path misspelt?), or say how many there are:  axis_size=n
""")
def all_arguments_shared():
    sa.vmap(pull, in_axes=(None, None))(X, X)


@says("""\
BindError: no leaf is mapped, so the batch size is not known.

  arguments  no leaf

  Fix: map something (is a path misspelt?), or say how many there are:  axis_size=n
""")
def no_arguments():
    sa.vmap(lambda: 1.0)()


@says("""\
BatchError: the output axes do not fit the output, in 1 place.

  output['y']  f32[4] for each example  shared, but it varies over the batch  out_axes=None  file:n

  Fix: map it: out_axes=0, or let out_axes=sa.AUTO find out
""")
def shared_output_that_varies():
    sa.vmap(lambda x: {"y": x, "z": 1.0}, out_axes=None)(X)


@says("""\
BatchError: the output axes do not fit the output, in 2 places.

  output['y']  f32[4] for each example  axis 2, but with the batch it has 2 axes  out_axes=2  file:n
  output['z']  float for each example   axis 2, but with the batch it has 1 axis  out_axes=2  file:n

  Fix: take an axis from -2 to 1, of the output with the batch
       take an axis from -1 to 0, of the output with the batch
""")
def output_axis_out_of_range():
    sa.vmap(lambda x: {"y": x, "z": 1.0}, out_axes=2)(X)


@says("""\
BatchError: the output axes do not fit the output, in 2 places.

  out_axes['z'] = 0  output is a dict with y  file:n
  output['y']  f32[4]  nobody decided  out_axes  file:n

  Fix: check the path; if it may be absent:  out_axes['z'] = sa.optional(0)
       out_axes['y'] = 0, or None for shared
""")
def output_tree_that_does_not_fit():
    sa.vmap(lambda x: {"y": x}, out_axes={"z": 0})(X)


@says("""\
BatchError: the output axes do not fit the output, in 1 place.

  output['z']  f32[4]  nobody decided  default  file:n

  Fix: spec['z'] = 0, or None for shared; or a default for the builder
""")
def output_that_is_undecided():
    made = sa.AxesBuilder(default=sa.UNDECIDED)
    made.y = 0
    sa.vmap(lambda x: {"y": x, "z": x}, out_axes=made)(X)


@pytest.mark.parametrize(("fn", "expected"), CASES)
def test_text(fn, expected):
    """The whole text says what is wrong, where, who decided, and what to type."""
    with pytest.raises(sa.StagedAxesError, match=r"\.\n\n  ") as e:
        fn()
    text = re.sub(r"\S*test_messages\.py:\d+", "file:n", str(e.value))
    assert f"{type(e.value).__name__}: {text}\n" == expected
    assert len(str(e.value)) < 2000
