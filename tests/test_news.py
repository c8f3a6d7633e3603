import copy
import pickle
import warnings

import numpy as np
import pytest

import staged_axes as sa


@pytest.fixture
def spec():
    """A builder that maps everything."""
    return sa.AxesBuilder(default=0)


def test_on_bind(spec):
    """The callback gets what `bind` returns, each time."""
    seen = []
    spec.on_bind(seen.append)
    bound = [spec.bind(np.ones(n)) for n in (2, 3)]
    assert [a is b for a, b in zip(seen, bound, strict=True)] == [True, True]


def test_on_bind_ends(spec):
    """After its end a callback is not called, and others still are."""
    first, second = [], []
    stop = spec.on_bind(first.append)
    spec.on_bind(second.append)
    stop()
    stop()
    spec.bind(np.ones(2))
    assert (len(first), len(second)) == (0, 1)


def test_failed_bind_is_not_told(spec):
    """A value that does not fit is not bound."""
    seen = []
    spec.on_bind(seen.append)
    with pytest.raises(sa.BindError, match="batch size"):
        spec.bind([np.ones(2), np.ones(3)])
    assert seen == []


def test_callback_that_raises(spec):
    """It does no harm, the others are called, and one warning names it and its line."""
    seen = []

    def broken(bound):
        raise KeyError(bound.batch_size)

    spec.on_bind(broken)
    spec.on_bind(seen.append)
    with pytest.warns(RuntimeWarning, match=r"(?s)broken raised at .*KeyError: 2") as w:
        assert spec.bind(np.ones(2)).batch_size == 2
    assert w[0].filename == __file__
    assert "test_news.py" in str(w[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec.bind(np.ones(2))
    assert len(seen) == 2


def test_interrupt_in_a_callback_passes(spec):
    """What is no `Exception` is not held back."""

    def interrupt(bound):
        message = "stop"
        raise KeyboardInterrupt(message)

    spec.on_bind(interrupt)
    with pytest.raises(KeyboardInterrupt, match="stop"):
        spec.bind(np.ones(2))


def test_copies_do_not_call_back(spec):
    """A copy of a builder has no callbacks."""
    spec.on_bind(lambda bound: pytest.fail("was called"))
    for other in (
        copy.copy(spec),
        copy.deepcopy(spec),
        pickle.loads(pickle.dumps(spec)),
    ):
        other.bind(np.ones(2))
