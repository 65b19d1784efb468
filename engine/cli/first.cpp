// shardbook_first: what can a new clone show before all of it is built?
//
// `metrics` of a captured run: this program needs the reader of runs and the partition alone, and is there in a fifth of the
// time. The launcher builds it first, and the rest behind it; from then on the whole program answers.
#include <algorithm>
#include <iostream>

#include "engine/base/printable.hpp"
#include "engine/metrics/critical_path.hpp"
#include "engine/metrics/exposed_kinds.hpp"
#include "engine/metrics/partition.hpp"
#include "engine/metrics/table.hpp"
#include "engine/timeline/reader.hpp"

int main(int count, char** words) {
  using namespace shardbook;
  constexpr int refused = 2;
  constexpr std::size_t most_kinds = 8;
  const bool has_option = std::any_of(words + 1, words + count, [](const char* word) { return word[0] == '-'; });
  if (count < 2 || has_option) {
    std::cerr << "shardbook: until all of it is built, metrics takes a run and no options: ./shardbook metrics RUN\n";
    return refused;
  }
  const base::Result<timeline::Timeline> read = timeline::read(std::vector<std::string>(words + 1, words + count));
  if (!read) {
    std::cerr << "shardbook: " << base::printable(read.error()) << "\n";
    return refused;
  }
  const timeline::Timeline& timeline = read.value();
  std::cout << metrics::table_text(timeline, metrics::rank_rows(timeline));
  const std::string kinds = metrics::kinds_text(timeline, metrics::exposed_kinds(timeline, metrics::common_window(timeline)), most_kinds);
  if (!kinds.empty()) std::cout << "\nWhich communication was exposed, in sum over all ranks\n" << kinds;
  return 0;
}
