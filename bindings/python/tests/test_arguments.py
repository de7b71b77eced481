# SPDX-License-Identifier: Apache-2.0
"""Annotations that say too little, and arguments and named data of other types, are refused by name, type and what to do."""

import array
import fractions
import mmap
import pickle
import subprocess
import typing

import numpy as np
import numpy.typing as npt
import pytest
import threechains as tc

pytest.importorskip("numba", reason="the extra [numba] is not installed")


@pytest.fixture(scope="module")
def node():
    with tc.LocalCluster(1) as cluster:
        yield cluster[0]


def taking(annotation):
    def takes(x):
        return x

    takes.__annotations__ = {"x": annotation}
    return takes


@pytest.mark.parametrize("annotation, advice", [
    (np.ndarray, "tc.array(np.float64)"), (npt.NDArray[np.float32], "tc.data('NAME', np.float32)"), (list, "tc.array(np.float64)"),
    (list[int], "tc.array(np.int64)"), (tuple[float, ...], "tc.out(np.float64, COUNT)"), (typing.Sequence[bool], "tc.array(np.bool)"),
    (npt.ArrayLike, ""), (np.floating, "np.float64"), (np.integer, "np.int64"), (np.unsignedinteger, "np.uint64"),
    (np.number, "np.float64"), (np.generic, "np.float64"), (np.complexfloating, "np.complex128"), (typing.Any, "np.int64"),
    (object, "tc.array(np.float64)"), (str, "tc.array(np.uint8)"), (bytes, "tc.array(np.uint8)"), (float | None, "write float"),
    (typing.Optional[int], "write int"), (complex, "tc.array(np.complex128)"), (np.complex64, "tc.array(np.complex64)"),
    (tc.array(np.floating), "np.float64"), (tc.data("x", object), "np.int64"), (tc.out(list, 3), "np.float64"),
    ("no_such_name", "exist"), (dict, "np.float64"), (np.longdouble, "tc.array"),
])
def test_annotations_that_say_too_little_say_what_to_write(annotation, advice):
    with pytest.raises(tc.IfuncError) as caught:
        tc.ifunc(taking(annotation))
    assert advice in caught.value.hint and caught.value.hint and "takes: " in str(caught.value)
    if annotation != "no_such_name":
        assert caught.value.symbol == "x" and "'x' is annotated" in str(caught.value)


def test_a_vague_result_is_refused_too():
    for annotation in (np.ndarray, np.floating, typing.Any, tuple[float, ...]):
        def gives(x: float):
            return x

        gives.__annotations__["return"] = annotation
        with pytest.raises(tc.IfuncError, match="'return' is annotated"):
            tc.ifunc(gives)


# ---- Numbers ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers():
    return {kind: tc.ifunc(taking(kind)) for kind in (np.float64, np.float32, np.int64, np.int8, np.uint64, np.bool_)}


@pytest.mark.parametrize("kind, value, error, told", [
    (np.float64, None, TypeError, "None of NoneType"), (np.float64, 1j, TypeError, "imaginary part"),
    (np.float64, np.complex128(1 + 2j), TypeError, "imaginary part"), (np.float32, np.complex64(1), TypeError, "imaginary part"),
    (np.float64, np.array(1 + 2j), TypeError, "imaginary part"), (np.float64, "1.5", TypeError, "1.5 of str"),
    (np.float64, [1.5], TypeError, "of list"), (np.float64, np.array([1.5]), TypeError, "of ndarray"),
    (np.float64, 10**400, OverflowError, "of int"), (np.float32, 1e300, OverflowError, "1e\\+300 of float"),
    (np.int64, 1.0, TypeError, "int\\(\\) or round"), (np.int64, np.float64(2.5), TypeError, "2.5 of float64"),
    (np.int64, 2**63, OverflowError, "it holds"), (np.int8, -129, OverflowError, "-128 to 127"), (np.uint64, -1, OverflowError, "0 to"),
    (np.int64, None, TypeError, "None"), (np.int64, 1j, TypeError, "1j of complex"), (np.bool_, "no", TypeError, "no of str"),
    (np.bool_, 2, OverflowError, "0 to 1"), (np.bool_, None, TypeError, "None"),
])
def test_a_number_that_the_type_does_not_hold_is_refused_by_name_and_type(node, numbers, kind, value, error, told):
    for ask in (numbers[kind], lambda value: node.submit(numbers[kind], value)):
        with pytest.raises(tc.ArgumentError, match=f"takes: 'x' is of type {np.dtype(kind)}, which does not hold .*{told}") as caught:
            ask(value)
        assert isinstance(caught.value, error) and caught.value.parameter == "x" and caught.value.status == tc.Status.INVALID
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again), again.parameter) == (type(caught.value), str(caught.value), "x")


@pytest.mark.parametrize("kind, value", [
    (np.float64, True), (np.float64, 2**60), (np.float64, fractions.Fraction(1, 4)), (np.float64, np.float16(0.5)),
    (np.float64, np.array(2.5)), (np.float32, float("inf")), (np.float32, 0.5), (np.int64, np.uint8(200)), (np.int64, True),
    (np.int64, np.bool_(True)), (np.uint64, 2**64 - 1), (np.int8, np.int64(-128)), (np.bool_, 1), (np.bool_, np.bool_(False)),
])
def test_a_number_that_the_type_holds_keeps_its_value(node, numbers, kind, value):
    assert node.submit(numbers[kind], value).result() == numbers[kind](value) == value


# ---- Arrays -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind, value, error, told", [
    (np.float64, None, TypeError, "None was given"), (np.complex128, None, TypeError, "None was given"),
    (np.float64, [None, 1.0], TypeError, "None of object"), (np.float64, [1 + 2j], TypeError, "imaginary part"),
    (np.float64, 3.0, TypeError, "0 dimensions"), (np.float64, [[1.0]], TypeError, "2 dimensions"),
    (np.float64, [[1.0], [1.0, 2.0]], ValueError, "is none"), (np.float64, np.ma.array([1.0, 2.0], mask=[0, 1]), ValueError, "masked"),
    (np.dtype([("a", "i4")]), None, TypeError, "None was given"), (np.dtype([("a", "i4")]), 3, TypeError, "no rows"),
    (np.dtype([("a", "i4")]), [(1, 2)], TypeError, "1 fields"), (np.int64, {1: 2}, TypeError, "of object"),
])
def test_an_array_that_is_none_is_refused_by_name_and_type(node, kind, value, error, told):
    def size(x):
        return len(x)

    size.__annotations__ = {"x": tc.array(kind)}
    ifunc = tc.ifunc(size)
    for ask in (ifunc, lambda value: node.submit(ifunc, value)):
        with pytest.raises(tc.ArgumentError, match=f"size: 'x'.*{told}") as caught:
            ask(value)
        assert isinstance(caught.value, error) and caught.value.parameter == "x"


def test_complex_numbers_keep_both_parts(node):
    @tc.ifunc
    def product(x: tc.array(np.complex128)):
        return x[0] * x[1]

    @tc.ifunc
    def turned(x: tc.array(np.complex64)):
        for i in range(len(x)):
            x[i] *= 1j
        return x

    assert node.submit(product, [1 + 2j, 3 - 1j]).result() == product([1 + 2j, 3 - 1j]) == 5 + 5j
    assert node.submit(turned, [1 + 2j]).result().tolist() == turned([1 + 2j]).tolist() == [-2 + 1j]


# ---- Named data ---------------------------------------------------------------------------------------------

COLUMN = np.arange(6.0)


@tc.ifunc
def first(column: tc.data("column", np.float64)):
    return column[0]


@pytest.mark.parametrize("column, told", [
    (COLUMN.astype(np.float32), "data 'column' is float32 of shape \\(6,\\)"), (COLUMN.astype(">f8"), "data 'column' is >f8"),
    (COLUMN.astype(np.int64), "int64"), (COLUMN.reshape(2, 3), "float64 of shape \\(2, 3\\).*reshape\\(-1\\)"),
    (COLUMN.astype(np.uint8), "uint8"), (array.array("f", [1.0]), "float32"), (np.array(1.0), "shape \\(\\)"),
])
def test_named_data_of_another_type_or_shape_is_refused(column, told):
    with tc.Node(data={"column": column}) as server, tc.Cluster([server.address]) as cluster:
        for ask in (cluster.submit, cluster.send, cluster[0].submit):
            with pytest.raises(tc.ArgumentTypeError, match=f"first: 'column' is an array of .*{told}") as caught:
                ask(first)
            assert isinstance(caught.value, TypeError) and caught.value.parameter == "column"
        server.expose("column", COLUMN)
        assert cluster.submit(first).result() == 0.0
        server.expose("column", column)
        with pytest.raises(tc.ArgumentTypeError):
            cluster.submit(first)
        server.withdraw("column")
        with pytest.raises(tc.RemoteError, match="no data 'column'"):
            cluster.submit(first).result()


def test_a_local_cluster_knows_its_data_and_not_its_files(tmp_path):
    COLUMN.tofile(tmp_path / "column")
    memory = mmap.mmap(-1, 4096)
    with tc.LocalCluster(2, data={"column": COLUMN.astype(np.int32)}) as cluster, pytest.raises(tc.ArgumentTypeError, match="int32"):
        cluster.submit(first)
    for column in (tmp_path / "column", str(tmp_path / "column"), COLUMN.tobytes(), memory, COLUMN, array.array("d", COLUMN)):
        with tc.LocalCluster(1, data={"column": column}) as cluster:
            assert cluster.submit(first).result() == 0.0


def elsewhere(cluster):
    """The cluster, as a process has it that knows nothing of its data."""
    for endpoint in cluster:
        endpoint._known = tc._data.NOTHING
    return cluster


OTHER_PROCESS = """
import sys
import numpy as np
with tc.Node() as node:
    print(node.address, flush=True)
    for line in sys.stdin:
        exec(line)
        print("done", flush=True)
"""


@pytest.fixture
def other_process(script):
    """A node of another process: an endpoint of it, and a function that runs a line there."""
    process = script(OTHER_PROCESS, start=True, stdin=subprocess.PIPE)

    def run(line):
        process.stdin.write(line + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n", process.stderr.read()

    with process, tc.Cluster([process.stdout.readline().strip()]) as cluster:
        yield cluster[0], run
        process.stdin.close()


def test_data_of_another_process_is_refused_where_it_is_of_another_type_or_shape(other_process):
    endpoint, run = other_process
    for column, told in (("np.arange(6, dtype=np.float32)", "float32 of shape (6,): annotate it with float32, or convert the data by astype()"),
                         ("np.arange(6.0).astype('>f8')", ">f8 of shape (6,): annotate it with >f8, or convert the data by astype()"),
                         ("np.arange(6.0).reshape(2, 3)", "float64 of shape (2, 3): give the data as .reshape(-1), row after row"),
                         ("np.array(1.0)", "float64 of shape (): give the data as .reshape(-1), row after row"),
                         ("np.zeros(3, [('a%d' % i, 'i4') for i in range(99)])", "[('a0', '<i4'), ('a1', '<i4'), ('a2',... of shape (3,)")):
        run(f"node.expose('column', {column})")
        with pytest.raises(tc.RemoteError) as caught:
            endpoint.submit(first).result()
        assert "'column' is an array of " in str(caught.value)
        assert f"and data 'column' of this node is {told}" in str(caught.value)
        run("node.expose('column', np.arange(6.0) + 4)")
        assert endpoint.submit(first).result() == 4.0
    run("node.withdraw('column')")
    with pytest.raises(tc.RemoteError, match="no data 'column'"):
        endpoint.submit(first).result()


def test_bytes_and_tables_of_another_process_have_no_type_whatever_stood_there_before(other_process):
    pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
    endpoint, run = other_process
    for column in ("np.arange(6.0).tobytes()", "memoryview(bytearray(64))", "__import__('pyarrow').table({'x': [0.0]})"):
        run("node.expose('column', np.arange(6, dtype=np.int32))")
        with pytest.raises(tc.RemoteError, match="int32"):
            endpoint.submit(first).result()
        run(f"node.expose('column', {column})")
        assert endpoint.submit(first).result() == 0.0


@pytest.mark.parametrize("isolate", ["none", "all"])
def test_a_local_cluster_says_to_other_processes_of_what_type_its_data_is(isolate):
    data = {"column": COLUMN.astype(np.float32), "right": COLUMN, "bytes": COLUMN.tobytes()}

    @tc.ifunc
    def sums(right: tc.data("right", np.float64), octets: tc.data("bytes", np.float64)):
        return right.sum(), octets.sum()

    with tc.LocalCluster(1, data=data, isolate=isolate) as nodes, elsewhere(tc.Cluster(nodes.addresses)) as cluster:
        assert cluster.submit(sums).result() == (15.0, 15.0)
        with pytest.raises(tc.RemoteError, match=r"'column' is an array of float64, and data 'column' of this node is float32 of shape \(6,\)"):
            cluster.submit(first).result()


def test_ifuncs_that_are_saved_or_do_not_need_the_data_are_refused_like_others(tmp_path):
    @tc.ifunc
    def size(größe: tc.data("column", np.float64, optional=True)):
        return len(größe)

    size.save(tmp_path / "size.ifunc")
    loaded = tc.ifunc.load(tmp_path / "size.ifunc")
    with tc.Node() as server, elsewhere(tc.Cluster([server.address])) as cluster:
        for ifunc in (size, loaded):
            assert cluster.submit(ifunc).result() == 0
            server.expose("column", COLUMN)
            assert cluster.submit(ifunc).result() == 6
            server.expose("column", COLUMN.astype(np.int64))
            with pytest.raises(tc.RemoteError, match="'größe' is an array of float64, and data 'column' of this node is int64"):
                cluster.submit(ifunc).result()
            server.withdraw("column")


@pytest.mark.parametrize("fields", [[("id", np.int32), ("x", np.float64)],
                                    [("id", np.int32), ("x", np.float64), *((f"more_{i}", np.int64) for i in range(20))]])
def test_rows_have_the_type_of_their_fields(fields):
    row = np.dtype(fields)

    @tc.ifunc
    def total(rows: tc.data("column", row)):
        total = 0.0
        for r in rows:
            total += r.x
        return total

    with tc.Node() as server, elsewhere(tc.Cluster([server.address])) as cluster:
        server.expose("column", np.ones(3, row))
        assert cluster.submit(total).result() == 3.0
        for other in (np.dtype(fields, align=True), [*fields[:1], ("y", np.float64), *fields[2:]], np.float64):
            server.expose("column", np.ones(3, other))
            with pytest.raises(tc.RemoteError, match="'rows' is an array of "):
                cluster.submit(total).result()


@pytest.mark.parametrize("description, told", [
    (b"", "does not say of what type"), (b"\0", "does not say of what type"), (b"x" * 10_000, "does not say of what type"),
    (b"<f8\n1\nfloat64\n(6,)", "does not say of what type"), (b"<f8\n", "does not say of what type"),
    (b"\n\n\n" + b"y" * 10_000 + b"\0", "does not say of what type"), (b"<f8\n1\n" + b"\n" * 500, "does not say of what type"),
    (b"<f8\n2\n" + b"z" * 111 + b"\n\0", "is z{111} of shape : give"), (b"<f4\n1\n\xff\0\x1b[2J\n\xc3\0", r"is \?\?\?\[2J of shape \?: annotate"),
    (b"<f8\n1\n\n\0", None),
])
def test_a_description_may_say_anything_and_the_node_lives(description, told):
    memory = memoryview(bytearray(description))
    with tc.Node(data={"column": COLUMN.tobytes()}) as server, tc.Cluster([server.address]) as cluster:
        server._engine.expose("column.type", memory)
        if told is None:
            assert cluster.submit(first).result() == 0.0
            return
        with pytest.raises(tc.RemoteError, match=f"data 'column.*{told}"):
            cluster.submit(first).result()
        server._engine.withdraw("column.type")
        assert cluster.submit(first).result() == 0.0


def test_no_description_ever_stands_beside_data_that_it_does_not_describe():
    class Recorded:
        def __init__(self, engine):
            self.engine, self.changes = engine, []

        def __getattr__(self, name):
            return getattr(self.engine, name)

        def expose(self, name, memory):
            self.changes.append(name)
            self.engine.expose(name, memory)

        def withdraw(self, name):
            self.changes.append("no " + name)
            self.engine.withdraw(name)

    with tc.Node() as server:
        server._engine = Recorded(server._engine)
        for column in (COLUMN, COLUMN + 1, COLUMN.astype(np.int32), COLUMN.tobytes(), COLUMN):
            server.expose("c", column)
        server.withdraw("c")
        assert server._engine.changes == ["c", "c.type", "c", "no c.type", "c", "c.type", "no c.type", "c", "c", "c.type", "no c", "no c.type"]


def test_no_data_can_take_the_name_of_a_description():
    with tc.Node() as server:
        for refused in (lambda: server.expose("column.type", COLUMN), lambda: server.withdraw("column.type"),
                        lambda: tc.LocalCluster(1, data={"column.type": COLUMN}), lambda: tc.Node(data={"column.type": b"x"})):
            with pytest.raises(tc.ArgumentValueError, match="'column.type': this name is for the type of data 'column'.*'column_type'"):
                refused()


def test_a_node_that_is_closed_is_not_known_any_more():
    server = tc.Node(data={"column": COLUMN.astype(np.int32)})
    address = server.address
    assert address in tc._data.HERE
    server.close()
    assert address not in tc._data.HERE


def test_data_in_another_order_is_refused():
    for column in (COLUMN[::2], COLUMN.reshape(2, 3).T):
        for make in (lambda data: tc.LocalCluster(1, data=data), lambda data: tc.Node(data=data)):
            with pytest.raises(tc.ArgumentValueError, match="data 'column', float64 of shape .*ascontiguousarray") as caught:
                make({"column": column})
            assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("make", [lambda data: tc.LocalCluster(1, data=data), lambda data: tc.Node(data=data)])
def test_data_that_is_no_dict_of_arrays_says_what_it_must_be(make):
    for data in ([COLUMN], COLUMN, "column"):
        with pytest.raises(tc.ArgumentTypeError, match='data={"prices": prices}'):
            make(data)
    for value in ([1.0, 2.0], 3.0, None):
        with pytest.raises(tc.ArgumentTypeError, match="data 'column' is .*numpy.array"):
            make({"column": value})


def test_payloads_of_c_and_what_is_no_ifunc_are_refused_as_threechains_errors(node, echo):
    for args, error in (((1.5,), TypeError), ((None,), TypeError), ((b"a", b"b"), TypeError), ((COLUMN[::2],), ValueError)):
        with pytest.raises(tc.ArgumentError, match="ifunc 'echo'") as caught:
            node.submit(echo, *args)
        assert isinstance(caught.value, error)
    with pytest.raises(tc.ArgumentTypeError, match="@tc.ifunc"):
        node.submit(len, b"x")
