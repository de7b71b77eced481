// The same as greet_c.c, on the installed C++ header.
#include <threechains/threechains.hpp>

#include <iostream>

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  threechains::Node target;
  target.start_progress();
  threechains::Node source(threechains::Config().set("path", argv[1]));
  auto peer = source.connect(target.address());
  auto answer = peer.call(source.load("greet").message("world"));
  bool told = false;
  answer.on_ready([&] { told = true; });
  const auto reply = answer.get();
  if (!told || answer.status() != TC_OK) return 1;
  std::cout << reply.text() << " (C++, " << peer.transport() << ")\n";
  if (reply.text() != "hello, world") return 1;

  try {
    source.load("nobody-wrote-this");
  } catch (const threechains::Error& error) {
    return error.status() == TC_ERR_NOT_FOUND ? 0 : 1;
  }
  return 1;
} catch (const threechains::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
