// app/ending: see ending.hpp.
#include "viewer/app/ending.hpp"

namespace shardbook::app {

namespace {

constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t asked = 0;

}  // namespace

EndingGuard::EndingGuard() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { asked = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &former_[i]);
}

EndingGuard::~EndingGuard() {
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &former_[i], nullptr);
  asked = 0;
}

int ending_signal() noexcept { return asked; }

}  // namespace shardbook::app
