# SPDX-License-Identifier: Apache-2.0
"""Signals whose handlers raise, and callbacks that do, at any moment: no call is lost. Each in a process of its own."""

# struck(work, seconds): work(), in the middle of which a handler raises, once.
STRIKE = """
import itertools, os, signal, threading, time

class Strike(BaseException):
    pass

def strike(number, frame):
    raise Strike

signal.signal(signal.SIGALRM, strike)

def struck(work, seconds):
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        work()
        time.sleep(30)  # it comes here at the latest
    except Strike:
        pass
"""


def run(script, source):
    done = script(STRIKE + source)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]


def test_a_handler_that_raises_while_a_link_is_full_hurts_no_call(script):
    run(script, """
echo, payload = tc.ifunc.load("echo.ifunc"), bytes(64 * 1024)
with tc.LocalCluster(1) as nodes:
    def fill():
        futures.clear()
        for _ in range(400):  # more than the link has room for
            futures.append(nodes.submit(echo, payload))

    futures, end = [], time.monotonic() + 2
    for i in itertools.count():
        struck(fill, 0.002 + i % 20 * 0.0011)
        if time.monotonic() > end:
            break
    for future in futures:
        assert len(future.result(timeout=30)) == len(payload)
    assert nodes.submit(echo, b"x").result(timeout=30) == b"x"
print("done")
""")


def test_a_handler_that_raises_while_futures_are_settled_loses_none(script):
    run(script, """
echo = tc.ifunc.load("echo.ifunc")
with tc.LocalCluster(2) as nodes:
    def ask():
        while True:
            for node in (0, 1, 0, 1, 0):
                futures.append(nodes.submit(echo, b"x", node=node))
                futures[-1].add_done_callback(called.append)
            futures[-1].result()

    futures, called, end = [], [], time.monotonic() + 2
    for i in itertools.count():
        struck(ask, 0.0001 + i % 50 * 0.000013)
        if time.monotonic() > end:
            break
    for future in futures:
        assert future.result(timeout=30) == b"x"
print("done")
""")


def test_a_handler_that_raises_while_answers_are_decoded_loses_none_of_them(script):
    run(script, """
echo = tc.ifunc.load("echo.ifunc")
main, interrupted = threading.get_ident(), []

def decode(reply):
    if threading.get_ident() == main and not interrupted:
        interrupted.append(True)
        os.kill(os.getpid(), signal.SIGALRM)
        for _ in range(10):  # the handler runs here
            pass
    return reply.text()

with tc.LocalCluster(1) as nodes:
    plain = nodes.submit(echo, b"plain")
    plain.result()
    for at in range(3):
        interrupted.clear()
        echo.decode = decode
        futures = [nodes.submit(echo, str(i)) for i in range(10)]
        try:
            futures[at * 4].result(timeout=10)
        except Strike:
            pass
        interrupted.append(True)  # not any more: another thread may have decoded what we asked for
        assert [future.result(timeout=10) for future in futures] == [str(i) for i in range(10)]
print("done")
""")


def test_who_asks_while_another_thread_settles_waits_no_longer_than_it_said(script):
    run(script, """
echo = tc.ifunc.load("echo.ifunc")
with tc.LocalCluster(1) as nodes:
    echo.decode = lambda reply: time.sleep(2)
    future = nodes.submit(echo, b"x")
    threading.Thread(target=future.result).start()
    time.sleep(0.5)
    started = time.monotonic()
    try:
        future.result(timeout=0.1)
    except TimeoutError:
        assert time.monotonic() - started < 1
    else:
        assert False
print("done")
""")


def test_a_callback_that_exits_does_not_end_the_background_thread(script):
    run(script, """
import asyncio, concurrent.futures, logging, sys
logged = []
handler = logging.Handler()
handler.emit = lambda record: logged.append(record.exc_info[0])
logging.getLogger("concurrent.futures").addHandler(handler)
echo, slow = tc.ifunc.load("echo.ifunc"), tc.ifunc.load("slow.ifunc")
with tc.LocalCluster(1) as nodes:
    called = []
    future = nodes.submit(echo, b"x")
    future.add_done_callback(lambda future: sys.exit("in a callback"))
    future.add_done_callback(called.append)
    time.sleep(0.5)  # it is the keeper that settles it
    assert called == [future] and logged == [SystemExit], (called, logged)

    async def ask():
        return (await asyncio.wait_for(asyncio.wrap_future(nodes.submit(echo, b"awaited")), 10)).text()

    assert asyncio.run(ask()) == "awaited"
    late = nodes.submit(slow, (2 ** 30).to_bytes(8, "little"), deadline=0.1)
    assert concurrent.futures.wait([late], timeout=10).done == {late}
    assert isinstance(late.exception(), tc.CallTimeout)
print("done")
""")


def test_a_handler_that_raises_just_when_a_wait_has_given_up_the_lock_ends_the_wait_with_what_it_raises(script):
    run(script, """
from threechains._future import _Condition

condition = _Condition()
give_up = condition._release_save

def interrupted():
    give_up()
    raise Strike

condition._release_save = interrupted
try:
    with condition:
        condition.wait(30)
except Strike:
    pass
assert condition.acquire(blocking=False), "nobody has the lock"
print("done")
""")
