// world/world: what threads and processes have in common: the first cause, and collective calls
// as three faces of one exchange.
#include "engine/world/world.hpp"

#include <algorithm>
#include <chrono>

namespace shardbook::world {

base::Nanoseconds now() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count();
}

std::string FailureNotice::cause() const {
  std::lock_guard lock(cause_mutex_);
  return cause_;
}

void FailureNotice::publish(const std::string& cause) {
  {
    std::lock_guard lock(cause_mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    cause_ = cause;
    failed_.store(true, std::memory_order_release);
  }
  std::lock_guard lock(hooks_mutex_);
  hooks_ran_ = true;
  for (auto& [id, act] : hooks_) act();
}

FailureHook::FailureHook(FailureNotice& notice, std::function<void()> act) : notice_(&notice) {
  std::lock_guard lock(notice.hooks_mutex_);
  id_ = notice.next_hook_++;
  if (notice.hooks_ran_) {
    act();
  } else {
    notice.hooks_.emplace_back(id_, std::move(act));
  }
}

FailureHook::~FailureHook() {
  if (notice_ == nullptr) return;
  std::lock_guard lock(notice_->hooks_mutex_);
  std::erase_if(notice_->hooks_, [this](const auto& hook) { return hook.first == id_; });
}

FailureHook::FailureHook(FailureHook&& other) noexcept
    : notice_(std::exchange(other.notice_, nullptr)), id_(other.id_) {}

FailureHook& FailureHook::operator=(FailureHook&& other) noexcept {
  std::swap(notice_, other.notice_);
  std::swap(id_, other.id_);
  return *this;
}

World::World(Place place, std::shared_ptr<FailureNotice> notice) : place_(place), notice_(std::move(notice)) {}
World::~World() = default;

void World::barrier() { exchange(Call::barrier, 0, {}); }

std::string World::broadcast(std::string_view bytes, base::Rank root) {
  SHARDBOOK_CHECK(root >= 0 && root < size(), "broadcast from rank ", root, " among ", size());
  return std::move(exchange(Call::broadcast, root, bytes).at(0));
}

std::vector<std::string> World::all_gather(std::string_view mine) {
  return exchange(Call::all_gather, 0, mine);
}

std::vector<std::string> World::gather(std::string_view mine) {
  // Pieces so small that those of all ranks together fit a message; the longest contribution says how many.
  constexpr std::size_t most_at_once = std::size_t{32} << 20, most_of_one = std::size_t{8} << 20, least = 4096;
  const std::size_t piece = std::max(least, std::min(most_of_one, most_at_once / static_cast<std::size_t>(size())));
  std::size_t longest = 0;
  for (const std::string& length : all_gather(std::to_string(mine.size()))) longest = std::max<std::size_t>(longest, std::stoull(length));
  std::vector<std::string> whole(rank() == 0 ? static_cast<std::size_t>(size()) : 0);
  for (std::size_t at = 0; at < longest; at += piece) {
    // Rank 0 has its own already.
    const std::string_view sent = rank() == 0 || at >= mine.size() ? std::string_view{} : mine.substr(at, piece);
    const std::vector<std::string> pieces = exchange(Call::gather, 0, sent);
    for (std::size_t from = 1; from < whole.size(); ++from) whole[from] += pieces.at(from);
  }
  if (rank() == 0) whole[0] = mine;
  return whole;
}

std::string World::name_of(Call call, base::Rank root) {
  switch (call) {
    case Call::barrier: return "barrier";
    case Call::broadcast: return base::text("broadcast from rank ", root);
    case Call::all_gather: return "all_gather";
    case Call::gather: return "gather to rank 0";
  }
  return "?";
}

std::vector<std::string> World::take_result(Call call, base::Rank root,
                                            std::vector<std::string> contributions) {
  if (call == Call::barrier) return {};
  // Of gather this is what rank 0 gets.
  if (call == Call::broadcast) return {std::move(contributions[root])};
  return contributions;
}

void World::throw_if_failed() const {
  if (failed()) throw base::Failure(cause());
}

void World::set_account(std::function<std::string()> account) {
  std::lock_guard lock(account_mutex_);
  account_ = std::move(account);
}

std::string World::account() const {
  std::lock_guard lock(account_mutex_);
  return account_ ? account_() : "";
}

std::optional<Dispute> World::dispute() const {
  std::lock_guard lock(account_mutex_);
  return dispute_;
}

void World::set_dispute(const Dispute& dispute) {
  std::lock_guard lock(account_mutex_);
  if (!dispute_) dispute_ = dispute;
}

FailureHook World::on_failure(std::function<void()> act) {
  return FailureHook(*notice_, std::move(act));
}

}  // namespace shardbook::world
