# SPDX-License-Identifier: Apache-2.0
"""What happens at a process's edges: Ctrl-C, exit, fork. Each in a process of its own."""

import os
import signal
import time


def ends(pid):
    """Does this process end within ten seconds?"""
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.1)
    return False


def test_the_interpreter_exits_with_calls_in_flight(script):
    done = script("""
        nodes = tc.LocalCluster(1)
        futures = [nodes.submit(tc.ifunc.load("slow.ifunc"), b"\\xff" * 8) for _ in range(10)]
        print("leaving")
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_a_cluster_that_nobody_refers_to_ends_and_its_answers_still_come(script):
    done = script("""
        import gc, threading
        echo = tc.ifunc.load("echo.ifunc")
        nodes = tc.LocalCluster(1)
        for _ in range(3):
            print(tc.Cluster(nodes.addresses).submit(echo, b"x").result().text())
        gc.collect()
        for thread in threading.enumerate():
            if "keeper" in thread.name and thread is not nodes.node._keeper:
                thread.join(10)
        print(sum("keeper" in thread.name for thread in threading.enumerate()))
        left = tc.Cluster(nodes.addresses)
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "x\nx\nx\n1\n", "")


def test_ctrl_c_ends_a_wait(script):
    process = script("""
        import time
        with tc.LocalCluster(1) as nodes:
            future = nodes.submit(tc.ifunc.load("slow.ifunc"), b"\\xff" * 8)
            try:
                print("waiting", flush=True)
                future.result()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
    """, start=True)
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (0, "interrupted\n") and only_closing_waits(errors), errors


def only_closing_waits(errors):
    """The call goes on, so that close() waits for it, and may say so."""
    return all(line.startswith(("close() waits", "the nodes have not ended")) for line in errors.splitlines())


def test_ctrl_c_at_a_terminal_leaves_the_nodes_alone(script):
    process = script("""
        with tc.LocalCluster(2) as nodes:
            future = nodes.submit(tc.ifunc.load("slow.ifunc"), b"\\xff" * 8, node=0)
            try:
                print("waiting", flush=True)
                future.result()
            except KeyboardInterrupt:
                print(nodes.submit(tc.ifunc.load("echo.ifunc"), b"still here", node=1).result().text(), flush=True)
    """, start=True)
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the whole group
    output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (0, "still here\n") and only_closing_waits(errors), errors


def test_nothing_is_left_of_a_cluster_that_was_left(script):
    done = script("""
        import os, subprocess, threading
        def running(pid):
            try:
                return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
            except FileNotFoundError:
                return False
        def use():
            try:
                with tc.LocalCluster(2, data={"x": b"data"}) as nodes:
                    pid, directory = nodes._process.pid, nodes._directory.name
                    children = open(f"/proc/{pid}/task/{pid}/children").read().split()
                    assert len(children) == 3 and all(map(running, children)), children
                    future = nodes.submit(tc.ifunc.load("echo.ifunc"), b"x")
                    raise ValueError("in the middle")
            except ValueError:
                assert future.done()
            return [child for child in [pid, *children] if running(child)], os.path.exists(directory)
        def held():
            return threading.active_count(), len(os.listdir("/proc/self/fd"))
        print(*use())
        before = held()  # UCX keeps a few files for the next one
        print(*use(), held() == before or (before, held()))
    """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[] False\n[] False True\n", "")


def test_a_forked_child_is_told_so_and_does_not_disturb_its_parent(script):
    done = script("""
        import os, warnings
        warnings.simplefilter("ignore")
        echo = tc.ifunc.load("echo.ifunc")
        with tc.LocalCluster(1) as nodes:
            nodes.submit(echo, b"before").result()
            child = os.fork()
            if child == 0:
                try:
                    nodes.submit(echo, b"child").result()
                    os._exit(1)
                except tc.Error as error:
                    assert error.status == tc.Status.CLOSED and "forked" in str(error), error
                nodes.close()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            print(nodes.submit(echo, b"after").result().text())
    """)
    assert (done.returncode, done.stdout) == (0, "after\n"), done.stderr


def test_a_cluster_closes_at_once_while_a_forked_child_lives(script):
    done = script("""
        import os, time, warnings
        warnings.simplefilter("ignore")
        nodes = tc.LocalCluster(1, data={"x": b"data"})
        directory = nodes._directory.name
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        leaving = os.fork()
        if leaving == 0:
            raise SystemExit  # and not os._exit(): what Python does at its end is for the parent to do
        assert os.waitpid(leaving, 0)[1] == 0
        assert os.path.exists(directory), "the child has removed its parent's directory"
        print(nodes.submit(tc.ifunc.load("echo.ifunc"), b"after").result().text())
        started = time.monotonic()
        nodes.close()
        print(time.monotonic() - started < 6, os.path.exists(directory))
        os.kill(child, 9)
    """)
    assert (done.returncode, done.stdout) == (0, "after\nTrue False\n"), done.stderr


def test_nodes_do_not_outlive_a_killed_program_because_a_child_of_it_lives(script):
    process = script("""
        import os, time, warnings
        warnings.simplefilter("ignore")
        nodes = tc.LocalCluster(1)
        child = os.fork()
        if child == 0:
            for descriptor in (0, 1, 2):
                os.close(descriptor)
            time.sleep(60)
            os._exit(0)
        print(nodes._process.pid, child, flush=True)
        time.sleep(60)
    """, start=True)
    pid, child = map(int, process.stdout.readline().split())
    process.kill()
    process.communicate()
    try:
        assert ends(pid)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_forked_child_is_told_how_to_get_a_node_of_its_own(script):
    done = script("""
        import os, warnings
        warnings.simplefilter("ignore")
        with tc.LocalCluster(1) as nodes:
            child = os.fork()
            if child == 0:
                try:
                    tc.Cluster(nodes.addresses)
                except tc.Error as error:
                    os._exit(0 if error.status == tc.Status.UNSUPPORTED and "spawn" in str(error) else 1)
                os._exit(2)
            print(os.waitpid(child, 0)[1])
    """)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_a_spawned_process_has_a_node_of_its_own(script):
    done = script("""
        import multiprocessing
        def ask(addresses):
            with tc.Cluster(addresses) as own:
                return own.submit(tc.ifunc.load("echo.ifunc"), b"spawned").result().text()
        if __name__ == "__main__":
            with tc.LocalCluster(1) as nodes, multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(ask, (nodes.addresses,)))
    """)
    assert (done.returncode, done.stdout) == (0, "spawned\n"), done.stderr


def test_a_cluster_ends_with_a_killed_program(script):
    process = script("""
        import time
        nodes = tc.LocalCluster(1)
        print(nodes._process.pid, flush=True)
        time.sleep(60)
    """, start=True)
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate()
    assert ends(pid)


def test_signal_handlers_stay_pythons(script):
    done = script("""
        import faulthandler, os, signal
        faulthandler.enable()
        with tc.LocalCluster(1) as nodes:
            caught = [line for line in open("/proc/self/status") if line.startswith("SigCgt")]
        assert "UCX_ERROR_SIGNALS" not in os.environ
        os.kill(os.getpid(), signal.SIGSEGV)
    """)
    assert done.returncode == -signal.SIGSEGV and "Fatal Python error" in done.stderr
