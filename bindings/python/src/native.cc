// SPDX-License-Identifier: Apache-2.0
//
// The Python module threechains._native: engine.h with Python's types. What users see is in ../threechains.
//
// The interpreter's lock is held for work that takes a microsecond and given up for whatever can wait.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "engine.h"
#include "threechains/arrow.h"

namespace nb = nanobind;
using namespace tc::python;

namespace {

// Payloads of this size and more are copied without the interpreter's lock, and from where they are.
constexpr size_t large_bytes = 64 * 1024;
constexpr uint64_t forever_ns = ~uint64_t{0} >> 1;

// A C-contiguous buffer of some object's, held while it is used.
class Buffer {
 public:
  explicit Buffer(nb::handle object, int flags = PyBUF_SIMPLE) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) nb::raise_python_error();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, {})) {}
  Buffer& operator=(Buffer&&) = delete;
  void* data() const noexcept { return view_.buf; }
  size_t size() const noexcept { return static_cast<size_t>(view_.len); }
  bool read_only() const noexcept { return view_.readonly != 0; }

 private:
  Py_buffer view_{};
};

uint32_t milliseconds(std::optional<double> seconds) {
  if (!seconds) return 0;
  if (std::isnan(*seconds) || *seconds <= 0) return 1;
  const double ms = std::ceil(*seconds * 1000.0);
  return ms >= 4e9 ? 4'000'000'000u : static_cast<uint32_t>(ms);
}

uint64_t nanoseconds(std::optional<double> seconds) {
  if (!seconds) return forever_ns;
  if (!(*seconds > 0)) return 0;
  return *seconds >= 4e9 ? forever_ns : static_cast<uint64_t>(*seconds * 1e9);
}

// ---- Answers ------------------------------------------------------------------------------------------------

// The bytes of an answer, where the library put them.
struct Reply {
  CallPtr call;
  const void* data;
  size_t size;

  explicit Reply(CallPtr from) : call(std::move(from)) {
    data = tc_future_bytes(call->future(), &size);
    if (data == nullptr) data = "";
  }
  uint32_t node() const { return tc_future_node(call->future()); }
};

int get_reply_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* const reply = nb::inst_ptr<Reply>(self);
  return PyBuffer_FillInfo(view, self, const_cast<void*>(reply->data), static_cast<Py_ssize_t>(reply->size), 1, flags);
}

PyType_Slot reply_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_reply_buffer)}, {0, nullptr}};

nb::bytes bytes_of(const Reply& reply) { return nb::bytes(reply.data, reply.size); }

// ---- Answers for Arrow --------------------------------------------------------------------------------------
//
// What the C data interface asks for: structs with a function that releases them, which may be called by any thread.

// An array without nulls whose values are some object's buffer.
struct ExportedArray {
  Buffer buffer;
  std::array<const void*, 2> buffers{};
  explicit ExportedArray(nb::handle object) : buffer(object) { buffers[1] = buffer.data(); }
};

void release_array(ArrowArray* array) {
  array->release = nullptr;
  if (Py_IsInitialized() == 0) return;  // the interpreter has ended, and its objects with it
  const nb::gil_scoped_acquire acquired;
  delete static_cast<ExportedArray*>(array->private_data);
}

void release_schema(ArrowSchema* schema) {
  schema->release = nullptr;
  delete static_cast<std::string*>(schema->private_data);
}

// The capsule of a struct that nobody has taken the content of releases it.
template <class Exported>
nb::object capsule(std::unique_ptr<Exported> exported, const char* name) {
  const auto end = [](PyObject* self) {
    auto* const held = static_cast<Exported*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    if (held->release != nullptr) held->release(held);
    delete held;
  };
  auto made = nb::steal(PyCapsule_New(exported.get(), name, end));
  if (!made.is_valid()) {
    exported->release(exported.get());
    nb::raise_python_error();
  }
  (void)exported.release();
  return made;
}

nb::tuple arrow_array(nb::handle object, const std::string& format, int64_t length) {
  auto text = std::make_unique<std::string>(format);
  auto schema = std::make_unique<ArrowSchema>();
  schema->format = text->c_str();
  schema->name = "";
  schema->release = release_schema;
  schema->private_data = text.release();
  auto first = capsule(std::move(schema), "arrow_schema");

  auto held = std::make_unique<ExportedArray>(object);
  auto array = std::make_unique<ArrowArray>();
  array->length = length;
  array->n_buffers = 2;
  array->buffers = held->buffers.data();
  array->release = release_array;
  array->private_data = held.release();
  return nb::make_tuple(first, capsule(std::move(array), "arrow_array"));
}

// ---- Calls --------------------------------------------------------------------------------------------------

// So often a future is told again when a signal's handler raised in the middle. No program gets more signals at once.
constexpr int most_tries = 64;

// A call's owner is a Python object that is told when the answer is there; the reference ends when it is claimed.
nb::object take_owner(Call& call) { return nb::steal(static_cast<PyObject*>(std::exchange(call.owner, nullptr))); }

// Tells the owner of a claimed call that the answer is there. In the main thread a signal's handler may raise at any
// moment of that: the owner is told again, because nobody else will ever do it. Keeps the first exception.
void tell_owner(Call& call, nb::handle told, std::optional<nb::python_error>& first) {
  const auto owner = take_owner(call);
  for (int tries = 0; owner.is_valid() && tries < most_tries; ++tries) {
    try {
      owner.attr("_finish")(told);
      return;
    } catch (nb::python_error& error) {
      if (!first) first.emplace(std::move(error));
    }
  }
}

// Tells the owners of the calls that are ready, all of them. Raises the first exception afterwards.
void tell_owners(Engine& engine, std::optional<nb::python_error> first = {}) {
  for (const auto& call : engine.collect()) tell_owner(*call, nb::cast(call), first);
  if (first) throw std::move(*first);
}

template <class Work>
auto without_interpreter(Work work) {
  const nb::gil_scoped_release released;
  return work();
}

// After an attempt that succeeded, no signal's handler runs here: an exception would say that the message was not sent,
// and the call that was made would lose its owner. The interpreter runs the handler soon after.
template <class Attempt>
auto until_there_is_room(Engine& engine, double seconds, bool is_large, Attempt attempt) {
  auto result = is_large ? without_interpreter(attempt) : attempt();
  if (result) return result;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    result = without_interpreter([&] {
      engine.make_room();
      return attempt();
    });
    if (result) return result;
    if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    if (std::chrono::steady_clock::now() > end)
      throw Failure(TC_ERR_BUSY, "the peer has made no room for the message within " + std::to_string(seconds) +
                                     " s; it was not sent");
  }
}

// A payload in Python's hands, to be written in place and sent any number of times.
struct Message {
  std::shared_ptr<Engine> engine;  // a message must not outlive its node
  size_t number;                   // of the ifunc that it was made for
  std::string ifunc;               // its name
  MessagePtr message;

  size_t size() const noexcept {
    size_t bytes = 0;
    (void)tc_message_payload(message.get(), &bytes);
    return bytes;
  }
  bool is_large() const noexcept { return size() >= large_bytes; }
};

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

// A message of zeros: what this process wrote to the memory before is not for the peer. Payload functions get as many
// zeros to read.
Message zeroed_message(std::shared_ptr<Engine> engine, size_t number, std::string ifunc, size_t size) {
  const nb::gil_scoped_release released;
  const std::unique_ptr<void, Free> zeros(std::calloc(std::max<size_t>(size, 1), 1));
  if (!zeros) throw Failure(TC_ERR_NO_MEMORY, "there is no memory for a message of " + std::to_string(size) + " bytes");
  auto message = engine->make_message(number, zeros.get(), size);
  return {std::move(engine), number, std::move(ifunc), std::move(message)};
}

int get_message_buffer(PyObject* self, Py_buffer* view, int flags) {
  const auto* const held = nb::inst_ptr<Message>(self);
  size_t size = 0;
  void* const data = tc_message_payload(held->message.get(), &size);
  return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(size), 0, flags);
}

PyType_Slot message_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_message_buffer)}, {0, nullptr}};

// A message that is sent once.
struct Outgoing {
  std::optional<Buffer> payload;  // a large one, which is read in place
  MessagePtr message;             // freed before its payload
  bool is_large = false;
};

Outgoing message_of(Engine& engine, size_t ifunc, nb::handle payload) {
  Outgoing made;
  if (payload.is_none()) {
    made.message = engine.make_message(ifunc, nullptr, 0);
    return made;
  }
  const auto& buffer = made.payload.emplace(payload);
  made.is_large = buffer.size() >= large_bytes;
  if (made.is_large)  // payload functions may take their time
    made.message =
        without_interpreter([&] { return engine.make_message_in_place(ifunc, buffer.data(), buffer.size()); });
  else
    made.message = engine.make_message(ifunc, buffer.data(), buffer.size());
  return made;
}

constexpr size_t most_parts = 32;

Outgoing message_of_parts(Engine& engine, size_t ifunc, nb::sequence parts, size_t alignment) {
  const auto count = nb::len(parts);
  if (count == 1) return message_of(engine, ifunc, nb::object(parts[0]));
  if (count > most_parts) throw Failure(TC_ERR_INVALID, "an ifunc has at most 32 arguments");
  std::array<std::optional<Buffer>, most_parts> buffers;
  std::array<Part, most_parts> pieces;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    buffers[i].emplace(nb::object(parts[i]));
    const auto size = buffers[i]->size();
    pieces[i] = {buffers[i]->data(), size, i + 1 < count ? (alignment - size % alignment) % alignment : 0};
    total += size;
  }
  const std::span<const Part> given(pieces.data(), count);
  Outgoing made;
  made.is_large = total >= large_bytes;
  const auto make = [&] { return engine.make_message(ifunc, given); };
  made.message = made.is_large ? without_interpreter(make) : make();
  return made;
}

CallPtr call(Engine& engine, size_t endpoint, tc_message_t& message, bool is_large, std::optional<double> deadline,
             double room, nb::handle owner) {
  auto reference = nb::borrow(owner);  // the call's, from when there is one
  auto made = until_there_is_room(engine, room, is_large, [&] {
    return engine.try_call(endpoint, message, milliseconds(deadline), reference.ptr());
  });
  (void)reference.release();
  return made;
}

void send(Engine& engine, size_t endpoint, tc_message_t& message, bool is_large, double room) {
  until_there_is_room(engine, room, is_large, [&] { return engine.try_send(endpoint, message); });
}

// Waits for the call, and settles it and whatever else is ready. True: its owner was told, or another thread is about to
// do that. False: wait again, unless the timeout is over.
bool wait(Engine& engine, Call& call, std::optional<double> timeout) {
  if (!call.ready()) {
    const nb::gil_scoped_release released;
    engine.wait(call, nanoseconds(timeout));
  }
  const bool ready = call.ready();
  std::optional<nb::python_error> first;
  if (ready && call.claim()) tell_owner(call, nb::find(call), first);
  tell_owners(engine, std::move(first));
  if (!ready && PyErr_CheckSignals() != 0) nb::raise_python_error();
  return ready;
}

// ---- Errors -------------------------------------------------------------------------------------------------

PyObject* error_class = nullptr;  // threechains.Error; of the module, which lives as long as the interpreter

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Failure& failure) {
    const auto arguments = nb::make_tuple(static_cast<int>(failure.status), failure.what());
    PyErr_SetObject(error_class != nullptr ? error_class : PyExc_RuntimeError, arguments.ptr());
  }
}

void bind_call(nb::module_& module) {
  nb::class_<Reply>(module, "Reply", nb::type_slots(reply_slots),
                    "The bytes that an ifunc replied with. A buffer: memoryview(reply) and numpy.frombuffer(reply) "
                    "look at them where the library put them, without a copy.")
      .def("__len__", [](const Reply& self) { return self.size; })
      .def("__bytes__", bytes_of)
      .def("__eq__",
           [](const Reply& self, nb::handle other) {
             if (!PyObject_CheckBuffer(other.ptr())) return false;
             const Buffer buffer(other);
             return buffer.size() == self.size && std::memcmp(buffer.data(), self.data, self.size) == 0;
           })
      .def("__hash__", [](const Reply& self) { return nb::hash(bytes_of(self)); })
      .def("__repr__", [](const Reply& self) { return nb::str("Reply({!r})").format(bytes_of(self)); })
      .def(
          "text", [](const Reply& self) { return nb::str(static_cast<const char*>(self.data), self.size); },
          "The bytes as UTF-8.")
      .def(
          "array",
          [](nb::handle self, nb::handle dtype) {
            return nb::module_::import_("numpy").attr("frombuffer")(self, dtype);
          },
          nb::arg("dtype"), nb::sig("def array(self, dtype: typing.Any) -> typing.Any"),
          "The bytes as a one-dimensional NumPy array of `dtype`, without a copy. Read-only.")
      .def_prop_ro("node", &Reply::node, "The number of the node that answered.");

  nb::class_<Call>(module, "Call", "A call under way.")
      .def_prop_ro("ready", &Call::ready, "Is the answer there?")
      .def_prop_ro(
          "status", [](const Call& self) { return static_cast<int>(tc_future_status(self.future())); },
          "The call's status, once it is ready.")
      .def_prop_ro("error", [](const Call& self) { return std::string(tc_future_error(self.future())); })
      .def_prop_ro("code", [](const Call& self) { return tc_future_code(self.future()); })
      .def_prop_ro("node", [](const Call& self) { return tc_future_node(self.future()); });
  module.def("reply", [](CallPtr call) { return Reply(std::move(call)); }, nb::arg("call"), "A ready call's answer.");
}

void bind_message(nb::module_& module) {
  nb::class_<Message>(module, "Message", nb::type_slots(message_slots),
                      "A payload that can be written in place and sent any number of times. A writable buffer.")
      .def("__len__", &Message::size)
      .def_ro("ifunc", &Message::ifunc, "The name of the ifunc that it was made for.")
      .def(
          "is_for",
          [](const Message& self, const Engine& engine, size_t number) {
            return self.engine.get() == &engine && self.number == number;
          },
          nb::arg("engine"), nb::arg("number"), "Was it made for this ifunc, on this node?");
}

void bind_engine(nb::module_& module) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Engine>(module, "Engine", "A node, as threads share it: see src/engine.h.")
      .def(nb::init<const Engine::Options&>(), nb::arg("options"), Release())
      .def_prop_ro("closed", &Engine::closed)
      .def_prop_ro("inherited", &Engine::inherited)
      .def("address", &Engine::address, Release())
      .def("stat", &Engine::stat, nb::arg("name"), Release())
      .def("reload_keys", &Engine::reload_keys, Release())
      .def(
          "expose",
          [](Engine& self, const std::string& name, nb::handle buffer) {
            const Buffer held(buffer);
            const nb::gil_scoped_release released;
            self.expose(name, held.data(), held.size());
          },
          nb::arg("name"), nb::arg("buffer"), "The caller keeps the buffer alive, and its bytes in place.")
      .def(
          "withdraw", [](Engine& self, const std::string& name) { self.expose(name, nullptr, 0); }, nb::arg("name"),
          Release())
      .def(
          "connect",
          [](Engine& self, const std::string& address, double timeout) {
            return self.connect(address, milliseconds(timeout));
          },
          nb::arg("address"), nb::arg("timeout"), Release())
      .def(
          "disconnect",
          [](Engine& self, size_t endpoint, double timeout) { self.disconnect(endpoint, milliseconds(timeout)); },
          nb::arg("endpoint"), nb::arg("timeout"), Release())
      .def("peer", &Engine::peer, nb::arg("endpoint"), Release())
      .def("transport", &Engine::transport, nb::arg("endpoint"), Release())
      .def(
          "endpoint_status",
          [](Engine& self, size_t endpoint) { return static_cast<int>(self.endpoint_status(endpoint)); },
          nb::arg("endpoint"), Release())
      .def(
          "register",
          [](Engine& self, nb::bytes bundle) {
            return self.register_ifunc({static_cast<const std::byte*>(bundle.data()), bundle.size()});
          },
          nb::arg("bundle"))
      .def(
          "call",
          [](Engine& self, size_t endpoint, size_t ifunc, nb::handle payload, std::optional<double> deadline,
             double room, nb::handle owner) {
            const auto outgoing = message_of(self, ifunc, payload);
            return call(self, endpoint, *outgoing.message, outgoing.is_large, deadline, room, owner);
          },
          nb::arg("endpoint"), nb::arg("ifunc"), nb::arg("payload").none(), nb::arg("deadline").none(), nb::arg("room"),
          nb::arg("owner"))
      .def(
          "call_parts",
          [](Engine& self, size_t endpoint, size_t ifunc, nb::sequence parts, size_t alignment,
             std::optional<double> deadline, double room, nb::handle owner) {
            const auto outgoing = message_of_parts(self, ifunc, parts, alignment);
            return call(self, endpoint, *outgoing.message, outgoing.is_large, deadline, room, owner);
          },
          nb::arg("endpoint"), nb::arg("ifunc"), nb::arg("parts"), nb::arg("alignment"), nb::arg("deadline").none(),
          nb::arg("room"), nb::arg("owner"),
          nb::sig("def call_parts(self, endpoint: int, ifunc: int, parts: collections.abc.Sequence[typing.Any], "
                  "alignment: int, deadline: float | None, room: float, owner: typing.Any) -> Call"))
      .def(
          "call_message",
          [](Engine& self, size_t endpoint, Message& message, std::optional<double> deadline, double room,
             nb::handle owner) {
            return call(self, endpoint, *message.message, message.is_large(), deadline, room, owner);
          },
          nb::arg("endpoint"), nb::arg("message"), nb::arg("deadline").none(), nb::arg("room"), nb::arg("owner"))
      .def(
          "send",
          [](Engine& self, size_t endpoint, size_t ifunc, nb::handle payload, double room) {
            const auto outgoing = message_of(self, ifunc, payload);
            send(self, endpoint, *outgoing.message, outgoing.is_large, room);
          },
          nb::arg("endpoint"), nb::arg("ifunc"), nb::arg("payload").none(), nb::arg("room"))
      .def(
          "send_parts",
          [](Engine& self, size_t endpoint, size_t ifunc, nb::sequence parts, size_t alignment, double room) {
            const auto outgoing = message_of_parts(self, ifunc, parts, alignment);
            send(self, endpoint, *outgoing.message, outgoing.is_large, room);
          },
          nb::arg("endpoint"), nb::arg("ifunc"), nb::arg("parts"), nb::arg("alignment"), nb::arg("room"),
          nb::sig("def send_parts(self, endpoint: int, ifunc: int, parts: collections.abc.Sequence[typing.Any], "
                  "alignment: int, room: float) -> None"))
      .def(
          "send_message",
          [](Engine& self, size_t endpoint, Message& message, double room) {
            send(self, endpoint, *message.message, message.is_large(), room);
          },
          nb::arg("endpoint"), nb::arg("message"), nb::arg("room"))
      .def(
          "flush", [](Engine& self, size_t endpoint, double timeout) { self.flush(endpoint, milliseconds(timeout)); },
          nb::arg("endpoint"), nb::arg("timeout"), Release())
      .def("cancel", &Engine::cancel, nb::arg("call"), Release())
      .def("wait", wait, nb::arg("call"), nb::arg("timeout").none())
      .def(
          "keep",
          [](Engine& self) {
            bool goes_on = false;
            {
              const nb::gil_scoped_release released;
              goes_on = self.keep();
            }
            tell_owners(self);
            return goes_on;
          },
          "For the keeper thread: waits until calls are ready, and tells their owners. False at the end.")
      .def("stop_keeping", &Engine::stop_keeping, Release())
      .def(
          "close",
          [](Engine& self) {
            {
              const nb::gil_scoped_release released;
              self.close();
            }
            tell_owners(self);
          },
          "Fails what waits, disconnects and ends the node. Tells the owners of the calls that failed.");
}

}  // namespace

NB_MODULE(_native, module) {
  module.doc() = "Three-Chains for Python: the part in C++. Use `threechains`.";
  nb::set_leak_warnings(false);  // what lives until the interpreter ends is no leak
  nb::register_exception_translator(translate);
  bind_call(module);
  bind_message(module);
  bind_engine(module);
  module.def("make_message", zeroed_message, nb::arg("engine"), nb::arg("number"), nb::arg("ifunc"), nb::arg("size"));
  module.def(
      "arrow_array", arrow_array, nb::arg("buffer"), nb::arg("format"), nb::arg("length"),
      nb::sig("def arrow_array(buffer: typing.Any, format: str, length: int) -> tuple[typing.Any, typing.Any]"),
      "The capsules of Arrow's C data interface, \"arrow_schema\" and \"arrow_array\", for a buffer of numbers.");
  module.def("set_error_class", [](nb::object cls) { error_class = cls.release().ptr(); }, nb::arg("cls"));
  module.def(
      "statistics",
      [] {
        std::vector<std::string> names;
        for (size_t i = 0; i < tc_statistic_count(); ++i) names.emplace_back(tc_statistic_name(tc_statistic_at(i)));
        return names;
      },
      "The names of a node's numbers.");
  module.def(
      "status_name", [](int status) { return std::string(tc_status_name(static_cast<tc_status_t>(status))); },
      nb::arg("status"));
  module.def("version", [] { return std::string(tc_version()); });
}
