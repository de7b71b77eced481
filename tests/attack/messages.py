# SPDX-License-Identifier: Apache-2.0
"""What real clients say to nodes, to be said again by others, or nearly so."""

import contextlib
import random
import socket
import threading

import attack
import kit

# Of nodes and clients that talk plainly to each other on this host, for tests of what stands behind admission.
PLAIN, PLAIN_SETTING = ("--trust-network", "127.0.0.0/8"), "trust-network=127.0.0.0/8"


def record_greeting(t, *options, by_unix=False, env={}):
    """What a real client says first when it connects to a node: the bytes, and the descriptors that came along. By TCP it
    is what stands plainly on a trusted network, and inside a session elsewhere."""
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as local:
        address = f"127.0.0.1:{port.getsockname()[1]}"
        if by_unix:
            local.bind(attack.unix_name(address))
            local.listen()
        client = t.start(kit.IFUNC, "send", t.build("hello.c"), address, "--timeout", "60000", *PLAIN, *options,
                         env=env)
        listener = local if by_unix else port
        listener.settimeout(attack.PATIENCE)
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(attack.PATIENCE)
            message, descriptors, *_ = socket.recv_fds(peer, 65536, 1) if by_unix else (peer.recv(65536), [])
            client.kill()
            return message, descriptors


def record_conversation(t, ifunc, payload):
    """All that a real client says to a node by TCP to run this ifunc: greeting, code and call. It stands plainly on a
    trusted network, and inside a session elsewhere."""
    node = attack.ProgramNode(t, "127.0.0.1:0", PLAIN_SETTING)
    said = bytearray()

    def relay(source, sink, keep):
        with contextlib.suppress(OSError):
            while chunk := source.recv(65536):
                keep += chunk
                sink.sendall(chunk)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = t.start(kit.IFUNC, "send", ifunc, f"127.0.0.1:{listener.getsockname()[1]}", "--payload", payload,
                         "--timeout", "60000", *PLAIN, env=kit.TCP)
        listener.settimeout(attack.PATIENCE)
        near, _ = listener.accept()
        with near, attack.dial(node.address) as far:
            far.settimeout(None)
            ways = [(near, far, said), (far, near, bytearray())]
            threads = [threading.Thread(target=relay, args=way) for way in ways]
            for thread in threads:
                thread.start()
            assert client.wait() == 0, client.err
            for thread in threads:
                thread.join(attack.PATIENCE)
    node.end()
    return bytes(said)


def mutations(message, count, seed):
    """Messages that are nearly that one: bytes changed, cut off, repeated, put in, or another length claimed."""
    chance = random.Random(seed)
    edges = [0, 1, 0x7f, 0x80, 0xff]
    for _ in range(count):
        made = bytearray(message)
        for _ in range(chance.choice([1, 1, 1, 2, 4, 16])):
            at = chance.randrange(len(made)) if made else 0
            match chance.randrange(6):
                case 0 | 1:
                    made[at:at + 1] = bytes([chance.choice([chance.randrange(256), *edges])])
                case 2:
                    made[at:at + 4] = chance.choice([0, 1, 0xffff, 0x7fffffff, 0xffffffff]).to_bytes(4, "little")
                case 3:
                    del made[at:at + chance.randrange(1, 64)]
                case 4:
                    made[at:at] = chance.randbytes(chance.randrange(1, 64))
                case 5:
                    made[at:at] = made[at:at + chance.randrange(1, 300)]
        yield bytes(made)
