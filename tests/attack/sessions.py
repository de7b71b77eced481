# SPDX-License-Identifier: Apache-2.0
"""Encrypted connections by hand: a hostile client or node with Python's TLS, and a relay between two honest ones."""

import base64
import contextlib
import shutil
import socket
import ssl
import threading
import time

import pytest

import attack

PROTOCOL = "threechains/1"
# In front of the 32 bytes of an Ed25519 seed: PKCS #8 (RFC 8410).
PKCS8 = bytes.fromhex("302e020100300506032b657004220420")


def certificate(t, home, name="default"):
    """A certificate for a key of a home, and the key, as files for Python's TLS."""
    seed = base64.urlsafe_b64decode(home.key_file(name).read_text().split()[-1] + "=")
    text = "\n".join(["-----BEGIN PRIVATE KEY-----", base64.b64encode(PKCS8 + seed).decode(), "-----END PRIVATE KEY-----"])
    return self_signed(t, t.write(f"{home.path.name}-{name}.pem", text + "\n"))


def self_signed(t, key, *options):
    """A certificate for the key in that file; the key of another kind is made with `options`."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is not installed")
    if options:
        made = t.run("openssl", "genpkey", *options, "-out", key)
        assert made.code == 0, made
    done = t.run("openssl", "req", "-x509", "-new", "-key", key, "-subj", "/CN=by-hand", "-days", "2", "-out", f"{key}.crt")
    assert done.code == 0, done
    return f"{key}.crt", key


def context(files, *, server=False, protocol=PROTOCOL, version=ssl.TLSVersion.TLSv1_3):
    """Takes any certificate: who the other end is does not concern an attacker."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.minimum_version = made.maximum_version = version
    if protocol:
        made.set_alpn_protocols([protocol])
    if files:
        made.load_cert_chain(*files)
    return made


def say(address, message, files, until=None, **options):
    """Says that and no more inside a session of its own, and gives as text what the node answers until it closes. What it
    refuses is text as well. With `until`, the connection stays open until these bytes were answered."""
    heard = bytearray()
    try:
        with attack.dial(address) as plain, context(files, **options).wrap_socket(plain) as to:
            attack.send(to, message)
            if until is None:
                attack.end_writing(to)
            attack.hear(to, heard, until)
    except OSError as error:  # ssl.SSLError is one
        return heard.decode(errors="replace") + f" [{error}]"
    return heard.decode(errors="replace")


def inside(said):
    """What a client that spoke plainly would have said inside a session: its greeting names the transport."""
    return said.replace(b"tcp", b"tls", 1)


class Relay:
    """Between a client and a node: repeats what each says, and keeps it. `turn` is (way, number): a bit of this byte of that
    way is turned, in each session. "up" goes to the node, "down" comes from it. What is said travels for `delay` seconds."""

    def __init__(self, t, node_address, delay=0.0):
        self.node, self.turn, self.sessions, self.delay = node_address, (None, None), [], delay
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()
        t.cleanups.append(self.close)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = attack.dial(self.node)
            except OSError:
                return
            for end in (near, far):
                end.settimeout(None)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            said = {"up": bytearray(), "down": bytearray()}
            self.sessions.append(said)
            turn = self.turn
            for way, source, sink in [("up", near, far), ("down", far, near)]:
                threading.Thread(target=self.repeat, args=(way, source, sink, said[way], turn), daemon=True).start()

    def repeat(self, way, source, sink, said, turn):
        with contextlib.suppress(OSError):
            while chunk := source.recv(65536):
                at = turn[1] - len(said) if turn[0] == way else -1
                said += chunk
                if 0 <= at < len(chunk):
                    chunk = chunk[:at] + bytes([chunk[at] ^ 0x10]) + chunk[at + 1:]
                time.sleep(self.delay)
                sink.sendall(chunk)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
