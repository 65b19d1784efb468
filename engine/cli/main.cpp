// The program `shardbook`: the outermost catch, and an end that waits for nobody.
#include <unistd.h>

#include <exception>
#include <iostream>
#include <new>

#include "engine/base/printable.hpp"
#include "engine/cli/cli.hpp"
#include "engine/cli/command.hpp"

namespace {

int guarded(const std::vector<std::string>& words, shardbook::cli::Console& console) {
  try {
    return shardbook::cli::main_with(words, console);
  } catch (const std::bad_alloc&) {
    std::cerr << "shardbook: there is not enough memory for this\n";
  } catch (const std::exception& failure) {
    std::cerr << "shardbook: " << shardbook::base::printable(failure.what()) << "\n";
  } catch (...) {
    std::cerr << "shardbook: failed, and nobody said why\n";
  }
  return shardbook::cli::exit_failed;
}

// Where no catch is left: an exception in an exception, or in a thread that nobody guards. Little is sure here but two calls.
[[noreturn]] void end_at_once() {
  constexpr char sentence[] = "shardbook: failed where nothing could catch it; most likely there is too little memory for this\n";
  [[maybe_unused]] const ssize_t told = ::write(2, sentence, sizeof sentence - 1);
  ::_exit(shardbook::cli::exit_failed);
}

}  // namespace

int main(int count, char** words) {
  std::set_terminate(&end_at_once);
  shardbook::cli::Console console = shardbook::cli::own_console();
  int code = guarded({words + 1, words + count}, console);
  // An answer that could not be written is none.
  std::cout.flush();
  if (!std::cout && code == shardbook::cli::exit_ok) {
    std::cerr << "shardbook: standard output cannot be written (is the disk full?)\n";
    code = shardbook::cli::exit_bad_input;
  }
  std::cerr.flush();
  // No exit handlers: that of a BLAS waits for threads which it could not start.
  ::_exit(code);
}
