# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: building ifuncs, starting nodes, deadlines, and leaving nothing behind.

A test file ends with `harness.main(globals())`. Its functions `test_*` are the cases; their names are sentences.
    test_foo.py            runs all cases
    test_foo.py CASE       runs one; exit code 77 and a line "SKIP: reason" when it cannot run here
    test_foo.py --list     names them, one a line, with their labels: "CASE,LABEL,LABEL"
`LABELS` in the file is for all of its cases.
Each case may take a parameter `t`, a Test: a directory of its own, and processes that end with it.
"""

import contextlib
import inspect
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TC_BUILD_DIR", ROOT / "build/release")).resolve()
IFUNC = str(BUILD / "bin/ifunc")
CLIENT = str(BUILD / "bin/tc_test_client")
MEMBER = str(BUILD / "bin/tc_test_member")
IFUNC_SOURCES = pathlib.Path(__file__).resolve().parent / "ifuncs"
SHM = {"TC_TRANSPORT": "shm"}
TCP = {"TC_TRANSPORT": "tcp"}
# For nodes with transport=ucx, and for programs that use UCX themselves. On shared memory, tcp carries the wire-up.
UCX_SHM = {"UCX_TLS": "posix,self,tcp", "UCX_NET_DEVICES": "lo"}
UCX_TCP = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}


def environment(changes):
    """Ours with `changes`; None takes a variable out."""
    return {name: value for name, value in {**os.environ, **changes}.items() if value is not None}


class Machine:
    """A kind of processor that nodes and commands of a test run on: this one, or an emulated one."""

    def __init__(self, name, command):
        self.name, self.command = name, command  # the command: `ifunc` there

    @staticmethod
    def native():
        return Machine(os.uname().machine, [IFUNC])

    @staticmethod
    def other(name):
        """`aarch64` or `riscv64`: what the preset of that name built, under qemu. Skips when something is missing."""
        if name == os.uname().machine:
            return Machine.native()
        program = BUILD.parent / name / "bin/ifunc"
        if not program.exists():
            raise Skip(f"there is no build for {name}; `scripts/test mixed` makes it (docs/heterogeneous.md)")
        qemu = shutil.which(f"qemu-{name}-static")
        if qemu is None:
            raise Skip(f"qemu-{name}-static (qemu-user-static) is not installed")
        found = subprocess.run([ROOT / "scripts/sysroot", name, "--cached"], capture_output=True, text=True, check=False)
        if found.returncode != 0:
            raise Skip(found.stderr.strip())
        return Machine(name, [qemu, "-L", found.stdout.strip(), str(program)])


def labels(*names):
    """For a case: `release_only`, it says nothing under a sanitizer; `serial`, it wants the machine for itself."""
    def mark(case):
        case.labels = names
        return case
    return mark


class Skip(Exception):
    pass


def free_addresses(count):
    """Addresses that nobody listened on a moment ago, for nodes that must know each other's beforehand; none that the
    system gives to whoever asks for any port."""
    held = []
    while len(held) < count:
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
            held.append(one)
        except OSError:
            one.close()
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in held]
    for one in held:
        one.close()
    return addresses


def wait_for(condition, what, seconds=10.0):
    """Calls `condition` until it gives something true, which is returned."""
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


class Process:
    """A child whose output goes to files, so that nobody has to read it in time."""

    def __init__(self, test, arguments, env, label):
        self.out_path, self.err_path = test.path(f"{label}.out"), test.path(f"{label}.err")
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

        self.address = wait_for(ready, "node ready", seconds)[0].split()[1]

    def stop(self, seconds=10.0):
        """Asks it to stop. Its exit code and, with --stats, its counters."""
        self.signal(signal.SIGTERM)
        code = self.wait(seconds)
        lines = [line.split() for line in self.out.splitlines() if line.startswith("stat ")]
        self.stats = {name: int(value) for _, name, value in lines}
        return code


class Test:
    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="threechains-test-")
        self.processes, self.cleanups = [], []

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        pathlib.Path(path).write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def run(self, *arguments, env={}, seconds=30.0, stdin=b""):
        """Runs a program to its end, which must come in time."""
        start = time.monotonic()
        try:
            done = subprocess.run(arguments, input=stdin, capture_output=True, timeout=seconds,
                                  env=environment(env), check=False)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{arguments} still runs after {seconds} s; stderr: {error.stderr}") from None
        done.stdout, done.stderr = (b.decode(errors="replace") for b in (done.stdout, done.stderr))
        return Result(done, time.monotonic() - start)

    def ifunc(self, *arguments, **options):
        return self.run(IFUNC, *arguments, **options)

    def start(self, *arguments, env={}, kind=Process):
        process = kind(self, list(arguments), env, f"process{len(self.processes)}")
        self.processes.append(process)
        return process

    def serve(self, *options, env={}, prefix=(), machine=None):
        command = machine.command if machine else [IFUNC]
        node = self.start(*prefix, *command, "serve", *options, env=env, kind=Node)
        node.wait_until_ready()
        return node

    def client(self, *arguments, **options):
        if not os.path.exists(CLIENT):
            raise Skip("tc_test_client is not built")
        return self.run(CLIENT, *arguments, **options)

    def build(self, source, *options):
        """Builds an ifunc from a file of ifuncs/ or from `NAME.c` written with write(). The .ifunc file."""
        given = pathlib.Path(source)
        path = given if given.is_absolute() else IFUNC_SOURCES / source
        # Names may repeat within a case (another version of an ifunc): each gets a directory.
        out = os.path.join(tempfile.mkdtemp(dir=self.directory), path.stem + ".ifunc")
        result = self.ifunc("build", str(path), "-o", out, *options, seconds=60)
        assert result.code == 0, f"building {source}: {result}"
        return out

    def namespaces(self, count=2):
        """Network namespaces joined by a bridge: (name, address) of each. Needs root and the `ip` tool."""
        if os.geteuid() != 0:
            raise Skip("network namespaces need root")
        if shutil.which("ip") is None:
            raise Skip("the ip tool (iproute2) is not installed")
        tag = f"tc{os.getpid()}"
        names = [f"{tag}n{i}" for i in range(count)]
        steps = [f"ip netns add {tag}b", f"ip -n {tag}b link add br0 type bridge", f"ip -n {tag}b link set br0 up"]
        for i, name in enumerate(names):
            steps += [f"ip netns add {name}", f"ip -n {name} link set lo up",
                      f"ip -n {name} link add eth0 type veth peer name v{i} netns {tag}b",
                      f"ip -n {tag}b link set v{i} master br0 up",
                      f"ip -n {name} addr add 10.99.0.{i + 1}/24 dev eth0", f"ip -n {name} link set eth0 up"]
        for name in [*names, f"{tag}b"]:
            self.cleanups.append(lambda name=name: subprocess.run(["ip", "netns", "del", name], capture_output=True,
                                                                  check=False))
        for step in steps:
            result = self.run(*step.split())
            if result.code != 0:
                raise Skip(f"network namespaces cannot be had here: `{step}` said {result.err.strip()}")
        # Until the kernel has seen that somebody is at the other end, UCX says that there is no such device.
        for name in names:
            wait_for(lambda name=name: "state UP" in self.run("ip", "-n", name, "link", "show", "eth0").out,
                     f"eth0 of {name} running")
        return [(name, f"10.99.0.{i + 1}") for i, name in enumerate(names)]

    def close(self):
        for process in self.processes:
            process.kill()
        for cleanup in self.cleanups:
            cleanup()
        shutil.rmtree(self.directory, ignore_errors=True)


def inside(namespace):
    """What goes in front of a command that is to run in this network namespace."""
    return ("ip", "netns", "exec", namespace)


def run_case(name, case):
    """0 passed, 1 failed, 77 skipped."""
    test = Test()
    try:
        case(test) if inspect.signature(case).parameters else case()
        print(f"PASS: {name}")
        return 0
    except Skip as reason:
        print(f"SKIP: {reason}")
        return 77
    except Exception:  # an assertion, or a mistake of the case's own: both fail it
        traceback.print_exc()
        for process in test.processes:
            print(f"--- process {process.pid}: stdout\n{process.out[-3000:]}\n--- stderr\n{process.err[-6000:]}",
                  file=sys.stderr)
        print(f"FAIL: {name}")
        return 1
    finally:
        test.close()


def main(namespace):
    cases = {name: value for name, value in namespace.items() if name.startswith("test_") and callable(value)}
    sys.stdout.reconfigure(line_buffering=True)
    if sys.argv[1:] == ["--list"]:
        print("\n".join(",".join([name, *namespace.get("LABELS", ()), *getattr(case, "labels", ())])
                        for name, case in cases.items()))
        return
    unknown = [name for name in sys.argv[1:] if name not in cases]
    if unknown:
        sys.exit(f"no such case: {unknown[0]}")
    codes = [run_case(name, cases[name]) for name in sys.argv[1:] or cases]
    if 1 in codes:
        sys.exit(1)
    sys.exit(77 if codes and all(code == 77 for code in codes) else 0)
