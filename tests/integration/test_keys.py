# SPDX-License-Identifier: Apache-2.0
"""`ifunc key`, `sign`, `verify` and `trust explain`, as people and scripts use them."""

import json
import os
import pathlib
import re
import shutil
import signal
import stat

import pytest

import kit

KEY = re.compile(r"ed25519:[\w-]{43}")


class Home:
    """A folder of keys, and the commands run with it."""

    def __init__(self, t, name="home"):
        self.t, self.path = t, pathlib.Path(t.path(name))
        self.env = {"THREECHAINS_HOME": str(self.path)}
        self.keyring = self.path / "keyring"

    def run(self, *arguments):
        return self.t.ifunc(*arguments, env=self.env)

    def good(self, *arguments):
        result = self.run(*arguments)
        assert result.code == 0, f"{arguments}: {result}"
        return result.out

    def bad(self, *arguments):
        """The one sentence with which it fails."""
        result = self.run(*arguments)
        assert result.code == 1 and result.err.count("\n") == 1 and result.err.startswith("ifunc "), result
        return result.err

    def new(self, name):
        return self.good("key", "new", name).strip()

    def explain(self, *arguments):
        """Whether it would run, and the steps by their names: (yes, why), the last one of each."""
        result = self.run("trust", "explain", *arguments, "--json")
        told = json.loads(result.out)
        assert result.code == (0 if told["runs"] else 1), result
        return told["runs"], {step["step"]: (step["yes"], step["why"]) for step in told["steps"]}


@pytest.fixture
def home(t):
    return Home(t)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def golden(t, name="with_bundled.ifunc"):
    """An unsigned file of a test's own."""
    return shutil.copy(kit.ROOT / "tests/golden/bundle" / name, t.path(name))


def test_a_new_key_is_readable_by_its_owner_alone_and_is_not_replaced(home):
    key = home.new("ana")
    assert KEY.fullmatch(key) and home.good("key", "show", "ana").strip() == key
    file = home.path / "keys/ana"
    assert mode(file) == 0o600 and mode(home.path) == mode(home.path / "keys") == 0o700
    assert f"{file} is there already" in home.bad("key", "new", "ana")
    assert home.good("key", "show", "ana").strip() == key
    assert json.loads(home.good("key", "show", "ana", "--json")) == {"name": "ana", "key": key, "file": str(file)}


def test_a_node_that_others_can_reach_makes_itself_a_key_that_lasts(t, home):
    def serve():
        port = kit.free_addresses(1)[0].rsplit(":", 1)[1]
        node = t.serve("--listen", f"0.0.0.0:{port}", env={**kit.TCP, "THREECHAINS_HOME": str(home.path)})
        node.stop()
        return node.err
    assert not (home.path / "keys/default").exists()
    said = serve()
    key = home.good("key", "show").strip()
    assert f"this node had no key, and has one now: {key} " in said and f"`ifunc key trust NAME {key}`" in said, said
    assert (home.path / "keys/default").stat().st_mode & 0o777 == 0o600
    assert "key" not in serve(), "it keeps that one"


def test_a_node_of_this_host_alone_makes_no_key(t, home):
    t.serve("--listen", kit.free_addresses(1)[0], env={**kit.TCP, "THREECHAINS_HOME": str(home.path)})
    assert not (home.path / "keys/default").exists()


def test_the_key_that_is_shown_without_a_name_is_the_default_one(home):
    assert "`ifunc key new default`" in home.bad("key", "show")
    assert home.new("default") == home.good("key", "show").strip()


def test_names_that_are_paths_make_no_key(home):
    for name in ("../ana", "", ".ana", "a b", "a" * 65):
        home.bad("key", "new", name)
    assert not home.path.exists()


def test_a_key_file_that_others_can_read_is_refused_with_the_command_that_helps(home):
    home.new("ana")
    file = home.path / "keys/ana"
    file.chmod(0o640)
    for command in (["key", "show", "ana"], ["sign", golden(home.t), "--key", "ana"]):
        assert f"`chmod 600 {file}`" in home.bad(*command)
    file.chmod(0o600)
    home.good("key", "show", "ana")


def test_keys_of_others_are_listed_with_what_they_may_do(home):
    ana, bob = home.new("ana"), Home(home.t, "other").new("bob")
    home.good("key", "trust", "bob", bob, "--run", "any", "--read", "table*,log", "--libs", "none", "--hosts", "10.0.0.0/8",
              "--code", "16M", "--rate", "100", "--until", "2099-01-31")
    line = f"bob {bob} run=any read=table*,log libs=none hosts=10.0.0.0/8 code=16777216 rate=100 until=2099-01-31T00:00:00Z\n"
    assert home.keyring.read_text() == line
    told = json.loads(home.good("key", "list", "--json"))
    assert [key["key"] for key in told["keys"]] == [ana]
    assert told["keyring"]["file"] == str(home.keyring)
    [row] = told["keyring"]["lines"]
    assert (row["name"], row["key"], row["fields"]["libs"]) == ("bob", bob, "none")
    listed = home.good("key", "list")
    assert ana in listed and f"bob              {bob}  run=any" in listed


def test_a_key_is_trusted_from_a_file_and_a_private_one_is_not_shown(home):
    ana = home.new("ana")
    home.good("key", "trust", "ana", home.t.write("ana.pub", ana + "\n"))
    assert home.keyring.read_text() == f"ana {ana}\n"
    private = home.path / "keys/ana"
    seed = private.read_text().split()[-1]
    assert "is a private key" in (said := home.bad("key", "trust", "eve", str(private))) and seed not in said
    assert "passwd holds no public key" in home.bad("key", "trust", "eve", "/etc/passwd")


def test_a_wrong_field_changes_nothing(home):
    ana = home.new("ana")
    assert "field run: 'all'" in home.bad("key", "trust", "ana", ana, "--run", "all")
    assert "--read: 'a run=any' holds a blank" in home.bad("key", "trust", "ana", ana, "--read", "a run=any")
    assert not home.keyring.exists()


def test_a_broken_keyring_is_named_by_file_line_and_field(home):
    ana = home.new("ana")
    home.keyring.write_text(f"# people\nana {ana} rate=fast\n")
    for command in (["key", "list"], ["key", "revoke", "ana"], ["verify", golden(home.t)]):
        assert f"{home.keyring}, line 2: field rate: 'fast'" in home.bad(*command)


def test_a_keyring_that_others_can_write_is_refused(home):
    home.good("key", "trust", "ana", home.new("ana"))
    home.keyring.chmod(0o622)
    assert f"`chmod go-w {home.keyring}`" in home.bad("key", "list")


def test_a_revoked_key_stays_in_the_keyring(home):
    ana = home.new("ana")
    home.good("key", "trust", "ana", ana)
    home.good("key", "revoke", "ana")
    assert re.fullmatch(rf"ana {ana} revoked=20\d\d-\S+Z\n", home.keyring.read_text())
    assert "was revoked at" in home.bad("key", "revoke", ana)
    assert "'ana' stands in line 1 already" in home.bad("key", "trust", "ana", ana)


def test_a_key_is_taken_out_of_the_keyring_with_its_line(home):
    ana, bob = home.new("ana"), home.new("bob")
    home.keyring.write_text(f"# mine\nana {ana} run=any\n# yours\nbob {bob}\n")
    assert home.good("key", "untrust", "ana") == f"{home.keyring}: took out line 2: ana {ana} run=any\n"
    assert home.keyring.read_text() == f"# mine\n# yours\nbob {bob}\n"
    assert f"'ana' is no name and no key in {home.keyring}, which has: bob" in home.bad("key", "untrust", "ana")
    home.good("key", "revoke", "bob")
    assert "nothing says any more that bob is revoked" in home.good("key", "untrust", bob)
    assert "which is empty" in home.bad("key", "untrust", "bob")


def test_a_line_is_updated_by_the_fields_that_are_given(home):
    ana, other = home.new("ana"), home.new("other")
    home.keyring.write_text(f"# mine\nana {ana} run=any rate=7\n# yours\n")
    assert "--update changes that line" in home.bad("key", "trust", "ana", ana, "--rate", "9")
    said = home.good("key", "trust", "ana", ana, "--update", "--rate", "9", "--libs", "none")
    assert said == f"{home.keyring}: ana {ana} run=any libs=none rate=9\nit was: ana {ana} run=any rate=7\n"
    assert home.keyring.read_text() == f"# mine\nana {ana} run=any libs=none rate=9\n# yours\n"
    home.good("key", "trust", "ana", other, "--update")
    assert home.keyring.read_text() == f"# mine\nana {other} run=any libs=none rate=9\n# yours\n"
    assert "leave --update out" in home.bad("key", "trust", "bob", ana, "--update")
    assert "field rate: 'fast'" in home.bad("key", "trust", "ana", other, "--update", "--rate", "fast")


def test_a_node_logs_what_a_keyring_that_it_reads_again_changes(t):
    ana, bob = t.home("ana"), t.home("bob")
    home = t.home("node")
    home.trust("ana", ana, "run=any")
    ana.trust("node", home, "run=none")
    node = t.serve("--listen", "127.0.0.1:0", env=home.env)
    hello = t.build("hello.c")
    call = lambda: t.ifunc("send", hello, node.address, "--payload", "you", env={**kit.TCP, **ana.env})
    assert call().code == 0, call()

    def read_again(expected):
        node.signal(signal.SIGHUP)
        kit.run_until(lambda: f"the keyring was read again: {expected}\n" in node.err, f"the node says: {expected}")

    read_again("1 key; nothing changed")
    home.trust("bob", bob)
    read_again("2 keys; new: bob")
    assert home.run("key", "trust", "bob", bob.public_key(), "--update", "--rate", "7").code == 0
    read_again("2 keys; changed: bob")
    assert home.run("key", "revoke", "bob").code == 0
    read_again("2 keys; revoked: bob")
    assert home.run("key", "untrust", "ana").code == 0
    read_again("1 key; gone: ana")
    refused = call()
    assert refused.code == 1 and f"{ana.public_key()} is in no line of the keyring" in refused.err, refused


def test_the_list_says_when_keys_were_last_used(t):
    home, ana, bob = t.home("node"), t.home("ana"), t.home("bob")
    home.trust("ana", ana, "run=any")
    home.trust("bob", bob)
    ana.trust("node", home, "run=none")
    node = t.serve("--listen", "127.0.0.1:0", env=home.env)
    sent = t.ifunc("send", t.build("hello.c"), node.address, env={**kit.TCP, **ana.env})
    assert sent.code == 0, sent
    kit.run_until(lambda: (home.path / "last-uses").exists(), "the node writes the use down")
    listed = [line for line in home.run("key", "list").out.splitlines() if "last used" in line]
    assert len(listed) == 1 and re.search(rf"{ana.public_key()}  run=any  last used 20\d\d-\S+Z$", listed[0]), listed
    rows = json.loads(home.run("key", "list", "--json").out)["keyring"]["lines"]
    assert ["last_used" in row for row in rows] == [True, False]
    assert mode(home.path / "last-uses") == 0o600
    assert node.stop() == 0
    (home.path / "last-uses").write_text("nonsense\n")
    broken = home.run("key", "list")
    assert broken.code == 0 and f"{home.path}/last-uses, line 1: " in broken.err and ana.public_key() in broken.out, broken


# ---- A keyring with a bad line

@pytest.fixture
def broken(t):
    """A home whose keyring has a bad line. A node of our own user's knows its key, and has a keyring that is fine."""
    home = t.home("client")
    home.write_lines("# people", "nonsense")
    t.own_home.trust("client", home, "run=any")
    return home


def test_a_bad_line_does_not_keep_a_client_from_a_node_of_its_own_user(t, broken):
    node = t.serve("--listen", "127.0.0.1:0")
    for transport in ("auto", "shm", "unix"):
        sent = t.ifunc("send", t.build("hello.c"), node.address, "--payload", "you", "--transport", transport, env=broken.env)
        assert (sent.code, sent.out) == (0, "hello, you"), sent
        assert re.fullmatch(rf".*no key is trusted: {broken.keyring}, line 2: .*\n", sent.err), sent


def test_a_client_with_a_bad_line_connects_to_nobody_by_a_key(t, broken):
    node = t.serve("--listen", "127.0.0.1:0")
    hello = t.build("hello.c")
    for first_contact in ("keyring", "remember"):
        sent = t.ifunc("send", hello, node.address, "--first-contact", first_contact, env={**kit.TCP, **broken.env})
        assert sent.code == 1 and f"{broken.keyring}, line 2: " in sent.err.splitlines()[-1], sent
    assert not broken.known_nodes.exists()
    broken.write_lines()
    assert t.ifunc("send", hello, node.address, "--first-contact", "remember", env={**kit.TCP, **broken.env}).code == 0
    assert broken.known_nodes.exists()
    broken.write_lines("nonsense")
    known = t.ifunc("send", hello, node.address, env={**kit.TCP, **broken.env})
    assert known.code == 1 and f"{broken.keyring}, line 1: " in known.err.splitlines()[-1], known


def test_a_node_does_not_start_with_a_bad_line(t, broken):
    served = t.ifunc("serve", "--listen", "127.0.0.1:0", env=broken.env, seconds=10)
    assert served.code == 2 and f"{broken.keyring}, line 2: " in served.err, served


def test_the_key_of_a_node_is_forgotten(home):
    home.path.mkdir(0o700)
    known = home.path / "known-nodes"
    known.write_text(f"10.0.0.7:7001 {home.new('ana')}\n10.0.0.8:7001 {home.new('bob')}\n")
    home.good("key", "forget", "10.0.0.7:7001")
    assert known.read_text().startswith("10.0.0.8:7001 ed25519:")
    assert "has no key for 10.0.0.7:7001" in home.bad("key", "forget", "10.0.0.7:7001")


def test_a_file_verifies_only_by_a_key_that_signed_it(home):
    ana, file = home.new("ana"), golden(home.t)
    bob = home.new("bob")
    assert "no good signature" in home.bad("verify", file, "--key", "ana")
    home.good("sign", file, "--key", "ana")
    for key in ("ana", ana):
        assert f"good signature by {ana}" in home.good("verify", file, "--key", key)
    for key in ("bob", bob):
        assert f"no good signature of {bob}" in home.bad("verify", file, "--key", key)


def test_without_a_key_a_file_verifies_by_a_key_of_the_keyring_that_is_in_force(home):
    ana, file = home.new("ana"), golden(home.t)
    home.good("sign", file, "--key", "ana")
    refused = home.run("verify", file)
    assert refused.code == 1 and "the key is in no line of the keyring" in refused.out
    home.good("key", "trust", "ana", ana)
    assert f"good signature by {ana} (ana)" in home.good("verify", file)
    for fields, why in (("run=none", "run=none"), ("until=2026-01-01", "expired at"), ("revoked=2026-01-01", "revoked at")):
        home.keyring.write_text(f"ana {ana} {fields}\n")
        for more in ([], ["--key", "ana"]):
            refused = home.run("verify", file, *more)
            assert refused.code == 1 and why in refused.out, (fields, refused)


def test_signing_leaves_the_code_what_it_is_and_two_may_sign(home):
    file = golden(home.t)
    before = pathlib.Path(file).read_bytes()
    keys = [home.new("ana"), home.new("bob")]
    home.good("sign", file, "--key", "ana", "--key", "bob")
    after = pathlib.Path(file).read_bytes()
    assert after.startswith(before) and len(after) == len(before) + 5 + 4 * 97
    home.good("sign", file, "--key", "ana")
    assert pathlib.Path(file).read_bytes() == after, "signing again changes nothing"
    told = json.loads(home.good("inspect", "--json", file))
    assert [(s["key"], s["covers"], s["bundled"], s["valid"]) for s in told["signatures"]] == \
        [(key, *rest, True) for key in keys for rest in (("leader", False), ("golden", True))]


def test_a_turned_bit_of_a_signature_is_told_apart_from_none(home):
    home.good("key", "trust", "ana", home.new("ana"))
    file = golden(home.t, "library.ifunc")
    home.good("sign", file, "--key", "ana")
    path = pathlib.Path(file)
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    refused = home.run("verify", file)
    assert refused.code == 1 and "the signature is wrong: it is not one of this code" in refused.out, refused
    assert "THE SIGNATURE IS WRONG" in home.good("inspect", file)
    runs, steps = home.explain(file, "--from", "ana")
    assert not runs and "the signature is wrong" in steps["runs"][1]


def test_a_built_file_is_signed_and_an_unsigned_one_stays_as_it_was(home):
    home.new("ana")
    source, signed, plain = str(kit.IFUNC_SOURCES / "hello.c"), home.t.path("signed"), home.t.path("plain")
    assert "signed by" in home.good("build", source, "-o", signed, "--sign", "ana")
    home.good("build", source, "-o", plain)
    home.good("verify", signed, "--key", "ana")
    before, after = pathlib.Path(plain).read_bytes(), pathlib.Path(signed).read_bytes()
    assert after[:len(before)] == before and after[len(before):].startswith(b"TCS1\x01\xff")
    missing = home.run("build", source, "-o", home.t.path("none"), "--sign", "eve")
    assert missing.code == 1 and "there is no key 'eve'" in missing.err and not os.path.exists(home.t.path("none"))


def test_an_explanation_says_because_of_which_line_code_runs(home):
    file, ana, bob = golden(home.t), home.new("ana"), Home(home.t, "other").new("bob")
    runs, steps = home.explain(file, "--from", bob)
    assert not runs and f"`ifunc key trust NAME {bob}`" in steps["connects"][1]
    home.good("key", "trust", "ana", ana, "--read", "table*")
    home.good("key", "trust", "bob", bob, "--libs", "none")
    runs, steps = home.explain(file, "--from", "bob")
    assert not runs and steps["connects"][0] and "bob (keyring, line 2) may run signed code only" in steps["runs"][1]
    home.good("sign", file, "--key", "ana")
    runs, steps = home.explain(file, "--from", "bob")
    assert runs and steps["runs"] == (True, "signed by ana (keyring, line 1)")
    assert "reads data table*; writes data none" in steps["rights"][1]
    home.good("key", "revoke", "ana")
    runs, steps = home.explain(file, "--from", "bob")
    assert not runs and "keyring, line 1 (ana): the key was revoked" in steps["runs"][1]


def test_an_explanation_knows_hosts_and_what_a_node_is_told(home):
    file, ana = golden(home.t), home.new("ana")
    home.good("key", "trust", "ana", ana, "--hosts", "10.0.0.0/8", "--run", "any")
    assert "--host ADDRESS" in home.bad("trust", "explain", file, "--from", "ana")
    assert home.explain(file, "--from", "ana", "--host", "10.1.2.3")[0]
    assert "is at 11.1.2.3" in home.explain(file, "--from", "ana", "--host", "11.1.2.3")[1]["connects"][1]
    stranger = Home(home.t, "other").new("eve")
    assert home.explain(file, "--from", stranger, "--trust", "any")[0]
    own = home.new("default")
    runs, steps = home.explain(file, "--from", own)
    assert runs and "this node's own key" in steps["connects"][1]
