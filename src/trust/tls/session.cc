// SPDX-License-Identifier: Apache-2.0
#include "trust/tls/session.h"

#include <algorithm>
#include <cstring>

namespace tc::trust {

namespace {

constexpr size_t record_bytes = 16384;                      // of plain bytes at most
constexpr size_t sealed_record_bytes = record_bytes + 256;  // with its header and tag, and a change of keys before it
constexpr size_t in_bytes = 64 * 1024;                      // what one system call receives
constexpr size_t out_bytes = 4 * sealed_record_bytes;       // what one system call sends
constexpr uint64_t most_records_of_a_key = uint64_t{1} << 22;  // AES-GCM allows 2^24.5

// Of other users of OpenSSL on this thread: SSL_get_error() takes any for the operation's own. To clear what is clear
// costs as much as a tenth of a small record.
void forget_errors() noexcept {
  if (ERR_peek_error() != 0) ERR_clear_error();
}

}  // namespace

void SessionBuffer::resize(size_t capacity) {
  auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
  const auto left = held();
  if (!left.empty()) std::memcpy(larger.get(), left.data(), left.size());
  begin_ = 0;
  end_ = left.size();
  memory_ = std::move(larger);
  capacity_ = capacity;
}

OpensslSession::OpensslSession(SSL_CTX* context, TlsRole role)
    : context_((SSL_CTX_up_ref(context), context)), role_(role) {
  in_.resize(max_handshake_bytes);
  out_.resize(max_handshake_bytes);
}

Status OpensslSession::start() {
  ssl_.reset(SSL_new(context_.get()));
  BIO* const memory = ssl_ != nullptr ? BIO_new(memory_method()) : nullptr;
  if (memory == nullptr) return fail(TC_ERR_NO_MEMORY, "there is no memory for an encrypted connection");
  BIO_set_data(memory, this);
  BIO_set_init(memory, 1);
  SSL_set_bio(ssl_.get(), memory, memory);  // takes it
  if (role_ == TlsRole::server)
    SSL_set_accept_state(ssl_.get());
  else
    SSL_set_connect_state(ssl_.get());
  return {};
}

std::span<std::byte> OpensslSession::room() noexcept {
  const auto room = in_.room();
  return is_complete_ ? room : room.first(std::min(room.size(), max_handshake_bytes - handshake_bytes_));
}

void OpensslSession::received(size_t count) noexcept {
  in_.added(count);
  if (!is_complete_) handshake_bytes_ += count;
}

Result<bool> OpensslSession::handshake() {
  if (is_complete_) return true;
  if (has_failed_) return fail(TC_ERR_MALFORMED, "its handshake has failed");
  if (ssl_ == nullptr) TC_CHECK(start());
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    if (auto fine = finish_handshake(); !fine) {
      has_failed_ = true;
      return fail(std::move(fine).error());
    }
    return true;
  }
  if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) return lost(result, "the encrypted handshake failed");
  if (handshake_bytes_ < max_handshake_bytes) return false;
  has_failed_ = true;
  return fail(TC_ERR_TOO_LARGE, "its encrypted handshake is longer than {} bytes", max_handshake_bytes);
}

Status OpensslSession::finish_handshake() {
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &chosen, &size);
  if (size != sizeof alpn - 1 || std::memcmp(chosen, alpn + 1, size) != 0)
    return fail(TC_ERR_VERSION, "it does not speak threechains/1 over TLS");
  const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  const EVP_PKEY* const key = certificate != nullptr ? X509_get0_pubkey(certificate) : nullptr;
  size_t bytes = peer_key_.bytes.size();
  if (key == nullptr ||
      EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(peer_key_.bytes.data()), &bytes) != 1 ||
      bytes != peer_key_.bytes.size())
    return fail(TC_ERR_MALFORMED, "its certificate has no Ed25519 key");
  char name[name_of_temporary.size() + 1] = {};
  X509_NAME* const subject = X509_get_subject_name(certificate);
  is_peer_key_temporary_ = subject != nullptr &&
                           X509_NAME_get_text_by_NID(subject, NID_commonName, name, sizeof name) > 0 &&
                           name == name_of_temporary;
  try {
    in_.resize(in_bytes);
    out_.resize(out_bytes);
  } catch (const std::bad_alloc&) {
    return fail(TC_ERR_NO_MEMORY, "there is no memory for an encrypted connection");
  }
  is_complete_ = true;
  has_more_ = !in_.held().empty();
  return {};
}

Result<size_t> OpensslSession::write(ByteView plain) {
  if (!is_complete_ || has_failed_) return fail(TC_ERR_DISCONNECTED, "its encrypted connection has failed");
  size_t taken = 0;
  while (taken < plain.size() && out_.room().size() >= sealed_record_bytes) {
    forget_errors();
    if (records_ == most_records_of_a_key) {
      if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return lost(0, "changing the key");
      records_ = 0;
    }
    size_t count = 0;
    const int result = SSL_write_ex(ssl_.get(), plain.data() + taken, plain.size() - taken, &count);
    if (result != 1) return lost(result, "encrypting");
    ++records_;
    taken += count;
  }
  return taken;
}

Result<size_t> OpensslSession::read(std::span<std::byte> plain) {
  if (failure_) return fail(*failure_);
  if (!is_complete_ || has_failed_) return fail(TC_ERR_DISCONNECTED, "its encrypted connection has failed");
  size_t taken = 0;
  has_more_ = true;
  while (taken < plain.size()) {
    forget_errors();
    size_t count = 0;
    if (const int result = SSL_read_ex(ssl_.get(), plain.data() + taken, plain.size() - taken, &count); result != 1) {
      if (auto end = why_nothing_came(result); end) failure_ = std::move(*end);
      if (!failure_) has_more_ = false;
      if (failure_ && taken == 0) return fail(*failure_);
      return taken;
    }
    taken += count;
    if (in_.held().empty() && SSL_pending(ssl_.get()) == 0) {
      has_more_ = false;
      return taken;  // without asking again, which costs as much as a small record
    }
  }
  return taken;
}

// Nothing: more bytes must come.
std::optional<Error> OpensslSession::why_nothing_came(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return {};
    case SSL_ERROR_ZERO_RETURN: return Error{TC_ERR_DISCONNECTED, "it has ended the encrypted connection"};
    default: return lost(result, "a record of the encrypted connection is wrong").error();
  }
}

void OpensslSession::end() noexcept {
  if (!is_complete_ || has_failed_) return;
  ERR_clear_error();
  (void)SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

std::unexpected<Error> OpensslSession::lost(int result, const char* what) {
  has_failed_ = true;
  const bool is_ssl = SSL_get_error(ssl_.get(), result) == SSL_ERROR_SSL;
  return fail(TC_ERR_MALFORMED, "{}: {}", what, is_ssl ? openssl_words() : "OpenSSL gives no reason");
}

// ---- The buffers as a BIO.

namespace {

OpensslSession& session_of(BIO* bio) noexcept { return *static_cast<OpensslSession*>(BIO_get_data(bio)); }

int read_memory(BIO* bio, char* to, size_t size, size_t* count) noexcept {
  BIO_clear_retry_flags(bio);
  auto& in = session_of(bio).in();
  *count = std::min(size, in.held().size());
  if (*count == 0) {
    BIO_set_retry_read(bio);
    return 0;
  }
  std::memcpy(to, in.held().data(), *count);
  in.taken(*count);
  return 1;
}

int write_memory(BIO* bio, const char* from, size_t size, size_t* count) noexcept {
  BIO_clear_retry_flags(bio);
  auto& out = session_of(bio).out();
  *count = std::min(size, out.room().size());
  if (*count == 0) {
    BIO_set_retry_write(bio);
    return 0;
  }
  std::memcpy(out.room().data(), from, *count);
  out.added(*count);
  return 1;
}

long control_memory(BIO*, int command, long, void*) noexcept { return command == BIO_CTRL_FLUSH ? 1 : 0; }

}  // namespace

const BIO_METHOD* memory_method() noexcept {
  static const BIO_METHOD* const made = [] {
    BIO_METHOD* const method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "Three-Chains session");
    if (method == nullptr) return method;
    BIO_meth_set_read_ex(method, &read_memory);
    BIO_meth_set_write_ex(method, &write_memory);
    BIO_meth_set_ctrl(method, &control_memory);
    return method;
  }();
  return made;
}

}  // namespace tc::trust
