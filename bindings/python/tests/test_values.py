# SPDX-License-Identifier: Apache-2.0
"""Ifuncs are values: they are pickled, saved, compared, asked for their signature, and called as Python functions are."""

import copy
import inspect
import logging
import pickle

import numpy as np
import pytest
import threechains as tc
from threechains import _bundle

pytest.importorskip("numba", reason="the extra [numba] is not installed")
PRICES = np.linspace(0, 100, 1001)
ROW = np.dtype([("id", np.int16), ("at", np.float32, (2, 3))], align=True)


@pytest.fixture(scope="module")
def nodes():
    with tc.LocalCluster(2, data={"prices": PRICES}) as cluster:
        yield cluster


@tc.ifunc
def mul(x: np.float64, by: int = 3):
    """Multiplies."""
    return x * by


@tc.ifunc
def above(limit: float, prices: tc.data("prices", np.float64)):
    count, total = 0, 0.0
    for price in prices:
        if price > limit:
            count += 1
            total += price
    return count, total


@tc.ifunc
def histogram(prices: tc.data("prices", np.float64), counts: tc.out(np.int64, 4), width: float = 25.0):
    for price in prices:
        counts[min(int(price / width), 3)] += 1


@tc.ifunc
def middle(rows: tc.array(ROW), weights: tc.array(np.float32) = (0.5, 2.0)) -> tc.array(np.float32):
    weights[0] *= rows[0].at[1, 1]
    return weights


@tc.ifunc
def quiet(x: float):
    tc.log(1, "it runs")


ROWS = np.array([(7, np.arange(6).reshape(2, 3))], ROW)
ALL = [(mul, (1.5,), {"by": 4}), (above, (50.0,), {}), (histogram, (), {"width": 50.0}), (middle, (ROWS,), {}), (quiet, (1.0,), {})]


def saved(ifunc, tmp_path):
    ifunc.save(tmp_path / "saved.ifunc")
    return tc.ifunc.load(tmp_path / "saved.ifunc")


def same(one, other):
    return np.array_equal(one, other) if isinstance(other, np.ndarray) else one == other


# ---- Pickles and files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ifunc, args, named", ALL, ids=lambda item: getattr(item, "name", ""))
def test_a_copy_takes_the_same_arguments_and_gives_the_same_answer(nodes, tmp_path, ifunc, args, named):
    expected = nodes.submit(ifunc, *args, **named).result()
    for again in (pickle.loads(pickle.dumps(ifunc)), copy.deepcopy(ifunc), saved(ifunc, tmp_path)):
        assert again == ifunc and hash(again) == hash(ifunc) and again.content_id == ifunc.content_id
        answer = nodes.submit(again, *args, **named).result()
        assert type(answer) is type(expected) and same(answer, expected)
        assert list(inspect.signature(again).parameters) == list(inspect.signature(ifunc).parameters)
        assert again.__doc__ == ifunc.__doc__ and again.__name__ == ifunc.__name__


def test_ifuncs_of_c_are_pickled(nodes, echo, tmp_path):
    for again in (pickle.loads(pickle.dumps(echo)), saved(echo, tmp_path)):
        assert again == echo and nodes.submit(again, b"x").result() == b"x"
    assert {echo: 1}[pickle.loads(pickle.dumps(echo))] == 1 and echo != mul
    assert tc.Ifunc(mul.bundle) != mul  # the code alone, which takes a payload


def test_a_pickled_ifunc_runs_in_another_process(script, tmp_path):
    cloudpickle = pytest.importorskip("cloudpickle")

    @tc.ifunc
    def local(x: float, by: int = 2):
        return x * by

    (tmp_path / "pickled").write_bytes(pickle.dumps((mul, local)))
    (tmp_path / "cloudpickled").write_bytes(cloudpickle.dumps((mul, local)))
    done = script("""
        import pickle
        import sys
        with tc.LocalCluster(1) as cluster:
            for name in ("pickled", "cloudpickled"):
                mul, local = pickle.load(open(name, "rb"))
                print(cluster.submit(mul, 1.5).result(), cluster.submit(local, by=4, x=1).result(), mul.__doc__, local.__qualname__)
        assert "numba" not in sys.modules
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["4.5 4.0 Multiplies. test_a_pickled_ifunc_runs_in_another_process.<locals>.local"] * 2


def test_one_that_was_loaded_or_unpickled_is_not_called_plainly_and_says_how_it_is(nodes, tmp_path, echo):
    for again in (pickle.loads(pickle.dumps(mul)), saved(mul, tmp_path)):
        with pytest.raises(tc.ArgumentTypeError, match=r"'mul' was loaded or .*; write cluster.submit\(mul, ...\).result\(\)"):
            again(1.5, by=2)
        assert nodes.submit(again, 1.5, by=2).result() == 3.0
    with pytest.raises(tc.ArgumentTypeError, match="'echo' is no Python function.* write cluster.submit"):
        echo(b"x")


def test_a_copy_in_the_same_process_is_called_plainly():
    for again in (copy.copy(mul), copy.deepcopy(mul), copy.deepcopy({"f": mul})["f"]):
        assert again(1.5, by=2) == 3.0


def test_the_code_alone_takes_a_payload(nodes, tmp_path):
    mul.save(tmp_path / "mul.ifunc")
    raw = tc.Ifunc((tmp_path / "mul.ifunc").read_bytes())
    assert nodes.submit(raw, np.array([1.5, 0.0])).result().array(np.float64)[0] == 0.0


def test_a_signature_that_was_changed_or_is_malformed_is_refused(tmp_path):
    path = tmp_path / "mul.ifunc"
    for begin in (b'"version"', b'"by"'):
        path.write_bytes(mul.bundle.replace(begin, begin.swapcase()))
        with pytest.raises(tc.Error, match="does not match its hash"):
            tc.ifunc.load(path)
    code = tc.ifunc.from_c("#include <threechains/ifunc.h>\nvoid c_main(void *p, size_t n, void *a) { tc_reply(p, n); }").bundle
    text = _bundle.signature_in(mul.bundle)
    wrong = [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, text.replace(b'"<f8"', b'"|O"'), text.replace(b'"<f8"', b"7"),
             text.replace(b'"<f8"', b"[]"), text.replace(b'"number"', b'"tuple"').replace(b'["<f8"]', b'["<c16"]'),
             text.replace(b'"scalar"', b'"other"'), text.replace(b'"0300', b'"0x00'), text.replace(b'"0300', b'"0'),
             text.replace(b'"parameters"', b'"others"'), text.replace(b'"x"', b'"x y"')]
    for changed in wrong:
        assert changed != text
        path.write_bytes(_bundle.with_signature(code, changed))
        with pytest.raises(tc.Error, match="signature in the .ifunc file") as caught:
            tc.ifunc.load(path)
        assert caught.value.status == tc.Status.MALFORMED
    path.write_bytes(_bundle.with_signature(code, text.replace(b'"version": 1', b'"version": 9')))
    with pytest.raises(tc.Error, match="version 9 when"):
        tc.ifunc.load(path)


# ---- Arguments by name --------------------------------------------------------------------------------------


def test_arguments_by_name_and_defaults_are_as_in_python(nodes):
    for ask in (lambda *args, **named: nodes.submit(mul, *args, **named).result(), mul,
                lambda *args, **named: nodes.submit(mul, *mul.bind(*args, **named)).result()):
        assert [ask(1.5, 2), ask(1.5, by=2), ask(by=2, x=1.5), ask(1.5)] == [3.0, 3.0, 3.0, 4.5]
        for args, named, told in [((), {}, "'x'"), ((), {"by": 2}, "'x'"), ((1, 2), {"by": 2}, "two values|'by'"),
                                  ((1, 2, 3), {}, "takes 2 arguments"), ((1,), {"to": 2}, "no parameter 'to'")]:
            with pytest.raises(tc.ArgumentTypeError, match=told) as caught:
                ask(*args, **named)
            assert isinstance(caught.value, TypeError)
    assert [future.result() for future in nodes.broadcast(mul, 1.5, by=2)] == [3.0, 3.0]
    nodes.send(mul, 1.5, by=2)
    nodes.flush()
    with pytest.raises(tc.ArgumentTypeError, match="not sent 'prices', tc.data"):
        nodes.submit(above, 1.0, prices=PRICES)


def test_map_gives_each_call_the_same_arguments_by_name(nodes):
    assert list(nodes.map(mul, [1.0, 2.0, 3.0], by=4)) == [4.0, 8.0, 12.0]
    assert list(nodes.map(mul, [1.0, 2.0], by=4, node=1, deadline=30.0, progress=False)) == [4.0, 8.0]
    with pytest.raises(tc.ArgumentTypeError, match="bye"):
        nodes.map(mul, [1.0], bye=4)
    with pytest.raises(tc.ArgumentTypeError, match="'by'"):
        nodes.map(mul, [1.0], by=[1, 2, 3])


def test_map_is_given_what_it_goes_through(nodes):
    with pytest.raises(tc.ArgumentTypeError, match=r"nothing to go through: write cluster.map\(mul, VALUES") as caught:
        nodes.map(mul, x=[1.0, 2.0])
    assert isinstance(caught.value, TypeError) and caught.value.parameter == "iterables"


def test_a_parameter_that_is_called_as_maps_own_is_passed_by_place(nodes):
    @tc.ifunc
    def done(steps: int, progress: float = 0.5):
        return steps * progress

    assert list(nodes.map(done, [2, 4])) == [1.0, 2.0]
    assert list(nodes.map(done, [2, 4], [1.0, 1.5], progress=False)) == [2.0, 6.0]
    assert nodes.submit(done, 2, progress=1.5).result() == 3.0
    with pytest.raises(tc.ArgumentTypeError, match="is a parameter of ifunc 'done' and a keyword of map"):
        nodes.map(done, [2, 4], progress=1.5)


def test_c_takes_no_arguments_by_name(nodes, echo):
    with pytest.raises(tc.ArgumentTypeError, match="no argument named 'size'"):
        nodes.submit(echo, b"x", size=1)


def test_parameters_that_are_called_as_submits_own_are_passed_by_place(nodes):
    @tc.ifunc
    def where(x: int, node: int = 7, deadline: float = 0.5):
        return x, node, deadline, tc.node_id()

    assert nodes.submit(where, 1, 2, 3.0, node=1, deadline=30.0).result() == (1, 2, 3.0, 1)
    assert nodes.submit(where, *where.bind(1, node=2), node=1).result() == (1, 2, 0.5, 1)
    assert nodes.submit(where, 1).result()[:3] == (1, 7, 0.5)
    assert where(1, node=3) == (1, 3, 0.5, 0)
    for named in ({"node": 1}, {"deadline": 3.0}):
        with pytest.raises(tc.ArgumentTypeError, match="is a parameter of ifunc 'where' and a keyword of submit"):
            nodes.submit(where, 1, **named)


def test_positional_parameters_are_not_passed_by_name(nodes):
    @tc.ifunc
    def first(x: int, /, y: int):
        return x - y

    assert nodes.submit(first, 3, y=1).result() == first(3, y=1) == 2
    for ask in (first, lambda *args, **named: nodes.submit(first, *args, **named)):
        with pytest.raises(tc.ArgumentTypeError, match="'x'"):
            ask(x=3, y=1)


def test_a_default_value_that_the_type_does_not_hold_is_refused():
    def adds(x: float, y: np.int8 = 300):
        return x + y

    def data(limit: float = 1.0, prices: tc.data("prices", np.float64) = ()):
        return limit

    def allowed(limit: float = 1.0, prices: tc.data("prices", np.float64) = None):
        return limit + prices[0]

    with pytest.raises(tc.IfuncError, match="default value of adds: 'y' is of type int8.* 300"):
        tc.ifunc(adds)
    with pytest.raises(tc.IfuncError, match="'prices'.* does not travel"):
        tc.ifunc(data)
    assert tc.ifunc(allowed)(prices=[2.0]) == 3.0


# ---- Called here --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ifunc, args, named", ALL, ids=lambda item: getattr(item, "name", ""))
def test_a_plain_call_gives_what_a_node_answers(nodes, ifunc, args, named):
    there = nodes.submit(ifunc, *args, **named).result()
    if "prices" in inspect.signature(ifunc).parameters:
        named = {**named, "prices": PRICES}
    here = ifunc(*args, **named)
    assert type(here) is type(there) and same(here, there)


def test_a_plain_call_passes_named_data_and_makes_the_answer():
    assert above(50.0, PRICES) == above(50.0, prices=PRICES) == above(50.0, PRICES.tolist())
    counts = np.zeros(4, np.int64)
    assert histogram(PRICES, 25.0).tolist() == histogram(PRICES, counts, 25.0).tolist() == counts.tolist() == [250, 250, 250, 251]
    with pytest.raises(tc.ArgumentTypeError, match=r"'prices' is tc.data\('prices'\).* pass an array of float64"):
        above(50.0)
    with pytest.raises(tc.ArgumentTypeError, match="float64, and what was passed is float32"):
        above(50.0, PRICES.astype(np.float32))
    with pytest.raises(tc.ArgumentValueError, match="in one piece"):
        above(50.0, PRICES[::2])
    with pytest.raises(tc.ArgumentValueError, match="4 elements"):
        histogram(PRICES, counts=np.zeros(3, np.int64))


def test_a_function_cannot_write_to_data_that_it_takes_as_read_only(nodes):
    @tc.ifunc
    def product(prices: tc.data("prices", np.float64, readonly=True)) -> float:
        return np.dot(prices, prices)

    @tc.ifunc
    def some(begin: int, end: int, prices: tc.data("prices", np.float64, readonly=True)) -> tc.array(np.float64):
        return prices[begin:end]

    def writes(prices: tc.data("prices", np.float64, readonly=True)) -> float:
        prices[0] = 1.0
        return prices[0]

    for ifunc in (product, pickle.loads(pickle.dumps(product))):
        assert nodes.submit(ifunc).result() == pytest.approx(PRICES @ PRICES)
    assert product(prices=PRICES) == pytest.approx(PRICES @ PRICES)
    assert nodes.submit(some, 3, 5).result().tolist() == PRICES[3:5].tolist()
    assert inspect.signature(pickle.loads(pickle.dumps(product))).parameters["prices"].annotation.readonly
    with pytest.raises(tc.IfuncError, match="modify readonly array"):
        tc.ifunc(writes)


def test_a_plain_call_changes_no_array_that_would_travel():
    weights = np.array([1.0, 2.0], np.float32)
    assert middle(ROWS, weights).tolist() == [4.0, 2.0] and weights[0] == 1.0


def test_a_plain_call_runs_at_a_cluster_of_one_node(nodes, caplog):
    @tc.ifunc
    def hop(left: int, path: int, seen: tc.data("prices", np.float64, optional=True)):
        if left > 0:
            tc.forward((tc.node_id() + 1) % tc.node_count(), left - 1, path * 10 + len(seen))
        return path * 10 + tc.node_id(), tc.node_count(), tc.has_data("prices")

    assert hop(3, 9) == (90000, 1, False)
    assert hop(1, 9, seen=[1.0, 2.0]) == (920, 1, True)
    with caplog.at_level(logging.INFO, logger="threechains"):
        assert quiet(1.0) is None
    assert "it runs" in caplog.text
    for function, args in ((tc.node_id, ()), (tc.node_count, ()), (tc.forward, (0, 1)), (tc.has_data, ("x",)), (tc.log, (1, "x")),
                           (tc.inject, (0, "x")), (tc.forward_as, (0, "x"))):
        with pytest.raises(tc.NotAtANodeError) as caught:
            function(*args)
        assert isinstance(caught.value, RuntimeError)


def test_a_plain_call_that_forwards_elsewhere_reads_that_no_node_is_there():
    @tc.ifunc
    def away(x: int):
        return tc.forward(x, x)

    assert away(5) == tc.Status.NOT_FOUND


def test_a_plain_call_raises_what_the_function_raises():
    @tc.ifunc
    def picky(x: int):
        if x == 1:
            raise tc.Failure(7, "one is no number")
        return x

    with pytest.raises(tc.Failure, match="one is no number"):
        picky(1)
    with pytest.raises(tc.NotAtANodeError):
        tc.node_id()  # the call has ended
    with pytest.raises(tc.ArgumentTypeError, match="picky: 'x' is of type int64"):
        picky(1.5)


# ---- What it says of itself ---------------------------------------------------------------------------------


def test_an_ifunc_has_the_signature_and_the_words_of_its_function(tmp_path):
    def plain(x: np.float64, by: int = 3) -> np.float64:
        """Does nothing."""
        return x

    made = tc.ifunc(name="other")(plain)
    assert inspect.signature(made) == inspect.signature(plain) and made.__wrapped__ is plain and callable(made)
    assert (made.name, made.__name__, made.__doc__, made.__module__) == ("other", "plain", "Does nothing.", __name__)
    assert str(inspect.signature(saved(made, tmp_path))) == "(x: numpy.float64, by: numpy.int64 = 3) -> numpy.float64"
