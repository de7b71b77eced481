# SPDX-License-Identifier: Apache-2.0
"""Programs that a test runs to their end, and processes that live beside it. Everything has a deadline."""

import contextlib
import os
import pathlib
import signal
import subprocess
import time


def environment(changes):
    """Ours with `changes`; None takes a variable out."""
    return {name: value for name, value in {**os.environ, **changes}.items() if value is not None}


def slowness():
    """Upper limits of time are multiplied by this: how many processes want to run on each core of this machine, now or in
    the last minute, and TC_TIME_SCALE (for emulators and sanitizers). Lower limits never are."""
    running = int(pathlib.Path("/proc/loadavg").read_text().split()[3].split("/")[0])
    wanted = max(running, os.getloadavg()[0]) / len(os.sched_getaffinity(0))
    return max(1.0, wanted) * float(os.environ.get("TC_TIME_SCALE", "1"))


def run_until(condition, what, seconds=60.0):
    """Calls `condition` until it gives something true, which is returned. The limit is for what never comes."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.01)


class Result:
    def __init__(self, done, seconds):
        self.code, self.out, self.err, self.seconds = done.returncode, done.stdout, done.stderr, seconds

    def __repr__(self):
        return f"exit code {self.code} after {self.seconds:.2f} s\nstdout: {self.out!r}\nstderr: {self.err!r}"


def run(*arguments, env={}, seconds=30.0, stdin=b""):
    """Runs a program to its end, which must come in time."""
    start = time.monotonic()
    try:
        done = subprocess.run(arguments, input=stdin, capture_output=True, timeout=seconds,
                              env=environment(env), check=False)
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{arguments} still runs after {seconds} s; stderr: {error.stderr}") from None
    done.stdout, done.stderr = (b.decode(errors="replace") for b in (done.stdout, done.stderr))
    return Result(done, time.monotonic() - start)


class Process:
    """A child whose output goes to files, so that nobody has to read it in time."""

    def __init__(self, arguments, env, output):
        self.out_path, self.err_path = f"{output}.out", f"{output}.err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            env=environment(env), start_new_session=True)
        self.pid = self.process.pid

    @property
    def out(self):
        return pathlib.Path(self.out_path).read_text(errors="replace")

    @property
    def err(self):
        return pathlib.Path(self.err_path).read_text(errors="replace")

    def running(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=10.0):
        """Its exit code; it must end in time."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"process {self.pid} still runs after {seconds} s; its stderr: {self.err}") from None

    def kill(self):
        if self.running():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait(10)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_kib(self):
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    def maps(self):
        return pathlib.Path(f"/proc/{self.pid}/maps").read_text()


class Node(Process):
    """An `ifunc serve`; its address once it is ready."""

    def wait_until_ready(self, seconds=20.0):
        def ready():
            assert self.running(), f"node ended with exit code {self.process.returncode}: {self.err}"
            return [line for line in self.out.splitlines() if line.startswith("ready ")]

        self.address = run_until(ready, "node ready", seconds)[0].split()[1]

    def stop(self, seconds=10.0):
        """Asks it to stop. Its exit code and, with --stats, its counters."""
        self.signal(signal.SIGTERM)
        code = self.wait(seconds)
        lines = [line.split() for line in self.out.splitlines() if line.startswith("stat ")]
        self.stats = {name: int(value) for _, name, value in lines}
        return code
