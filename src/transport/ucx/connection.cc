// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "transport/ucx/fabric.h"

namespace tc::transport {

namespace {

// The socket's end can overtake messages on UCX's way: look for those first.
constexpr uint64_t last_words_ns = 3'000'000;

}  // namespace

UcxConnection::UcxConnection(UcxFabric& fabric, Fd socket, std::string address, std::vector<SocketAddress> others)
    : SocketConnection(fabric.hub(), std::move(socket), std::move(address), std::move(others), Greeter::Socket::stream),
      fabric_(fabric),
      batch_in_(*this, fabric.options().batch_bytes, fabric.options().window_bytes) {}

UcxConnection::UcxConnection(UcxFabric& fabric, Fd socket, const Origin& origin)
    : SocketConnection(fabric.hub(), std::move(socket), origin),
      fabric_(fabric),
      batch_in_(*this, fabric.options().batch_bytes, fabric.options().window_bytes) {}

UcxConnection::~UcxConnection() { fabric_.forget(*this); }

bool UcxConnection::puts() const noexcept { return fabric_.options().puts; }

std::string_view UcxConnection::transport() const noexcept { return puts() ? "ucx-put" : "ucx"; }

Result<std::unique_ptr<UcxConnection>> UcxConnection::connect(UcxFabric& fabric, Fd socket, std::string address,
                                                              std::vector<SocketAddress> others, ByteView hello) {
  std::unique_ptr<UcxConnection> made(
      new UcxConnection(fabric, std::move(socket), std::move(address), std::move(others)));
  TC_CHECK(made->prepare());
  auto greeting = made->answer();
  greeting.hello.assign(hello.begin(), hello.end());
  TC_CHECK(made->start(encode_greeting(greeting)));
  return made;
}

Result<std::unique_ptr<UcxConnection>> UcxConnection::accept(UcxFabric& fabric, Fd& socket, const Origin& origin,
                                                             const Greeting& greeting) {
  std::unique_ptr<UcxConnection> made(new UcxConnection(fabric, Fd(), origin));
  if (greeting.transport != made->transport())
    return fail(TC_ERR_UNSUPPORTED, "frames are to travel by '{}' when this node does '{}'", greeting.transport,
                made->transport());
  TC_CHECK(made->take_details(greeting.details));
  TC_CHECK(made->prepare());
  made->socket_ = std::move(socket);
  TC_CHECK(made->start());
  return made;
}

// Before the peer is told anything of us.
Status UcxConnection::prepare() {
  TC_ASSIGN(token_, fabric_.enlist(*this));
  if (!puts()) {
    out_ = std::make_unique<AmOut>(hub_.flush_list, wire_);
    return {};
  }
  out_ = std::make_unique<PutOut>(hub_.flush_list, wire_, fabric_.worker().get());
  const auto bytes = ring_memory_bytes(fabric_.options().ring_bytes);
  TC_ASSIGN(ring_memory_, OwnMemory::allocate(fabric_.worker().context(), bytes));
  RingIn::start(RingView::at(ring_memory_->address(), fabric_.options().ring_bytes));
  return {};
}

Bytes UcxConnection::our_details() const {
  const auto& options = fabric_.options();
  UcxDetails ours{.version = UcxWorker::version(),
                  .tcp_alone = fabric_.worker().tcp_alone(),
                  .token = token_,
                  .batch_bytes = static_cast<uint32_t>(options.batch_bytes),
                  .window_bytes = static_cast<uint32_t>(options.window_bytes),
                  .worker_address = fabric_.worker().address()};
  if (ring_memory_ != nullptr) {
    ours.ring_bytes = static_cast<uint32_t>(options.ring_bytes);
    ours.ring_address = reinterpret_cast<uintptr_t>(ring_memory_->address());
    if (auto key = ring_memory_->packed_key()) ours.ring_key = std::move(*key);
  }
  return encode_details(ours);
}

// Two versions of UCX understand each other over TCP, and over nothing else.
Status UcxConnection::take_details(ByteView bytes) {
  TC_ASSIGN(theirs_, decode_details(bytes));
  const bool is_same = theirs_.version == UcxWorker::version();
  if (!is_same && (puts() || !theirs_.tcp_alone || !fabric_.worker().tcp_alone()))
    return fail(
        TC_ERR_VERSION,
        "one side runs UCX {} when the other runs {}: between them only Active Messages over TCP work (ucx-tls=tcp "
        "on both sides)",
        theirs_.version, UcxWorker::version());
  if (puts() && theirs_.ring_bytes == 0) return fail(TC_ERR_UNSUPPORTED, "it has no memory for puts");
  return {};
}

Status UcxConnection::open_streams() {
  TC_ASSIGN(auto endpoint, fabric_.endpoint_to(theirs_.worker_address));
  const auto& options = fabric_.options();
  const auto batch = std::min<size_t>(options.batch_bytes, theirs_.batch_bytes);
  if (puts()) {
    TC_ASSIGN(auto key, RemoteKey::unpack(endpoint->get(), theirs_.ring_key));
    wire_.open(std::move(endpoint), theirs_.token);
    ring_in_.open(RingView::at(ring_memory_->address(), options.ring_bytes));
    put_out().open_ring(std::move(key), theirs_.ring_address, theirs_.ring_bytes, batch);
  } else {
    wire_.open(std::move(endpoint), theirs_.token);
    out_->open(batch, std::min<size_t>(options.window_bytes, theirs_.window_bytes));
  }
  watch(EPOLLIN | EPOLLRDHUP);
  return {};
}

// The endpoint keeps what UCX may still use of us.
void UcxConnection::shut_streams() noexcept {
  out_->shut();
  if (puts() && wire_.is_open()) {
    if (auto key = put_out().take_key()) wire_.endpoint()->keep(std::move(key));
    wire_.endpoint()->keep(std::move(ring_memory_));
  }
  wire_.shut();
}

// What was sent needs the endpoint until the peer has it. The peer ends its socket when it has read our BYE.
void UcxConnection::close() noexcept {
  if (!is_open()) return SocketConnection::close();
  out_->finish();
  if (!is_open()) return SocketConnection::close();
  auto endpoint = wire_.shared_endpoint();
  hub_.poller.remove(socket_);
  fabric_.linger(std::move(socket_), std::move(endpoint));
  drop();
}

// Nothing is said on the socket after the greetings.
void UcxConnection::on_socket(uint32_t) {
  char byte;
  const auto got = ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) return lose(Error{TC_ERR_MALFORMED, "it sent bytes behind its greeting"});
  watch(0);
  lost_at_ns_ = now_ns() + last_words_ns;
  fabric_.note_time();
}

void UcxConnection::on_message(unsigned id, uint16_t number, ByteView data) noexcept {
  if (trouble_) return;
  try {
    Status taken;
    if (number != next_number_)
      taken = fail(TC_ERR_MALFORMED, "message {} came when {} was next", number, next_number_);
    else if (id == am_signal)
      take_signal(data);
    else if (puts())
      taken = fail(TC_ERR_MALFORMED, "it sent {} bytes of frames beside its puts", data.size());
    else if (taken = batch_in_.append(data); taken)
      has_frames_ = true;
    ++next_number_;
    if (!taken) trouble_ = std::move(taken).error();
  } catch (const std::exception& problem) {
    trouble_ = Error{TC_ERR_NO_MEMORY, problem.what()};
  }
  if (has_frames_ || trouble_) fabric_.note(*this);
}

void UcxConnection::take_signal(ByteView data) {
  Reader r(data);
  const auto signal = static_cast<Signal>(r.u8());
  const uint64_t value = r.u64();
  const auto read = r.finish_exactly("a signal");
  bool fine = read.has_value();
  if (fine && signal == Signal::wake)
    told_sleeping_ = false;
  else if (fine && signal == Signal::credit)
    fine = out_->credit(value);
  else if (fine && signal == Signal::sleeping && puts())
    put_out().on_sleeping(value);
  else
    fine = false;
  if (!fine)
    trouble_ =
        Error{TC_ERR_MALFORMED, fmt::format("its signal {} with {} makes no sense", static_cast<int>(signal), value)};
}

void UcxConnection::deliver() noexcept {
  try {
    if (std::exchange(has_frames_, false) && is_open()) deliver_frames();
  } catch (const std::exception& problem) {
    trouble_ = Error{TC_ERR_NO_MEMORY, problem.what()};
  }
  if (trouble_) lose(*trouble_);
}

// News worth a message of its own: the smallest window is larger than four times this.
void UcxConnection::give_credit() noexcept {
  const uint64_t window = puts() ? fabric_.options().ring_bytes : fabric_.options().window_bytes;
  const uint64_t taken = consumed();
  if (taken - credited_ < window / 4) return;
  credited_ = taken;
  wire_.send_signal(Signal::credit, taken);
}

uint64_t UcxConnection::check(uint64_t now) noexcept {
  if (!is_open()) return 0;
  const auto* const endpoint = wire_.endpoint();
  if (endpoint != nullptr && endpoint->failed())
    return lose(Error{TC_ERR_DISCONNECTED, ucx_words(endpoint->failure())}), 0;
  if (lost_at_ns_ != 0 && now >= lost_at_ns_) return lose(Error{TC_ERR_DISCONNECTED, "it ended without a word"}), 0;
  give_credit();
  return lost_at_ns_;
}

// A put wakes nobody on shared memory, and a sender of puts cannot look into our memory. So it is told, once, and
// sends a wake with the next message, or at once when it has put more than we have read.
void UcxConnection::set_sleeping(bool sleeping) noexcept {
  if (!sleeping || told_sleeping_ || !puts() || !is_open()) return;
  told_sleeping_ = true;
  wire_.send_signal(Signal::sleeping, consumed());
}

}  // namespace tc::transport
