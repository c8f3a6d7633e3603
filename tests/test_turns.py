"""One trace for a key at a time, and no two threads that wait for each other."""

import threading

import pytest

from staged_axes._programs.turns import Turns


def in_thread(work):
    """Runs it in a thread of its own, which ends with the tests."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_others_wait():
    """A second thread has the key once the first one is done with it."""
    turns, order = Turns(), []
    began, go_on = threading.Event(), threading.Event()

    def first():
        with turns.take("key"):
            began.set()
            go_on.wait(60)
            order.append("first")

    def second():
        began.wait(60)
        with turns.take("key"):
            order.append("second")

    threads = [in_thread(first), in_thread(second)]
    began.wait(60)
    threads[1].join(0.2)
    assert order == []
    go_on.set()
    for thread in threads:
        thread.join(60)
    assert order == ["first", "second"]


def test_other_keys_do_not_wait():
    """While one thread has a key, another one has another."""
    turns, done = Turns(), threading.Event()

    def work():
        with turns.take("other"):
            done.set()

    with turns.take("key"):
        in_thread(work)
        assert done.wait(60)


def test_a_thread_may_take_more_than_one():
    """Within its turn a thread goes ahead, with the same key and with another's."""
    turns = Turns()
    barrier = threading.Barrier(2)
    done = []

    def work(own, other):
        with turns.take(own):
            barrier.wait(60)
            with turns.take(other), turns.take(own):
                done.append(own)

    threads = [
        in_thread(lambda: work("a", "b")),
        in_thread(lambda: work("b", "a")),
    ]
    for thread in threads:
        thread.join(60)
    assert sorted(done) == ["a", "b"]


def test_a_turn_ends_with_an_exception():
    """Whoever waits goes on, and what was raised is not lost."""
    turns = Turns()

    def fails():
        with turns.take("key"):
            int("trace")

    with pytest.raises(ValueError, match="trace"):
        fails()
    with turns.take("key"):
        pass
