# SPDX-License-Identifier: Apache-2.0
"""Calls, futures and buffers."""

import asyncio
import concurrent.futures
import pickle
import struct
import threading
import time

import numpy as np
import pytest
import threechains as tc


def test_a_call_answers_from_the_node_that_it_was_sent_to(cluster, who):
    for node in range(2):
        reply = cluster.submit(who, node=node).result()
        assert (struct.unpack("I", reply)[0], reply.node) == (node, node)


def test_calls_without_a_node_go_round_the_cluster(cluster, who):
    nodes = [cluster.submit(who).result().node for _ in range(4)]
    assert sorted(nodes) == [0, 0, 1, 1]


def test_as_completed_yields_every_future(cluster, echo):
    futures = {cluster.submit(echo, str(i)): str(i) for i in range(500)}
    done = {future: future.result().text() for future in concurrent.futures.as_completed(futures, timeout=20)}
    assert done == futures


def test_wait_returns_when_all_are_done(cluster, echo):
    futures = [cluster.submit(echo, b"x") for _ in range(10)]
    done, pending = concurrent.futures.wait(futures, timeout=20)
    assert len(done) == 10 and not pending


def test_a_future_can_be_awaited(cluster, echo):
    async def ask():
        answers = await asyncio.gather(*(asyncio.wrap_future(cluster.submit(echo, str(i))) for i in range(5)))
        return [answer.text() for answer in answers] + [(await cluster.submit(echo, "last")).text()]

    assert asyncio.run(ask()) == ["0", "1", "2", "3", "4", "last"]


def test_map_and_broadcast_cover_the_cluster(cluster, echo, who):
    assert [reply.text() for reply in cluster.map(echo, ["a", "b", "c"])] == ["a", "b", "c"]
    assert [future.result().node for future in cluster.broadcast(who)] == [0, 1]


def test_any_contiguous_buffer_is_a_payload(cluster, echo):
    array = np.arange(10, dtype=np.int32)
    for payload in (b"bytes", bytearray(b"bytes"), memoryview(b"bytes"), array):
        assert cluster.submit(echo, payload).result() == bytes(memoryview(payload).cast("B"))
    assert len(cluster.submit(echo).result()) == 0


def test_a_large_array_goes_and_comes_back_unchanged(cluster, echo):
    array = np.random.default_rng(1).random(2_000_000)
    assert np.array_equal(cluster.submit(echo, array).result().array(np.float64), array)


@pytest.mark.parametrize("is_busy", (False, True))
@pytest.mark.parametrize("size", (65_535, 65_536, 65_543, 1_000_000, 20_000_001))
def test_a_payload_may_be_changed_as_soon_as_it_was_submitted(cluster, echo, slow, size, is_busy):
    payload = np.arange(size, dtype=np.uint8)
    sent = payload.copy()
    if is_busy:  # more than the connection holds waits here
        cluster.submit(slow, struct.pack("Q", 50_000_000), node=0)
    future = cluster.submit(echo, payload, node=0)
    payload[:] = 7
    assert np.array_equal(future.result().array(np.uint8), sent)


def test_a_payload_is_held_while_it_is_sent(cluster, echo):
    payload = bytearray(b"x") * 300_000
    future = cluster.submit(echo, payload)
    payload.clear()  # a bytearray that is in use refuses that
    assert future.result() == b"x" * 300_000


def test_a_reply_is_a_buffer_and_not_a_copy(cluster, echo):
    reply = cluster.submit(echo, np.arange(4.0)).result()
    view = reply.array(np.float64)
    assert view.ctypes.data == np.frombuffer(reply, np.uint8).ctypes.data
    assert not view.flags.writeable
    del reply
    assert view.tolist() == [0, 1, 2, 3]  # the view keeps the bytes alive


def test_a_message_is_written_in_place_and_sent_again(cluster, echo):
    message = cluster[0].message(echo, 32)
    payload = np.frombuffer(message, np.float64)
    for value in (1.0, 2.0):
        payload[:] = value
        assert cluster[0].submit(echo, message).result().array(np.float64).tolist() == [value] * 4


def test_a_message_that_nobody_wrote_to_is_zeros(cluster, echo):
    for size in (1, 48, 1000, 100_000):
        for _ in range(20):
            used = bytearray(b"\xff" * size)
            cluster[0].submit(echo, used).result()
            del used
            message = cluster[0].message(echo, size)
            assert len(message) == size and not any(memoryview(message))
            memoryview(message)[:] = b"\xff" * size  # what the next one's memory may have held
            del message
    assert len(cluster[0].message(echo, 0)) == 0
    with pytest.raises(tc.Error):
        cluster[0].message(echo, 1 << 50)


def test_a_message_is_sent_with_the_ifunc_that_it_was_made_for(cluster, echo, who):
    message = cluster[0].message(who, 4)
    assert message.ifunc == "who"
    for take in (cluster[0].submit, cluster[0].send):
        with pytest.raises(tc.Error, match="'who'.*'echo'") as caught:
            take(echo, message)
        assert caught.value.status == tc.Status.INVALID
    assert cluster[1].submit(who, message).result().node == 1
    with tc.Cluster(cluster.addresses) as other, pytest.raises(tc.Error, match="another node|on its node"):
        other[0].submit(who, message)


def test_a_payload_that_is_not_contiguous_is_refused_with_what_to_do(cluster, echo):
    with pytest.raises(ValueError, match="ascontiguousarray"):
        cluster.submit(echo, np.arange(10)[::2])
    with pytest.raises(TypeError):
        cluster.submit(echo, 3)
    with pytest.raises(TypeError, match="2 arguments"):
        cluster.submit(echo, b"a", b"b")


def test_a_failure_names_node_ifunc_code_and_message(cluster, refuse):
    with pytest.raises(tc.RemoteError, match="no such row") as caught:
        cluster.submit(refuse, node=1).result()
    error = caught.value
    assert (error.node, error.ifunc, error.code, error.status) == (1, "refuse", 42, tc.Status.IFUNC)
    again = pickle.loads(pickle.dumps(error))
    assert (again.node, again.ifunc, again.code, str(again)) == (1, "refuse", 42, str(error))


def test_flush_reports_what_nobody_waited_for(cluster, refuse, echo):
    cluster.send(echo, b"fine", node=0)
    cluster.flush()
    cluster.send(refuse, node=0)
    with pytest.raises(tc.Error, match="no such row"):
        cluster.flush()


def test_a_flush_waits_for_slow_ifuncs_and_says_when_it_did_not(cluster, slow):
    cluster.send(slow, struct.pack("Q", 300_000_000), node=0)
    with pytest.raises(tc.Error) as caught:
        cluster.flush(timeout=0.01)
    assert caught.value.status == tc.Status.TIMEOUT
    cluster.flush(timeout=30)


def test_a_result_that_is_late_can_be_waited_for_again(cluster, slow):
    future = cluster.submit(slow, struct.pack("Q", 300_000_000), node=0)
    with pytest.raises(concurrent.futures.TimeoutError):
        future.result(timeout=0.01)
    assert not future.done()
    assert future.result(timeout=30) == bytes(8)


def test_a_call_whose_deadline_passes_is_a_timeout(cluster, slow):
    future = cluster.submit(slow, struct.pack("Q", 300_000_000), node=0, deadline=0.02)
    with pytest.raises(tc.CallTimeout) as caught:
        future.result()
    assert isinstance(caught.value, TimeoutError) and caught.value.ifunc == "slow"
    cluster.flush()


def test_a_call_that_is_canceled_has_no_answer_and_the_next_one_has(cluster, slow, echo):
    future = cluster.submit(slow, struct.pack("Q", 300_000_000), node=0)
    told = []
    future.add_done_callback(told.append)
    assert future.cancel() and future.cancelled() and future.done()
    assert future.cancel(), "it stays so"
    assert told == [future]
    with pytest.raises(concurrent.futures.CancelledError):
        future.result()
    with pytest.raises(concurrent.futures.CancelledError):
        future.exception()
    assert cluster.submit(echo, b"x", node=0).result(timeout=30) == b"x"


def test_a_call_that_was_answered_cannot_be_canceled(cluster, echo):
    future = cluster.submit(echo, b"x")
    assert future.result() == b"x"
    assert not future.cancel() and not future.cancelled()
    assert future.result() == b"x"


def test_calls_that_wait_at_a_node_are_not_run_when_they_are_canceled(cluster, slow, echo):
    first = cluster.submit(slow, struct.pack("Q", 200_000_000), node=0)
    others = [cluster.submit(slow, struct.pack("Q", 10_000_000_000), node=0) for _ in range(100)]
    assert all(future.cancel() for future in others)
    assert first.result(timeout=30) == bytes(8)
    done, not_done = concurrent.futures.wait(others, timeout=30)
    assert done == set(others) and not not_done
    assert set(concurrent.futures.as_completed(others)) == set(others)
    assert cluster.submit(echo, b"behind them", node=0).result(timeout=60) == b"behind them", "each would take 5 s"


def test_a_map_that_is_left_takes_its_other_calls_back(cluster, slow, echo):
    second = struct.pack("Q", 2_000_000_000)
    answers = cluster.map(slow, [struct.pack("Q", 1), *[second] * 240])
    assert next(answers) == bytes(8)
    answers.close()
    assert cluster.submit(echo, b"behind them", node=0).result(timeout=60) == b"behind them", "they would take 120 s"


@pytest.mark.parametrize("leave", ["it is closed", "nobody refers to it", "one of its calls is refused"])
def test_a_map_of_which_no_answer_was_taken_takes_its_calls_back(cluster, slow, echo, leave):
    second = struct.pack("Q", 2_000_000_000)
    if leave == "it is closed":
        cluster.map(slow, [second] * 240).close()
    elif leave == "nobody refers to it":
        cluster.map(slow, [second] * 240)
    else:
        with pytest.raises(tc.ArgumentTypeError, match="is a int, which has no bytes"):
            cluster.map(slow, [*[second] * 240, 5])
    assert cluster.submit(echo, b"behind them", node=0).result(timeout=60) == b"behind them", "they would take 120 s"


def test_a_task_that_is_canceled_cancels_its_call(cluster, slow):
    async def run():
        future = cluster.submit(slow, struct.pack("Q", 300_000_000), node=0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(future, 0.01)
        return future

    assert asyncio.run(run()).cancelled()


def test_threads_share_a_cluster(cluster, echo):
    wrong = []

    def ask(name):
        for i in range(300):
            text = f"{name}-{i}"
            if cluster.submit(echo, text).result(timeout=30).text() != text:
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_other_threads_run_while_one_waits(cluster, slow):
    counted = 0
    future = cluster.submit(slow, struct.pack("Q", 500_000_000), node=0)
    waiter = threading.Thread(target=future.result)
    waiter.start()
    while waiter.is_alive():
        counted += 1
        time.sleep(0.001)
    assert counted > 20 and future.done()


def test_a_callback_that_raises_hurts_nobody(cluster, echo, caplog):
    future = cluster.submit(echo, b"x")
    called = threading.Event()

    def broken(_):
        called.set()
        raise ValueError("in a callback")

    future.add_done_callback(broken)
    assert called.wait(10)
    assert cluster.submit(echo, b"y").result() == b"y"
    end = time.monotonic() + 10
    while "in a callback" not in caplog.text:  # concurrent.futures logs it, a moment after it was raised
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_node_that_dies_fails_its_calls_by_name(echo, slow):
    with tc.LocalCluster(2) as nodes:
        future = nodes.submit(slow, struct.pack("Q", 1 << 60), node=1)
        nodes.submit(echo, b"x", node=0).result()
        nodes._process.stdin.close()  # the nodes end
        with pytest.raises(tc.RemoteError) as caught:
            future.result(timeout=30)
        assert caught.value.status in (tc.Status.DISCONNECTED, tc.Status.CLOSED)


def test_a_closed_cluster_fails_what_waits_and_refuses_more(echo, slow):
    with tc.LocalCluster(1) as nodes:
        endpoint = nodes[0]
        future = nodes.submit(slow, struct.pack("Q", 1 << 60))
    with pytest.raises(tc.RemoteError) as caught:
        future.result(timeout=5)
    assert caught.value.status == tc.Status.CLOSED
    with pytest.raises(tc.Error, match="closed"):
        nodes.submit(echo, b"x")
    with pytest.raises(tc.Error, match="closed"):
        endpoint.submit(echo, b"x")


def test_nobody_at_an_address_is_an_error(echo):
    with pytest.raises(tc.Error) as caught:
        tc.Cluster(["127.0.0.1:1"], timeout=2)
    assert caught.value.status in (tc.Status.DISCONNECTED, tc.Status.TIMEOUT, tc.Status.IO)


def test_a_python_node_serves_its_arrays(echo):
    column = np.arange(100, dtype=np.float64)
    total = tc.ifunc.from_c("""
        #include <threechains/ifunc.h>
        void total_main(void *payload, size_t size, void *target_args) {
          (void)payload, (void)size, (void)target_args;
          double sum = 0;
          size_t bytes = 0;
          double *column = tc_data("column", &bytes);
          if (!column) { tc_fail(1, "no column"); return; }
          for (size_t i = 0; i < bytes / 8; ++i) sum += column[i];
          column[0] = -1;
          tc_reply(&sum, sizeof sum);
        }""")
    with tc.Node(data={"column": column}) as server, tc.Cluster([server.address]) as cluster:
        assert cluster.submit(total).result().array(np.float64)[0] == 4950
        assert column[0] == -1  # the array itself, no copy
        server.withdraw("column")
        with pytest.raises(tc.RemoteError, match="no column"):
            cluster.submit(total).result()
        assert server.stat("executed") == 2
        numbers = server.stats()
        assert numbers["executed"] == 2 and numbers["links"] == 1 and "code-bytes" in numbers


def test_an_option_that_makes_no_sense_is_named():
    with pytest.raises(tc.Error, match="colour"):
        tc.Node(colour="red")
