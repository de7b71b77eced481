// SPDX-License-Identifier: Apache-2.0
//
// What a process of our own user may do that has greeted on the Unix socket: hand over memory that is none, write
// anything into the rings, ring the bell for ever.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "transport/ring/ring.h"
#include "transport/testing/raw_peer.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;
using Side = RingMemory::Side;

constexpr uint32_t ring_bytes = 4096;

Bytes greeting(ByteView details) { return encode_greeting({"shm", {details.begin(), details.end()}, Bytes(10)}); }
Bytes greeting(uint32_t bytes = ring_bytes) {
  Bytes details;
  Writer(details).u32(bytes);
  return greeting(details);
}

class AHostileRingPeer : public AttackedNode {
 protected:
  void SetUp() override { start(ring_kind); }
  // One that has greeted; its rings are in `memory`.
  RawPeer connect_raw() {
    memory = RingMemory::create(ring_bytes).value();
    to_node = memory.written_by(Side::creator);
    from_node = memory.written_by(Side::receiver);
    RawPeer raw(kind, address);
    (void)raw.send(greeting(), {memory.descriptor().get()});
    EXPECT_TRUE(poll_until([&] { return raw.receive() && node->opened == 1 && !raw.received.empty(); }));
    return raw;
  }
  void expect_refused(const Bytes& words, std::initializer_list<int> attached, const char* why) {
    SCOPED_TRACE(why);
    const unsigned before = refusals();
    RawPeer raw(kind, address);
    (void)raw.send(words, attached);
    ASSERT_TRUE(poll_until([&] { return refusals() != before || node->opened != 0; }));
    EXPECT_THAT(last_reason(), HasSubstr(why));
    expect_one_goes(raw, before);
  }

  RingMemory memory;
  RingView to_node, from_node;
};

TEST_F(AHostileRingPeer, a_descriptor_that_is_no_ring_memory_is_refused_with_the_reason) {
  const auto good = RingMemory::create(ring_bytes).value();
  const int fd = good.descriptor().get();
  const Fd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)), device(::open("/dev/zero", O_RDWR));
  descriptors = open_descriptors();
  ASSERT_EQ(ftruncate(unsealed.get(), 16384), 0);
  expect_refused(greeting(), {}, "not sealed");
  expect_refused(greeting(), {unsealed.get()}, "not sealed");
  expect_refused(greeting(), {device.get()}, "not sealed");
  expect_refused(greeting(), {fd, fd}, "more than one descriptor");
  expect_refused(greeting(2 * ring_bytes), {fd}, "two rings of 8192");
  expect_refused(greeting(ring_bytes - 1), {fd}, "a power of two");
  expect_refused(greeting(0), {fd}, "a power of two");
  expect_refused(greeting(0x80000000), {fd}, "a power of two");
  for (size_t size = 0; size < 8; ++size) {
    if (size == 4) continue;
    expect_refused(greeting(Bytes(size)), {fd}, "its details about its rings");
  }
  expect_witness_is_served();
  expect_nothing_is_left();
}

TEST_F(AHostileRingPeer, a_tcp_peer_that_asks_for_shared_memory_is_refused) {
  const unsigned before = refusals();
  RawPeer raw(socket_kind, address);
  (void)raw.send(greeting());
  ASSERT_TRUE(poll_until([&] { return refusals() != before; }));
  EXPECT_THAT(last_reason(), HasSubstr("'shm'"));
  expect_one_goes(raw, before);
}

TEST_F(AHostileRingPeer, frames_that_it_writes_by_hand_are_read) {
  RawPeer raw = connect_raw();
  const Bytes frame = frame_bytes(3, 40);
  std::memcpy(to_node.data + 16, frame.data() + 8, frame.size() - 8);
  store_header(to_node.data + 8 + frame.size(), 0);
  store_header(to_node.data + 8, call_header(3, 40));
  EXPECT_EQ(take_frame(node->in(), 3), Took::frame);
}

TEST_F(AHostileRingPeer, false_headers_and_lengths_break_its_own_stream) {
  const uint64_t lies[] = {call_header(0, 4096),
                           call_header(0, 4080),
                           call_header(0, 0xffffffff),
                           wire::encode(wire::Kind::pad, 0, 0, 0),
                           wire::encode(wire::Kind::pad, 0, 0, 0xffffffff),
                           ~uint64_t{0}};
  for (const uint64_t value : lies) {
    SCOPED_TRACE(value);
    RawPeer raw = connect_raw();
    store_header(to_node.data + 8, value);
    EXPECT_EQ(take_anything(node->in()), 0u);
    EXPECT_TRUE(node->in().broken());
    poll();
    node->peer->drop();
    EXPECT_TRUE(poll_until([&] { return !raw.receive(); }));
    forget();
  }
  expect_witness_is_served();
  memory = {};
  expect_nothing_is_left();
}

TEST_F(AHostileRingPeer, false_positions_never_let_the_node_write_outside) {
  RawPeer raw = connect_raw();
  Random random(4);
  // What lies around the node's ring must stay as it is: its control area before, the page behind.
  std::atomic_ref consumed(from_node.control->consumed);
  uint32_t sent = 0;
  for (int i = 0; i < 20'000; ++i) {
    consumed.store(i % 3 == 0 ? random.next() : random.below(200'000), std::memory_order_release);
    std::byte* const at = node->out().reserve(random.below(node->out().max_length() + 1));
    if (at == nullptr) continue;
    ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % 16, 8u);
    ++node->transport->poll_state.poll_number;
    ASSERT_TRUE(put_frame(node->out(), sent++, 0));
  }
  EXPECT_GT(sent, 0u);
  expect_witness_is_served();
}

TEST_F(AHostileRingPeer, noise_in_its_rings_while_the_node_reads_and_writes_harms_only_itself) {
  RawPeer raw = connect_raw();
  std::atomic<bool> stop = false;
  std::thread noise([&] {
    Random random(9);
    while (!stop) {
      store_header(to_node.data + 8 + 16 * random.below(ring_bytes / 16 - 1),
                   random.below(1000) == 0 ? random.next() : call_header(1, random.below(200)));
      std::atomic_ref(from_node.control->consumed).store(random.below(100'000));
      std::atomic_ref(from_node.control->sleeping).store(1);
      std::atomic_ref(to_node.control->sleeping).store(static_cast<uint32_t>(random.next()));
    }
  });
  size_t frames = 0;
  for (const auto deadline = Deadline::after_ms(100); !deadline.passed();) {
    for (int i = 0; i < 100 && !node->in().broken(); ++i) {
      const uint64_t word = node->in().peek();
      const auto header = wire::decode(word);
      if (word == 0 || header.kind == wire::Kind::pad || !node->in().fits(header.length)) {
        if (!node->in().refill()) break;
        continue;
      }
      node->in().advance(header.length);
      ++frames;
    }
    node->in().release();
    (void)put_frame(node->out(), 0, 100);
    poll(1);
  }
  stop = true;
  noise.join();
  EXPECT_GT(frames, 0u);
  EXPECT_FALSE(node->lost);
  expect_witness_is_served();
}

TEST_F(AHostileRingPeer, a_doorbell_that_never_stops_delays_no_other_peer_and_its_end_is_noticed) {
  RawPeer raw = connect_raw();
  const Bytes bells(64 * 1024, std::byte{1});
  for (int i = 0; i < 50; ++i) {
    (void)raw.send(bells);
    expect_witness_is_served();
  }
  raw.vanish();
  ASSERT_TRUE(poll_until([&] { return node->lost.has_value(); }));
  EXPECT_EQ(node->lost->message, "it closed its socket without disconnecting first");
}

// What lies in its ring stays readable, as what a socket has received.
TEST_F(AHostileRingPeer, one_that_vanishes_in_the_middle_of_a_frame_leaves_the_whole_ones) {
  RawPeer raw = connect_raw();
  store_header(to_node.data + 8, 0);
  const Bytes frame = frame_bytes(0, 40);
  std::memcpy(to_node.data + 16, frame.data() + 8, frame.size() - 8);
  store_header(to_node.data + 8 + frame.size(), 0);
  store_header(to_node.data + 8, call_header(0, 40));
  std::memset(to_node.data + 16 + frame.size(), 7, 20);  // a body without its header
  raw.vanish();
  memory = {};
  ASSERT_TRUE(poll_until([&] { return node->lost.has_value(); }));
  EXPECT_EQ(take_frame(node->in(), 0), Took::frame);
  EXPECT_EQ(take_frame(node->in(), 1), Took::nothing);
  EXPECT_EQ(node->out().reserve(8), nullptr);
}

TEST_F(AHostileRingPeer, holes_in_its_memory_are_no_crash) {
  RawPeer raw = connect_raw();
  ASSERT_TRUE(put_frame(node->out(), 0, 100));
  ASSERT_EQ(fallocate(memory.descriptor().get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 16384), 0);
  EXPECT_NE(ftruncate(memory.descriptor().get(), 0), 0);
  for (uint32_t i = 1; i < 100; ++i) (void)put_frame(node->out(), i, 100);
  EXPECT_EQ(take_frame(node->in(), 0), Took::nothing);
  poll();
  EXPECT_FALSE(node->lost);
  expect_witness_is_served();
}

}  // namespace
}  // namespace tc::transport
