# SPDX-License-Identifier: Apache-2.0
"""Where ifuncs come from: C, bitcode, files."""

import shutil
import struct
import subprocess
import zlib

import pytest
import threechains as tc
from conftest import ECHO


def test_c_is_compiled_for_both_architectures(echo, tmp_path):
    echo.save(tmp_path / "echo.ifunc")
    line = [tc._tool.command(), "inspect", str(tmp_path / "echo.ifunc")]
    shown = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert "x86_64" in shown and "aarch64" in shown


def test_a_file_is_compiled_by_its_suffix(cluster, tmp_path):
    path = tmp_path / "twice.cc"
    path.write_text("""
        #include <threechains/ifunc.h>
        extern "C" void twice_main(void *payload, size_t size, void *) {
          auto *number = static_cast<long *>(payload);
          *number *= 2;
          tc_reply(payload, size);
        }""")
    twice = tc.ifunc.from_c(path)
    assert twice.name == "twice"
    assert cluster.submit(twice, (21).to_bytes(8, "little")).result() == (42).to_bytes(8, "little")


def test_a_saved_ifunc_is_loaded_again(cluster, echo, tmp_path):
    echo.save(tmp_path / "echo.ifunc")
    loaded = tc.ifunc.load(tmp_path / "echo.ifunc")
    assert (loaded.content_id, loaded.name) == (echo.content_id, "echo")
    line = [tc._tool.command(), "inspect", str(tmp_path / "echo.ifunc")]
    shown = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert echo.content_id in shown
    assert cluster.submit(loaded, b"x").result() == b"x"


def test_what_is_no_ifunc_is_refused(cluster, echo, tmp_path):
    (tmp_path / "junk.ifunc").write_bytes(b"junk")
    with pytest.raises(tc.Error, match="no .ifunc file"):
        tc.ifunc.load(tmp_path / "junk.ifunc")
    (tmp_path / "cut.ifunc").write_bytes(echo.bundle[:-7])
    cut = tc.ifunc.load(tmp_path / "cut.ifunc")
    with tc.Cluster(cluster.addresses) as fresh, pytest.raises(tc.Error) as caught:
        fresh.submit(cut, b"x").result()
    assert caught.value.status == tc.Status.MALFORMED


def test_payload_functions_run_here_and_may_change_their_arguments(cluster):
    text = tc.ifunc.from_c("""
        #include <threechains/ifunc.h>
        size_t shout_payload_get_max_size(void *args, size_t size) { return size + 1; }
        int shout_payload_init(void *payload, size_t payload_size, void *args, size_t size) {
          char *to = payload, *from = args;
          for (size_t i = 0; i < size; ++i) to[i] = from[i] = (char)(from[i] - 32);
          to[size] = '!';
          return size > 9;
        }
        void shout_main(void *payload, size_t size, void *target_args) { tc_reply(payload, size); }
    """)
    word = b"hello"
    assert cluster.submit(text, word).result() == b"HELLO!"
    assert word == b"hello"
    with pytest.raises(tc.Error, match="payload_init of 'shout' returned 1"):
        cluster.submit(text, b"far too long a word")


def test_bitcode_from_elsewhere_is_taken(cluster, tmp_path):
    clang = shutil.which("clang-22") or shutil.which("clang")
    if clang is None:
        pytest.skip("no clang here")
    source = tmp_path / "echo.c"
    source.write_text(ECHO)
    include = tc._tool.ROOT / "include"
    line = [clang, "-O1", "-emit-llvm", "-c", f"-I{include}", str(source), "-o", str(tmp_path / "e.bc")]
    subprocess.run(line, check=True)
    echo = tc.ifunc.from_bitcode((tmp_path / "e.bc").read_bytes(), name="echo")
    assert cluster.submit(echo, b"bitcode").result() == b"bitcode"


def test_what_cannot_travel_names_symbol_and_hint():
    with pytest.raises(tc.IfuncError, match="'puts' is called") as caught:
        tc.ifunc.from_c("""
            #include <threechains/ifunc.h>
            int puts(const char *);
            void foo_main(void *payload, size_t size, void *target_args) { puts(payload); }""")
    assert caught.value.symbol == "puts"
    assert "declare" in caught.value.hint


def test_the_compilers_words_are_in_the_error():
    with pytest.raises(tc.IfuncError, match="undeclared_thing"):
        tc.ifunc.from_c("""
            #include <threechains/ifunc.h>
            void foo_main(void *payload, size_t size, void *target_args) { undeclared_thing; }""")
    with pytest.raises(tc.IfuncError, match="NAME_main"):
        tc.ifunc.from_c("int x;\n")


def test_a_library_is_declared_and_allowed(tmp_path):
    total = tc.ifunc.from_c("""
        #include <threechains/ifunc.h>
        unsigned long adler32(unsigned long, const unsigned char *, unsigned);
        void total_main(void *payload, size_t size, void *target_args) {
          unsigned long sum = adler32(1, payload, size);
          tc_reply(&sum, sizeof sum);
        }""", deps=["z"])
    with tc.LocalCluster(1, allow_libs=["libz.so.1"]) as nodes:
        assert struct.unpack("L", nodes.submit(total, b"three").result())[0] == zlib.adler32(b"three")
    with tc.LocalCluster(1) as nodes, pytest.raises(tc.RemoteError) as caught:
        nodes.submit(total, b"three").result()
    assert caught.value.status == tc.Status.DENIED


def test_only_ifuncs_can_be_submitted(cluster):
    with pytest.raises(TypeError, match="@tc.ifunc"):
        cluster.submit(len, b"x")


def test_code_that_is_gone_is_not_mistaken_for_new_code(cluster):
    # A new object can have the address of one that is gone.
    for i in range(5):
        ifunc = tc.ifunc.from_c(f"""
            #include <threechains/ifunc.h>
            void constant_main(void *payload, size_t size, void *target_args) {{ char c = {i}; tc_reply(&c, 1); }}""")
        assert cluster.submit(ifunc, node=0).result() == bytes([i])
        del ifunc
