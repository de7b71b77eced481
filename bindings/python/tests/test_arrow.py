# SPDX-License-Identifier: Apache-2.0
"""Tables of Arrow's at nodes: every column is there as Arrow has it, or the call says why not."""

import contextlib
import gc
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import threechains as tc

pytest.importorskip("numba", reason="the extra [numba] is not installed")
pa = pytest.importorskip("pyarrow", reason="the extra [arrow] is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="this pyarrow reads no Parquet")

NUMBERS = {"i1": pa.int8(), "u1": pa.uint8(), "i2": pa.int16(), "u2": pa.uint16(), "i4": pa.int32(), "u4": pa.uint32(),
           "i8": pa.int64(), "u8": pa.uint64(), "f2": pa.float16(), "f4": pa.float32(), "f8": pa.float64()}
TRIPS = pa.table({
    "fare": pa.array([1.5, None, 3.0, 4.5]),
    "distance": [1.0, 2.0, 3.0, 4.0],
    "city": ["Köln", None, "Ulm", "Köln"],
    "tip": [True, None, False, True],
    "at": pa.array([10, 20, 30, 40], pa.timestamp("us", "UTC")),
    "day": pa.array([1, 2, 3, 4], pa.date32()),
    "stops": [[1], [2, 3], [], [4]],
})
IN_C = """
#include <threechains/arrow.h>

struct answer { double total; int64_t rows, valid, texts, statuses[3], format; };

#ifdef __cplusplus
extern "C"
#endif
void columns_main(void *payload, size_t size, void *target_args) {
  (void)payload, (void)size, (void)target_args;
  tc_arrow_column_t fare, city, other;
  struct answer answer = {0, 0, 0, 0, {0, 0, 0}, 0};
  if (tc_arrow_column("trips.fare", &fare) != TC_OK || tc_arrow_column("trips.city", &city) != TC_OK) {
    tc_fail(1, "no such column");
    return;
  }
  const double *values = (const double *)fare.array.buffers[1];
  answer.rows = fare.array.length;
  for (int64_t i = 0; i < fare.array.length; ++i) {
    size_t length = 0;
    if (tc_arrow_is_valid(&fare, i)) answer.total += values[i], ++answer.valid;
    if (tc_arrow_is_valid(&city, i) && tc_arrow_text(&city, i, &length) != NULL) answer.texts += (int64_t)length;
  }
  answer.format = fare.schema.format[0];
  answer.statuses[0] = tc_arrow_column("trips.stops", &other);
  answer.statuses[1] = tc_arrow_column("trips.none", &other);
  answer.statuses[2] = tc_arrow_column("none", &other);
  fare.array.release(&fare.array);
  fare.schema.release(&fare.schema);
  tc_reply(&answer, sizeof answer);
}
"""


def ipc_file(path, table, **options):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, **options) as writer:
        writer.write_table(table, max_chunksize=max(1, table.num_rows))
    return path


def parquet_file(path, table, **options):
    pq.write_table(table, path, **options)
    return str(path)


def in_pieces(table):
    return pa.concat_tables([table.slice(0, 1), table.slice(1, 0), table.slice(1)])


@pytest.fixture(scope="module")
def forms(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trips")
    return {
        "table": TRIPS,
        "pieces": in_pieces(TRIPS),
        "ipc": ipc_file(folder / "trips.arrow", TRIPS),
        "parquet": parquet_file(folder / "trips.parquet", TRIPS, row_group_size=3),
        "other library's": type("Frame", (), {"__arrow_c_stream__": TRIPS.__arrow_c_stream__})(),
    }


@pytest.fixture(scope="module")
def server():
    """A node to whose data tests give what they like, and an endpoint to it."""
    with tc.Node() as node, tc.Cluster([node.address]) as client:
        yield node, client[0]


@tc.ifunc
def summary(distances: tc.column("trips.distance", np.float64), fares: tc.column("trips.fare", np.float64, nulls=True),
            cities: tc.column("trips.city", str, nulls=True), tips: tc.column("trips.tip", bool, nulls=True),
            times: tc.column("trips.at", np.int64), days: tc.column("trips.day", np.int32)):
    total, valid, there, tipped = 0.0, 0, 0, 0
    for i in range(len(fares)):
        if fares.is_valid(i):
            valid += 1
            total += fares[i]
        if cities.is_valid(i) and cities.equals(i, "Köln"):
            there += 1
        if tips.is_valid(i) and tips[i]:
            tipped += 1
    return total, valid, there, tipped, distances.sum(), times[3], days[2], len(cities[0]), fares.values[2]


SUMMARY = (9.0, 3, 2, 2, 10.0, 40, 3, 5, 3.0)


@pytest.mark.parametrize("form", ["table", "pieces", "ipc", "parquet", "other library's"])
def test_the_columns_of_a_table_are_there_in_every_form(forms, form):
    with tc.LocalCluster(2, data={"trips": forms[form]}) as cluster:
        assert [future.result() for future in cluster.broadcast(summary)] == [SUMMARY] * 2
    with tc.Node(data={"trips": forms[form]}) as node, tc.Cluster([node.address]) as client:
        assert client.submit(summary).result() == SUMMARY


def test_code_in_a_cell_has_the_columns(forms):
    with tc.LocalCluster(1, data={"trips": forms["ipc"]}, isolate="all") as cluster:
        assert cluster.submit(summary).result() == SUMMARY


def test_each_node_has_a_file_of_its_own(tmp_path):
    for i in range(2):
        ipc_file(tmp_path / f"trips-{i}.arrow", pa.table({"n": [i, i + 10]}))
        parquet_file(tmp_path / f"trips-{i}.parquet", pa.table({"n": [i, i + 10]}))

    @tc.ifunc
    def total(column: tc.column("trips.n", np.int64)):
        return column.sum()

    for kind in ("arrow", "parquet"):
        with tc.LocalCluster(2, data={"trips": str(tmp_path / f"trips-{{id}}.{kind}")}) as cluster:
            assert [future.result() for future in cluster.broadcast(total)] == [10, 12]


def test_a_file_of_arrow_is_mapped_where_it_is(tmp_path):
    path = ipc_file(tmp_path / "trips.arrow", TRIPS)
    with tc.LocalCluster(1, data={"trips": path}) as cluster:
        assert cluster.submit(summary).result() == SUMMARY
        maps = [file.read_text() for file in pathlib.Path("/proc").glob("[0-9]*/maps") if is_below(file, cluster._process.pid)]
        assert any(str(path) in text for text in maps)
    with tc.Node(data={"trips": str(path)}):
        assert str(path) in pathlib.Path("/proc/self/maps").read_text()


def is_below(file, ancestor):
    """Is the process whose /proc/PID/maps this is a descendant of another one, or that?"""
    pid = file.parent.name
    while pid not in ("0", "1", str(ancestor)):
        try:
            pid = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            return False  # it has ended
    return pid == str(ancestor)


@pytest.mark.parametrize("letters", [letters for letters in NUMBERS if letters != "f2"])  # which Numba does not have
def test_numbers_of_every_width_are_an_array(server, letters):
    node, endpoint = server
    dtype = np.dtype(letters)

    @tc.ifunc
    def same(column: tc.column("t.n", dtype)):
        return column

    values = np.arange(7).astype(dtype)
    node.expose("t", pa.table({"before": ["x"] * 7, "n": pa.array(values, NUMBERS[letters])}))
    answer = endpoint.submit(same).result()
    assert answer.dtype == dtype and answer.tolist() == values.tolist()


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary", "binary"])
def test_texts_are_there_whatever_form_they_have(server, kind):
    node, endpoint = server
    words = ["", "Ulm", None, "Köln", "x" * 100]
    given = {"dictionary": lambda: pa.array(words).dictionary_encode(),
             "binary": lambda: pa.array([word and word.encode() for word in words], pa.binary())}
    array = given.get(kind, lambda: pa.array(words, getattr(pa, kind)()))()

    @tc.ifunc
    def text(row: int, column: tc.column("t.word", str, nulls=True)):
        return column[row]

    @tc.ifunc
    def find(word: tc.array(np.uint8), column: tc.column("t.word", bytes, nulls=True)):
        for i in range(len(column)):
            if column.is_valid(i) and column.equals(i, word):
                return i
        return -1

    node.expose("t", pa.table({"word": array}))
    assert [bytes(endpoint.submit(text, i).result()).decode() for i in (0, 1, 3, 4)] == ["", "Ulm", "Köln", "x" * 100]
    assert endpoint.submit(find, bytearray("Köln".encode())).result() == 3
    assert endpoint.submit(find, bytearray(b"")).result() == 0
    assert endpoint.submit(find, bytearray(b"Kiel")).result() == -1


@pytest.mark.parametrize("row", [-1, 3, 2**62])
def test_a_row_that_a_column_does_not_have_is_refused(server, row):
    node, endpoint = server
    node.expose("t", pa.table({"word": ["a", "b", "c"], "n": [1, 2, 3], "yes": [True] * 3}))

    @tc.ifunc
    def text(i: int, column: tc.column("t.word", str)):
        return column[i]

    @tc.ifunc
    def number(i: int, column: tc.column("t.n", np.int64, nulls=True)):
        return column[i]

    @tc.ifunc
    def bit(i: int, column: tc.column("t.yes", bool)):
        return column[i]

    @tc.ifunc
    def valid(i: int, column: tc.column("t.n", np.int64, nulls=True)):
        return column.is_valid(i)

    for function in (text, number, bit, valid):
        with pytest.raises(tc.RemoteError, match="no such row") as caught:
            endpoint.submit(function, row).result()
        assert caught.value.code == -3


@pytest.mark.parametrize("column, told", [
    (tc.column("trips.none", np.float64), "this node has no column 'trips.none'"),
    (tc.column("trips.fares", np.float64), "this node has no column 'trips.fares'"),
    (tc.column("trips.far", np.float64), "this node has no column 'trips.far'"),
    (tc.column("trips.fare", np.float64), "'trips.fare' of this node has nulls: take it with nulls=True"),
    (tc.column("trips.city", str), "'trips.city' of this node has nulls"),
    (tc.column("trips.distance", np.float32), "'trips.distance' of this node is of another type than float32"),
    (tc.column("trips.distance", np.int64, nulls=True), "another type than int64"),
    (tc.column("trips.city", np.uint8), "another type than uint8"),
    (tc.column("trips.stops", np.int64), "another type than int64"),
    (tc.column("voyages.fare", np.float64), "this node exposes no data 'voyages'"),
    (tc.column("plain.fare", np.float64), "this node's data 'plain' is no Arrow table"),
])
def test_a_column_that_a_node_does_not_have_like_that_is_refused(server, column, told):
    node, endpoint = server
    node.expose("trips", TRIPS)
    node.expose("plain", np.zeros(3))

    def length(values):
        return len(values)

    length.__annotations__ = {"values": column}
    with pytest.raises(tc.RemoteError, match=told):
        endpoint.submit(tc.ifunc(length)).result()


@pytest.mark.parametrize("name, dtype, told", [
    ("trips", np.float64, "the column 'trips', which no target can have"), (".fare", np.float64, "no target can have"),
    ("trips.", np.float64, "no target can have"), ("trips.fare", np.complex128, "a column of complex128"),
    ("trips.fare", np.float16, "a column of float16"), ("trips.fare", object, "can be anything"),
])
def test_what_is_no_column_is_refused_when_it_is_compiled(name, dtype, told):
    def length(values):
        return len(values)

    length.__annotations__ = {"values": tc.column(name, dtype)}
    with pytest.raises(tc.IfuncError, match=told):
        tc.ifunc(length)


def test_a_column_cannot_be_written():
    with pytest.raises(tc.IfuncError, match="[Cc]annot modify readonly|readonly"):
        @tc.ifunc
        def spoil(values: tc.column("trips.fare", np.float64)):
            values[0] = 1.0


def test_files_that_cannot_be_mapped_say_what_to_do(tmp_path):
    with pa.OSFile(str(tmp_path / "many.arrow"), "wb") as file, pa.ipc.new_file(file, TRIPS.schema) as writer:
        writer.write_table(TRIPS, max_chunksize=2)
    with pytest.raises(ValueError, match="2 record batches.*one piece.*read_all"):
        tc.LocalCluster(1, data={"trips": tmp_path / "many.arrow"})
    table = pa.table({"n": np.zeros(1000)})
    ipc_file(tmp_path / "packed.arrow", table, options=pa.ipc.IpcWriteOptions(compression="zstd"))
    with pytest.raises(ValueError, match="'n' cannot be used where it lies.*read_all"):
        tc.Node(data={"trips": tmp_path / "packed.arrow"})
    (tmp_path / "torn.arrow").write_bytes(ipc_file(tmp_path / "whole.arrow", table).read_bytes()[:-20])
    with pytest.raises(tc.Error, match="torn.arrow is no Arrow IPC file that can be read"):
        tc.Node(data={"trips": tmp_path / "torn.arrow"})
    with pytest.raises(TypeError, match="no Arrow IPC or Parquet file"):
        tc.Node(data={"trips": tmp_path / "none.arrow"})
    with pytest.raises(ValueError, match="cannot be named 'a.b'"):
        tc.Node(data={"a.b": table})


def test_tables_without_rows_are_there(server, tmp_path):
    node, endpoint = server

    @tc.ifunc
    def lengths(n: tc.column("t.n", np.float64), words: tc.column("t.word", str), bits: tc.column("t.bit", bool)):
        return len(n), len(words), len(bits)

    empty = pa.table({"n": pa.array([], pa.float64()), "word": pa.array([], pa.string()), "bit": pa.array([], pa.bool_())})
    batchless = tmp_path / "batchless.arrow"
    with pa.OSFile(str(batchless), "wb") as file, pa.ipc.new_file(file, empty.schema):
        pass
    for given in (empty, empty.schema.empty_table(), batchless, parquet_file(tmp_path / "empty.parquet", empty)):
        node.expose("t", given)
        assert endpoint.submit(lengths).result() == (0, 0, 0)


def test_another_table_takes_the_place_of_the_first(server):
    node, endpoint = server

    @tc.ifunc
    def total(n: tc.column("t.n", np.int64)):
        return n.sum()

    for values in ([1, 2], [3], list(range(100))):
        node.expose("t", pa.table({"n": values}))
        assert endpoint.submit(total).result() == sum(values)
    node.expose("t", np.zeros(3))
    with pytest.raises(tc.RemoteError, match="is no Arrow table"):
        endpoint.submit(total).result()
    node.expose("t", pa.table({"n": [5]}))
    node.withdraw("t")
    with pytest.raises(tc.RemoteError, match="exposes no data 't'"):
        endpoint.submit(total).result()


# ---- What a directory may say ---------------------------------------------------------------------------------


def test_no_directory_leads_out_of_its_data(server):
    """Every number of it is changed to what could lead elsewhere: the call answers or is refused, and the node lives."""
    node, endpoint = server
    table = pa.table({"n": pa.array([1, None, 3]), "word": ["a", "bc", None], "bit": [True, None, False]})
    from threechains import _arrow
    body, directory = _arrow.in_memory(table)

    @tc.ifunc
    def use(n: tc.column("t.n", np.int64, nulls=True), words: tc.column("t.word", str, nulls=True),
            bits: tc.column("t.bit", bool, nulls=True)):
        total = 0
        for i in range(min(len(n), 3)):
            total += n[i] * n.is_valid(i)
        for i in range(min(len(words), 3)):
            total += len(words[i]) * words.is_valid(i)
        for i in range(min(len(bits), 3)):
            total += bits[i] * bits.is_valid(i)
        return total

    in_c = tc.ifunc.from_c(IN_C.replace("trips.fare", "t.n").replace("trips.city", "t.word").replace("double *", "int64_t *"))
    node.expose("t", memoryview(body))
    node.expose("t.columns", directory)
    assert endpoint.submit(use).result() == 4 + 3 + 1
    words = np.frombuffer(directory[: len(directory) // 8 * 8], np.uint64)
    for place in range(min(len(words), 2 + 3 * 11)):
        for value in (0, 1, 7, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1):
            changed = bytearray(directory)
            changed[8 * place : 8 * place + 8] = int(value).to_bytes(8, "little")
            node.expose("t.columns", changed)
            for function in (use, in_c):
                try:
                    endpoint.submit(function).result()
                except tc.RemoteError as error:
                    assert error.status == tc.Status.IFUNC, error
    for size in range(0, len(directory), 5):
        node.expose("t.columns", directory[:size] if size else bytearray(1))
        for function in (use, in_c):
            with contextlib.suppress(tc.RemoteError):  # it may have lost no more than a text that is not asked for
                endpoint.submit(function).result()
    assert endpoint.status == tc.Status.OK
    node.withdraw("t.columns")
    node.withdraw("t")


@pytest.mark.parametrize("seed", range(3))
def test_any_table_is_what_arrow_says_that_it_is(server, seed, tmp_path):
    node, endpoint = server
    random = np.random.default_rng(seed)

    @tc.ifunc
    def digest(n: tc.column("t.n", np.int32, nulls=True), words: tc.column("t.word", str, nulls=True),
               bits: tc.column("t.bit", bool, nulls=True)):
        numbers, letters, yes, nulls = 0, 0, 0, 0
        for i in range(len(n)):
            numbers += np.int64(n[i]) * (i + 1) if n.is_valid(i) else 0
            nulls += (not n.is_valid(i)) + (not words.is_valid(i)) + (not bits.is_valid(i))
            if words.is_valid(i):
                for letter in words[i]:
                    letters += np.int64(letter) * (i + 1)
            if bits.is_valid(i) and bits[i]:
                yes += i + 1
        return numbers, letters, yes, nulls

    for step in range(20):
        rows = int(random.integers(1, 200))
        share = float(random.choice([0, 0.3, 1]))

        def some(values):
            return [None if random.random() < share else value for value in values]

        table = pa.table({"n": pa.array(some(random.integers(-1000, 1000, rows).tolist()), pa.int32()),
                          "word": pa.array(some(["x" * int(k) + "é" for k in random.integers(0, 9, rows)]), pa.string()),
                          "bit": pa.array(some((random.random(rows) < 0.5).tolist()), pa.bool_())})
        cuts = sorted(random.integers(0, rows + 1, 4).tolist())
        table = pa.concat_tables([table.slice(a, b - a) for a, b in zip(cuts, cuts[1:])])
        numbers, words, bits = (table[name].to_pylist() for name in ("n", "word", "bit"))
        expected = (sum(v * (i + 1) for i, v in enumerate(numbers) if v is not None),
                    sum(sum(v.encode()) * (i + 1) for i, v in enumerate(words) if v is not None),
                    sum(i + 1 for i, v in enumerate(bits) if v),
                    sum(v is None for v in [*numbers, *words, *bits]))
        given = random.choice(["table", "ipc", "parquet"])
        path = tmp_path / f"{step}"
        node.expose("t", {"table": lambda: table, "ipc": lambda: ipc_file(path, table.combine_chunks()),
                          "parquet": lambda: parquet_file(path, table, row_group_size=17)}[given]())
        assert endpoint.submit(digest).result() == expected, f"seed {seed}, step {step}: {given}, {rows} rows, cut at {cuts}"


# ---- From C -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["c", "cc"])
def test_the_same_columns_are_there_in_c(forms, suffix, tmp_path):
    path = tmp_path / f"columns.{suffix}"
    path.write_text(IN_C)
    function = tc.ifunc.from_c(path, flags=["-Wall", "-Wextra", "-Werror"])
    kind = np.dtype([("total", "f8"), ("numbers", "i8", 3), ("statuses", "i8", 3), ("format", "i8")])
    with tc.LocalCluster(1, data={"trips": forms["ipc"]}) as cluster:
        answer = cluster.submit(function).result().array(kind)[0]
    assert answer["total"] == 9.0 and answer["numbers"].tolist() == [4, 3, 5 + 3 + 5]
    assert answer["statuses"].tolist() == [tc.Status.UNSUPPORTED, tc.Status.NOT_FOUND, tc.Status.NOT_FOUND]
    assert chr(answer["format"]) == "g"


def test_nodes_of_the_command_have_the_columns_that_a_directory_names(forms, tmp_path):
    (tmp_path / "trips.columns").write_bytes(tc.columns_of(forms["ipc"]))
    options = ["--data", f"trips={forms['ipc']}:ro", "--data", f"trips.columns={tmp_path}/trips.columns:ro"]
    with tc.LocalCluster(1, options=options) as cluster:
        assert cluster.submit(summary).result() == SUMMARY


# ---- Answers as Arrow's -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
def test_an_answer_is_an_array_of_arrows_without_a_copy(cluster, echo, dtype):
    given = np.arange(100).astype(dtype)
    answer = cluster.submit(echo, given).result().array(dtype)
    array = pa.array(tc.as_arrow(answer))
    assert array.type == NUMBERS[dtype] and array.to_pylist() == given.tolist()
    assert array.buffers()[1].address == answer.ctypes.data
    del answer
    gc.collect()
    array.validate(full=True)
    assert array.to_pylist() == given.tolist()


def test_a_reply_is_an_array_of_bytes(cluster, echo):
    assert pa.array(tc.as_arrow(cluster.submit(echo, b"abc").result())).to_pylist() == [97, 98, 99]
    assert len(pa.array(tc.as_arrow(cluster.submit(echo).result()))) == 0


def test_capsules_that_nobody_takes_let_the_answer_go():
    array = np.arange(4.0)
    before = sys.getrefcount(array)
    exported = tc.as_arrow(array)
    capsules = exported.__arrow_c_array__()
    taken = pa.array(exported)
    assert sys.getrefcount(array) > before
    del capsules, taken, exported
    gc.collect()
    assert sys.getrefcount(array) == before


@pytest.mark.parametrize("answer", [3, np.zeros((2, 2)), np.zeros(8)[::2], np.zeros(2, bool), np.zeros(2, "c16"),
                                    np.zeros(2, ">f8")])
def test_what_has_another_form_in_arrow_is_refused(answer):
    with pytest.raises(TypeError, match="as_arrow"):
        tc.as_arrow(answer)


# ---- Without pyarrow ----------------------------------------------------------------------------------------


def test_without_pyarrow_the_error_says_what_to_install(forms, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(f"""
import sys
sys.modules["pyarrow"] = None
import threechains as tc
try:
    tc.LocalCluster(1, data={{"trips": {str(forms["ipc"])!r}}})
except tc.Error as error:
    print(error)
""")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert "pip install pyarrow" in done.stdout, done.stderr


def test_an_ifunc_with_columns_is_saved_and_loaded_and_can_be_called_here(tmp_path):
    @tc.ifunc
    def spent(fares: tc.column("trips.fare", np.float64, nulls=True), cities: tc.column("trips.city", str, nulls=True),
              tips: tc.column("trips.tip", bool, nulls=True), distances: tc.column("trips.distance", np.float64)):
        total, tipped = 0.0, 0
        for i in range(len(fares)):
            if fares.is_valid(i) and cities.is_valid(i) and cities.equals(i, "Köln"):
                total += fares[i] * distances[i]
                tipped += tips[i]
        return total, tipped

    spent.save(tmp_path / "spent.ifunc")
    loaded = tc.ifunc.load(tmp_path / "spent.ifunc")
    columns = [TRIPS.column(name).to_pylist() for name in ("fare", "city", "tip", "distance")]
    with tc.LocalCluster(1, data={"trips": TRIPS}) as nodes:
        assert nodes.submit(spent).result() == nodes.submit(loaded).result() == spent(*columns) == (19.5, 2)
    with pytest.raises(tc.ArgumentError, match=r"'fares' is tc.column\('trips.fare'\).*fares=LIST"):
        spent()
