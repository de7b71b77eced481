# SPDX-License-Identifier: Apache-2.0
"""`ifunc serve --metrics`: what Prometheus and probes get, and what strangers get who connect there."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading

import pytest

import kit
from kit import SHM

ECHO, LINGER = (str(kit.BUILD / f"ifuncs/{name}.ifunc") for name in ("echo", "linger"))
# The ifuncs of a test run on the node's own thread, whatever the environment of the tests says.
ONE_THREAD = ("--threads", "1", "--isolate", "none")
MONITORING = kit.ROOT / "monitoring"
# What Prometheus says that it takes.
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

pytestmark = pytest.mark.skipif(not (kit.BUILD / "lib/libthreechains_metrics.so").exists(),
                                reason="the plug-in is not built: libmicrohttpd or prometheus-cpp is missing")


class Page:
    """Where a node serves its metrics."""

    def __init__(self, node):
        found = kit.run_until(lambda: re.search(r"metrics at http://(\S+):(\d+)/metrics", node.err), "the log has the address")
        self.host, self.port = found[1].strip("[]"), int(found[2])

    def ask(self, path, method="GET", seconds=60.0, headers=None):
        """Status, headers and body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=seconds * kit.slowness())
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()

    def status(self, path):
        return self.ask(path)[0]

    def scrape(self):
        """The numbers by their names with labels, as they are written."""
        status, _, body = self.ask("/metrics")
        assert status == 200, body
        return dict(line.rsplit(" ", 1) for line in body.splitlines() if not line.startswith("#"))

    def number(self, name):
        return float(self.scrape()[name])

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=60 * kit.slowness())


def serve(t, *options, env=SHM):
    node = t.serve("--metrics", "127.0.0.1:0", *options, env=env)
    return node, Page(node)


@contextlib.contextmanager
def lingering(t, *options):
    """A node whose own thread is inside the ifunc `linger`, until the end of the block."""
    gate = t.write("gate", struct.pack("II", 0, 0))
    node, page = serve(t, "--data", f"gate={gate}", *ONE_THREAD, *options)
    page.scrape()
    sender = t.start(kit.IFUNC, "send", LINGER, node.address, "--payload", "x", "--timeout", "600000", env=SHM)
    kit.run_until(lambda: struct.unpack("II", pathlib.Path(gate).read_bytes())[0] == 1, "the ifunc runs")
    # Until then a report from before is young enough to be told.
    kit.run_until(lambda: page.number("threechains_report_age_seconds") > 0.2, "no report comes any more")
    try:
        yield node, page
    finally:
        with open(gate, "r+b") as file:
            file.seek(4)
            file.write(struct.pack("I", 1))
    sender.wait()


def test_the_page_has_what_the_node_counts_and_says_of_its_process(t):
    node, page = serve(t)
    assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
    status, headers, body = page.ask("/metrics")
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", headers
    assert "# HELP threechains_executed_total Ifuncs that ran.\n# TYPE threechains_executed_total counter\n" in body
    kit.run_until(lambda: page.number("threechains_executed_total") == 1, "the page has the call")
    numbers = page.scrape()
    version = t.ifunc("--version").out.split()[-1]
    assert numbers[f'threechains_build_info{{version="{version}"}}'] == "1", numbers
    assert float(numbers["threechains_report_age_seconds"]) < 60 and float(numbers["threechains_uptime_seconds"]) > 0
    assert numbers["threechains_draining"] == "0"
    assert float(numbers["process_resident_memory_bytes"]) > 1e6 and float(numbers["process_open_fds"]) > 3
    listed = re.findall(r"^([\w-]+) \([\w-]+\)$", t.ifunc("statistics").out, re.MULTILINE)
    assert len([name for name in numbers if re.fullmatch(r"threechains_\w+", name)]) >= len(listed)
    assert node.stop() == 0


def test_promtool_finds_nothing_wrong(t):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    node, page = serve(t)
    assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
    body = page.ask("/metrics")[2]
    done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for words in (["config", "--syntax-only", MONITORING / "prometheus.yml"], ["rules", MONITORING / "alerts.yml"]):
        done = subprocess.run(["promtool", "check", *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done


def samples(body):
    """Names of time series, with numbers in their labels as numbers."""
    return {re.sub(r'le="([^"]+)"', lambda found: f"le={float(found[1])}", line.rsplit(" ", 1)[0])
            for line in body.splitlines() if not line.startswith("#")}


def test_who_asks_for_openmetrics_gets_the_same_numbers_in_it(t):
    node, page = serve(t)
    assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
    kit.run_until(lambda: page.number("threechains_executed_total") == 1, "the page has the call")
    status, headers, body = page.ask("/metrics", headers={"Accept": OPENMETRICS})
    assert (status, headers["Vary"]) == (200, "Accept")
    assert headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert body.endswith("\n# EOF\n") and "# TYPE threechains_executed counter\n" in body, body
    older = page.ask("/metrics")
    assert older[1]["Content-Type"].startswith("text/plain; version=0.0.4") and samples(body) == samples(older[2])


def test_a_strict_reader_of_openmetrics_finds_nothing_wrong(t):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    node, page = serve(t)
    assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
    kit.run_until(lambda: page.number("threechains_executed_total") == 1, "the page has the call")
    body = page.ask("/metrics", headers={"Accept": OPENMETRICS})[2]
    families = {family.name: family for family in parser.text_string_to_metric_families(body)}
    assert families["threechains_executed"].type == "counter" and families["threechains_executed"].samples[0].value == 1
    assert families["threechains_ifunc_run_seconds"].unit == "seconds"


def test_there_are_three_pages_to_get_and_nothing_else(t):
    _, page = serve(t)
    for path, body in (("/healthz", "ok\n"), ("/readyz", "ok\n")):
        kit.run_until(lambda path=path: page.status(path) == 200, path)
        assert page.ask(path)[2] == body
    status, headers, body = page.ask("/metrics", "HEAD")
    assert (status, body) == (200, "") and int(headers["Content-Length"]) > 1000
    for path in ("/", "/metrics/", "/metric", "/healthz/x", "/..", "/%00"):
        assert page.status(path) == 404, path
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        status, headers, _ = page.ask("/metrics", method)
        assert (status, headers["Allow"]) == (405, "GET, HEAD"), method


def test_a_node_without_the_option_loads_neither_library(t):
    with_it, _ = serve(t)
    without = t.serve(env=SHM)
    for library in ("libmicrohttpd", "libprometheus", "libthreechains_metrics"):
        assert library in with_it.maps() and library not in without.maps(), library


def test_it_listens_at_ipv6_too(t):
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError as error:
        pytest.skip(f"there is no IPv6 here: {error}")
    node = t.serve("--metrics", "[::1]:0", env=SHM)
    page = Page(node)
    assert page.host == "::1" and page.status("/metrics") == 200


def test_what_is_wrong_with_the_address_is_said_before_the_node_is_ready(t):
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        wrong = [(["127.0.0.1"], 2, "is not ADDRESS:PORT"), (["127.0.0.1:70000"], 2, "is not ADDRESS:PORT"),
                 (["0.0.0.0:0"], 2, "--metrics-open"), (["10.0.0.1:9100"], 2, "--metrics-open"),
                 (["no.such.host.invalid:9100", "--metrics-open"], 2, "no.such.host.invalid"),
                 ([f"127.0.0.1:{port}"], 1, f"cannot listen at 127.0.0.1:{port}: Address already in use")]
        for options, code, words in wrong:
            result = t.ifunc("serve", "--metrics", *options, env=SHM)
            assert result.code == code and result.out == "" and words in result.err, (options, result)


def test_a_file_may_set_it_and_what_is_wrong_there_is_told_with_the_line(t):
    good = t.write("good.toml", 'listen = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\n')
    assert t.ifunc("serve", "--check-config", good).code == 0
    assert Page(t.serve("--config", good, env=SHM)).status("/metrics") == 200
    for text, words in (('metrics = "9100"\n', "line 1: '9100' is not ADDRESS:PORT"),
                        ('metrics = "0.0.0.0:9100"\n', "--metrics-open")):
        for option in ("--config", "--check-config"):
            result = t.ifunc("serve", option, t.write("bad.toml", text))
            assert result.code == 78 and words in result.err, result
    opened = t.write("open.toml", 'metrics = "0.0.0.0:0"\nmetrics-open = true\n')
    assert t.ifunc("serve", "--check-config", opened).code == 0
    result = t.ifunc("cluster", "2", "--config", good, "--", "true")
    assert result.code == 78 and "metrics" in result.err, result


def test_a_plug_in_that_cannot_be_loaded_is_said_with_what_to_do(t):
    # An empty file comes before the real one where the loader looks, and ends its search.
    copy = pathlib.Path(t.path("copy"))
    (copy / "bin").mkdir(parents=True)
    shutil.copy(kit.IFUNC, copy / "bin/ifunc")
    t.write("copy/lib/libthreechains_metrics.so", "")
    result = t.run(str(copy / "bin/ifunc"), "serve", "--metrics", "127.0.0.1:0", env={"LD_LIBRARY_PATH": str(copy / "lib")})
    assert result.code == 2 and result.out == "" and "--metrics needs the plug-in libthreechains_metrics.so" in result.err, result


def test_calls_go_on_while_it_is_scraped(t):
    node, page = serve(t)
    stop, wrong = threading.Event(), []

    def scrape():
        while not stop.is_set():
            if page.status("/metrics") != 200:
                wrong.append("a scrape")

    scrapers = [threading.Thread(target=scrape) for _ in range(4)]
    for one in scrapers:
        one.start()
    try:
        for _ in range(20):
            assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
    finally:
        stop.set()
        for one in scrapers:
            one.join()
    assert not wrong
    kit.run_until(lambda: page.number("threechains_executed_total") == 20, "all calls are on the page")


def test_an_ifunc_without_end_makes_the_node_unhealthy_by_name_and_the_last_numbers_stay(t):
    with lingering(t) as (_, page):
        status, _, body = page.ask("/healthz")
        assert status == 503 and "the node has not answered for " in body and "the running ifunc 'linger'" in body, body
        assert page.status("/readyz") == 200
        numbers = page.scrape()
        assert float(numbers["threechains_report_age_seconds"]) >= 5 and float(numbers["threechains_executed_total"]) == 0
    kit.run_until(lambda: page.status("/healthz") == 200, "the node is healthy again")
    kit.run_until(lambda: page.number("threechains_executed_total") == 1, "its numbers go on")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9464", "127.0.0.1.evil.example", "localhost.evil.example", ""])
def test_a_page_of_a_browser_whose_name_leads_here_gets_nothing(t, host):
    """Its owner has let the name of his page stand for this address meanwhile."""
    node, page = serve(t)
    for path in ("/metrics", "/healthz", "/readyz", "/"):
        status, _, body = page.ask(path, headers={"Host": host})
        assert status == 421 and "--metrics-host NAME" in body and "threechains_" not in body, (path, status, body)
    assert page.status("/metrics") == 200 and node.running()


def test_a_request_may_name_the_node_by_a_number_as_localhost_or_by_a_name_that_was_set(t):
    _, page = serve(t, "--metrics-host", "node1", "--metrics-host", "node1.example.org")
    for host in ("127.0.0.1", "localhost:9464", "10.0.0.7:9464", "[::1]:9464", "node1", "Node1.example.org:9464"):
        assert page.ask("/metrics", headers={"Host": host})[0] == 200, host
    assert page.ask("/metrics", headers={"Host": "node2"})[0] == 421
    with page.connect() as one:  # an old client, which is no browser
        one.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        assert b" 200 OK\r\n" in read_all(one)
    named = t.serve("--metrics", "localhost:0", env=SHM)
    assert Page(named).ask("/metrics", headers={"Host": "localhost"})[0] == 200
    file = t.write("hosts.toml", 'metrics = "127.0.0.1:0"\nmetrics-host = ["node3"]\n')
    assert Page(t.serve("--config", file, env=SHM)).ask("/metrics", headers={"Host": "node3"})[0] == 200


def test_a_slow_scrape_holds_no_other_request_up(t):
    with lingering(t) as (_, page):
        with page.connect() as slow:
            slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")  # five seconds
            assert page.status("/readyz") == 200
            slow.setblocking(False)
            with pytest.raises(BlockingIOError):
                slow.recv(1)


def test_from_the_first_signal_on_it_is_not_ready(t):
    with lingering(t, "--drain", "600000") as (node, page):
        assert page.status("/readyz") == 200
        node.signal(signal.SIGTERM)
        kit.run_until(lambda: "stops, told by SIGTERM" in node.err, "the signal is taken")
        status, _, body = page.ask("/readyz")
        assert (status, body) == (503, "draining\n")
        assert page.scrape()["threechains_draining"] == "1"
    assert node.wait() == 0


def open_sockets(node):
    folder = pathlib.Path(f"/proc/{node.pid}/fd")
    count = 0
    for one in folder.iterdir():
        with contextlib.suppress(OSError):
            count += os.readlink(one).startswith("socket:")
    return count


def test_a_thousand_connections_that_end_no_request_keep_no_scrape_and_no_call_away(t):
    node, page = serve(t)
    before = open_sockets(node)
    with contextlib.ExitStack() as stack:
        for number in range(1000):
            one = stack.enter_context(page.connect())
            with contextlib.suppress(OSError):  # it was ended, for those behind it
                one.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            if number % 250 == 100:
                assert page.status("/metrics") == 200
        assert page.status("/metrics") == 200
        assert open_sockets(node) <= before + 64 + 8
        assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
        kit.run_until(lambda: open_sockets(node) <= before + 4, "connections on which nothing moves have ended")
    assert page.status("/metrics") == 200


def read_all(connection):
    """What it sends until its end, which must come."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            answer += part
    return answer


HOSTILE = {
    "zeros": b"\0" * 4096,
    "garbage": bytes(range(256)) * 64 + b"\r\n\r\n",
    "blank lines": b"\r\n" * 5000,
    "a huge line": b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n",
    "a huge header": b"GET /metrics HTTP/1.1\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
    "many headers": b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
    "a body without end": b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n" + b"z" * 200_000,
    "a negative length": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    "chunks": b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x55" * 512,
}


@pytest.mark.parametrize("request_bytes", HOSTILE.values(), ids=[name.replace(" ", "_") for name in HOSTILE])
def test_requests_that_are_none_end_their_own_connection(t, request_bytes):
    node, page = serve(t)
    with page.connect() as one:
        with contextlib.suppress(ConnectionError):
            one.sendall(request_bytes)
        answer = read_all(one)
    assert not answer.startswith(b"HTTP/1.1 200"), answer[:200]
    assert page.status("/metrics") == 200 and page.status("/healthz") == 200
    assert node.running()


def test_a_client_that_never_reads_its_answers_ends(t):
    node, page = serve(t)
    before = open_sockets(node)
    with page.connect() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(1)
        with contextlib.suppress(OSError):
            for _ in range(20_000):  # until nothing more goes in, as the node does not read on before its answers are gone
                one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert page.status("/metrics") == 200
        kit.run_until(lambda: open_sockets(node) <= before, "it was ended")


def test_a_client_that_has_closed_its_own_direction_gets_its_answer(t):
    _, page = serve(t)
    with page.connect() as one:
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        one.shutdown(socket.SHUT_WR)
        answer = read_all(one)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and b"threechains_build_info" in answer, answer[:200]


def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind(t):
    with lingering(t) as (node, page):
        before = open_sockets(node)
        for _ in range(20):
            with page.connect() as one:
                one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        kit.run_until(lambda: open_sockets(node) <= before, "they have ended")
        assert page.status("/metrics") == 200


def test_a_node_stops_at_once_while_clients_are_connected_and_wait(t):
    node, page = serve(t)
    with page.connect() as idle, page.connect() as half:
        half.sendall(b"GET /met")
        page.scrape()
        assert node.stop() == 0
        assert read_all(idle) == b"" and read_all(half) == b""


# ---- What monitoring/ has


def families(body):
    """The names of the series of a page, without labels."""
    return {re.match(r"\w+", line)[0] for line in body.splitlines() if line and not line.startswith("#")}


def documented():
    """Names in the tables of docs/metrics.md."""
    return set(re.findall(r"^\| `((?:threechains|process)_\w+)", (kit.ROOT / "docs/metrics.md").read_text(), re.MULTILINE))


def expressions():
    dashboard = json.loads((MONITORING / "grafana.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for line in (MONITORING / "alerts.yml").read_text().splitlines():
        if match := re.match(r"\s+expr: (.*)", line):
            yield "alert", match[1]


def test_dashboard_and_alerts_name_metrics_that_a_node_has(t):
    node, page = serve(t)
    assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
    names = families(page.ask("/metrics")[2]) | {f"{name}{end}" for name in documented() for end in ("", "_bucket", "_sum", "_count")}
    for place, expression in expressions():
        used = set(re.findall(r"\b(?:threechains|process)_\w+", expression))
        assert used <= names and (used or "up" in expression), (place, used - names)


def test_the_page_of_the_documentation_has_every_metric(t):
    node, page = serve(t)
    assert t.ifunc("send", ECHO, node.address, "--payload", "x", env=SHM).code == 0
    body = page.ask("/metrics")[2]
    shown = set(re.findall(r"^# TYPE (\w+)", body, re.MULTILINE))
    assert shown <= documented(), shown - documented()
