# SPDX-License-Identifier: Apache-2.0
"""Peers that may do little at a node, and send their code there by way of one that may do more."""

import re

import kit
from kit import TCP


class Cluster:
    """North and south, each with a key of its own, or both with one; and the homes of peers that call north."""

    def __init__(self, t, south_for, one_key=False):
        """`south_for`: the fields of each peer's line at south; None: no line. At north they may do everything."""
        self.t = t
        self.north = t.home("north")
        self.south = self.north if one_key else t.home("south")
        self.peers = {name: t.home(name) for name in south_for}
        if not one_key:
            self.north.trust("south", self.south, "run=any")
            self.south.trust("north", self.north, "run=any")
        for name, peer in self.peers.items():
            peer.trust("north", self.north, "run=none")
            if not one_key:
                peer.trust("south", self.south, "run=none")
                self.north.trust(name, peer, "run=any")
            if south_for[name] is not None:
                self.south.trust(name, peer, *south_for[name])
        addresses = kit.free_addresses(2)
        secret = t.write("secret", b"the secret")
        self.nodes = [t.serve_member(addresses, i, "--data", f"secret={secret}", env={**TCP, **home.env})
                      for i, home in enumerate([self.north, self.south])]
        self.errand = t.build("errand.c")

    def answer(self, name, way):
        """To a peer's call of north that goes on by `way`."""
        listen = kit.free_addresses(1)[0]
        return self.t.ifunc("send", self.errand, self.nodes[0].address, "--payload", way, "--listen", listen, "--timeout", "20000",
                            env={**TCP, **self.peers[name].env})


def test_who_may_run_nothing_at_a_node_runs_nothing_there_by_way_of_another(t):
    cluster = Cluster(t, {"ana": ["run=none"], "bob": ["run=any"]})
    refused = cluster.answer("ana", "1")
    assert refused.code != 0 and "the secret" not in refused.out, refused
    assert re.search(r"calls on behalf of ana .*run=none", refused.err), refused
    answered = cluster.answer("bob", "1")
    assert (answered.code, answered.out) == (0, "the secret"), answered


def test_who_is_not_known_at_a_node_runs_nothing_there_by_way_of_another(t):
    cluster = Cluster(t, {"ana": None})
    refused = cluster.answer("ana", "1")
    key = cluster.peers["ana"].public_key()
    assert refused.code != 0 and re.search(rf"calls on behalf of another: {key} .*ifunc key trust NAME {key}", refused.err), refused


def test_two_nodes_of_one_key_give_a_peer_what_each_gives_alone(t):
    cluster = Cluster(t, {"ana": ["run=any", "read=public*"], "bob": ["run=any"]}, one_key=True)
    for way in ["1", "101", "0", ""]:
        refused = cluster.answer("ana", way)
        assert refused.code != 0 and "no secret for me" in refused.err, (way, refused)
    answered = cluster.answer("bob", "101")
    assert (answered.code, answered.out) == (0, "the secret"), answered
