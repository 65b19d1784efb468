// cli/verify_command: the records of all ranks through the checks of check/, a sentence a finding; see verify_command.hpp.
#include "engine/cli/verify_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/base/json.hpp"
#include "engine/check/hang.hpp"
#include "engine/check/ledger.hpp"
#include "engine/check/numbers.hpp"
#include "engine/check/races.hpp"
#include "engine/program/file.hpp"
#include "engine/timeline/pack.hpp"
#include "engine/timeline/run_info.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::Rank;
using base::text;
using program::Record;

namespace {

constexpr int most_by_default = 20;

// Options that change no number but by rounding, or none that is compared.
bool may_differ(const std::string& option) {
  static const char* const such[] = {"tp", "fsdp", "dp", "ranks", "prefetch", "reshard", "set", "wrong", "device", "host-dtype", "clock", "profile", "launch",
                                     "micro-batches", "trace-steps", "lab", "progress", "drain-seed", "check-finite", "attention", "checkpoint", "save-every", "keep-checkpoints", "resume"};
  return std::any_of(std::begin(such), std::end(such), [&](const char* one) { return option == one; });
}

// The numbers of a folder's run.json, and its config.
base::Result<std::pair<check::Numbers, nlohmann::json>> numbers_of(const std::string& place) {
  base::Result<timeline::RunInfo> info = timeline::read_run_info((fs::path(place) / "run.json").string());
  if (!info) return info.as_error();
  check::Numbers numbers;
  const nlohmann::json& config = info.value().config;
  for (const auto& [name, to] : {std::pair{"losses", &numbers.losses}, std::pair{"gradient_norms", &numbers.norms}}) {
    for (const nlohmann::json& value : info.value().results.value(name, nlohmann::json::array())) to->push_back(value.is_number() ? value.get<double>() : 0);
  }
  if (info.value().results.value("first_step", 0) > 0) return base::Error{text(place, " went on from a checkpoint: compare runs from their first step on")};
  if (numbers.losses.empty()) return base::Error{text(place, " has no losses: it computed shapes only, or only its times count")};
  numbers.tp = config.value("tp", 1);
  numbers.attention_dropout = config.value("attention-dropout", 0.0) > 0;
  numbers.drops_again = config.value("hidden-dropout", 0.0) > 0 && info.value().switches.value("activations.recompute", "none") == "full";
  numbers.data_ranks = config.value("fsdp", 1) * config.value("dp", 1);
  // The host computes in f32 or f64 whatever is asked for
  const bool asked = config.value("precision", "") == "bf16" || info.value().switches.value("fsdp.reduce_dtype", "fp32") == "bf16";
  numbers.in_bf16 = asked && config.value("device", "") == "cuda";
  return std::pair(std::move(numbers), config);
}

// What `place` computed, beside a run that is trusted; a sentence, or nothing where they agree.
base::Result<std::string> numbers_against(const std::string& place, const std::string& trusted) {
  const auto mine = numbers_of(place), other = numbers_of(trusted);
  if (!mine) return mine.as_error();
  if (!other) return other.as_error();
  for (const auto& [option, value] : mine.value().second.items()) {
    if (may_differ(option) || !other.value().second.contains(option) || other.value().second[option] == value) continue;
    return base::Error{text("the two runs differ in --", option, ", so their numbers do too: ", base::json_text(value), " and ", base::json_text(other.value().second[option]))};
  }
  const bool bf16 = mine.value().first.in_bf16 || other.value().first.in_bf16;
  return check::difference(mine.value().first, other.value().first, bf16 ? check::rounding_bf16 : check::rounding_f32);
}

// A race that some ranks have alike.
struct RaceFound {
  std::vector<Rank> ranks;
  std::string sentence, buffer, first_line, second_line;
};
// What was looked at, and what was found.
struct VerifyVerdict {
  std::vector<Rank> ranks, missing;
  int world_size = 1;
  std::size_t steps = 0, ops = 0;        // of the first rank
  std::vector<RaceFound> races;
  std::size_t pairs = 0;                 // of ops that race, on all ranks
  std::vector<check::Divergence> divergences;
  std::string against, numbers;          // the trusted run, if one was named, and how the numbers differ from its
  std::string hang;                      // looked for where no rank differs: those that do, hang anyway
  bool fine() const { return missing.empty() && races.empty() && divergences.empty() && hang.empty() && numbers.empty(); }
};

base::Result<std::vector<Record>> load_folder(const fs::path& folder, const std::string& place) {
  std::vector<std::string> paths;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string file = entry->path().filename().string();
    if (file.starts_with("rank") && file.ends_with(".program")) paths.push_back(entry->path().string());
  }
  if (failure) return base::Error{text("cannot read ", place, ": ", failure.message())};
  if (paths.empty()) return base::Error{text(place, " holds no record of what was issued (rankN.program): only runs of shardbook leave one")};
  std::vector<Record> records;
  for (const std::string& path : paths) {
    base::Result<Record> record = program::load(path);
    if (!record) return record.as_error();
    records.push_back(std::move(record).value());
  }
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.rank < b.rank; });
  for (std::size_t at = 1; at < records.size(); ++at) {
    if (records[at].rank == records[at - 1].rank) return base::Error{text("two records in ", place, " are of rank ", records[at].rank)};
  }
  return records;
}

// Of a folder, or of a pack, which is unpacked for it and gone again.
base::Result<std::vector<Record>> load_records(const std::string& place) {
  std::error_code ignored;
  if (!timeline::is_pack_name(place)) {
    if (!fs::exists(place, ignored)) return base::Error{text("there is no ", place)};
    if (!fs::is_directory(place, ignored)) return base::Error{text(place, " is no folder of a run and no pack of one (.tar.gz, .tgz, .tar)")};
    return load_folder(place, place);
  }
  std::string folder = (fs::temp_directory_path(ignored) / "shardbook-verify-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return base::Error{text("cannot unpack ", place, " into ", fs::path(folder).parent_path().string())};
  const auto opened = timeline::open_pack(place, folder + "/pack");
  base::Result<std::vector<Record>> records =
      opened ? load_folder(opened.value().run, place) : base::Result<std::vector<Record>>(opened.as_error());
  fs::remove_all(folder, ignored);
  return records;
}

// The programs of the traced steps; of a run that traced none, those that it issued, in the order of first issue.
std::vector<const program::Program*> programs_of(const Record& record) {
  std::vector<const program::Program*> programs;
  for (const program::StepTimes& step : record.steps) programs.push_back(record.programs[step.program].get());
  if (programs.empty()) {
    for (const auto& program : record.programs) programs.push_back(program.get());
  }
  return programs;
}

std::string where(const check::Steps& steps, check::Place place) {
  const program::SourceLine& line = steps[place.step]->ops[place.op].where;
  return text(line.file, ":", line.line);
}

// Adds one rank's races to those that other ranks have alike.
void add_races(VerifyVerdict& verdict, const Record& record) {
  const check::Steps steps = check::steps_to_check(programs_of(record));
  for (const check::Race& race : check::races(record.catalogue, steps)) {
    ++verdict.pairs;
    if (race.follows) continue;
    const std::string sentence = check::sentence(race, record.catalogue, steps);
    const auto known = std::find_if(verdict.races.begin(), verdict.races.end(), [&](const RaceFound& one) { return one.sentence == sentence; });
    if (known == verdict.races.end()) {
      verdict.races.push_back({{record.rank}, sentence, record.catalogue.buffers[race.buffer].name, where(steps, race.first), where(steps, race.second)});
    } else if (known->ranks.back() != record.rank) {
      known->ranks.push_back(record.rank);
    }
  }
}

VerifyVerdict verdict_on(std::vector<Record> records) {
  VerifyVerdict verdict;
  verdict.world_size = records.front().world_size;
  for (const Record& record : records) verdict.ranks.push_back(record.rank);
  for (Rank rank = 0; rank < verdict.world_size; ++rank) {
    if (!std::binary_search(verdict.ranks.begin(), verdict.ranks.end(), rank)) verdict.missing.push_back(rank);
  }
  const auto first = programs_of(records.front());
  verdict.steps = first.size();
  verdict.ops = first.empty() ? 0 : first.front()->ops.size();
  std::vector<check::RankSteps> pages;
  for (const Record& record : records) {
    add_races(verdict, record);
    pages.push_back({record.rank, &record.catalogue, programs_of(record)});
  }
  verdict.divergences = check::divergences(pages);
  if (verdict.divergences.empty()) verdict.hang = check::hang(pages).sentence;
  return verdict;
}

// "rank 1", "ranks 0 to 3", "ranks 0, 2".
std::string ranks_text(const std::vector<Rank>& ranks) {
  if (ranks.size() == 1) return text("rank ", ranks[0]);
  const bool gapless = ranks.back() - ranks.front() + 1 == static_cast<Rank>(ranks.size());
  if (ranks.size() > 2 && gapless) return text("ranks ", ranks.front(), " to ", ranks.back());
  std::string said = "ranks ";
  for (std::size_t at = 0; at < ranks.size() && at < 8; ++at) said += text(at == 0 ? "" : ", ", ranks[at]);
  return said + (ranks.size() > 8 ? text(" and ", ranks.size() - 8, " more") : "");
}

nlohmann::json to_json(const VerifyVerdict& verdict) {
  nlohmann::json races = nlohmann::json::array(), divergences = nlohmann::json::array();
  for (const RaceFound& race : verdict.races) {
    races.push_back({{"ranks", race.ranks}, {"buffer", race.buffer}, {"first", race.first_line}, {"second", race.second_line}, {"sentence", race.sentence}});
  }
  for (const check::Divergence& one : verdict.divergences) {
    divergences.push_back({{"axis", one.group.axis}, {"group", one.group.ranks}, {"difference", check::name_of(one.difference)},
                           {"usual_rank", one.usual}, {"odd_rank", one.odd}, {"alike_before", one.place}, {"sentence", one.sentence}});
  }
  return {{"fine", verdict.fine()}, {"world_size", verdict.world_size}, {"ranks", verdict.ranks}, {"missing_ranks", verdict.missing},
          {"steps", verdict.steps}, {"races", races}, {"racing_pairs", verdict.pairs}, {"divergences", divergences}, {"hang", verdict.hang},
          {"against", verdict.against}, {"numbers", verdict.numbers}};
}

void print(const VerifyVerdict& verdict, const std::string& place, std::size_t most, Console& console) {
  auto say = [&console](const std::string& head, const std::string& sentence) {
    for (const std::string& part : wrap(head + sentence + ".", console.text_columns())) console.out << part << "\n";
  };
  console.out << "Verify  " << place << ": " << count_text(static_cast<long long>(verdict.ranks.size()), "rank") << ", "
              << count_text(static_cast<long long>(verdict.steps), "step") << " of " << count_text(static_cast<long long>(verdict.ops), "op") << "\n";
  if (!verdict.missing.empty()) {
    say("", text(ranks_text(verdict.missing), " of ", verdict.world_size, " left no record, so what ", verdict.missing.size() == 1 ? "it" : "they",
                          " issued is not known"));
  }
  for (std::size_t at = 0; at < verdict.races.size() && at < most; ++at) {
    say("race on ", text(ranks_text(verdict.races[at].ranks), ": ", verdict.races[at].sentence));
  }
  if (verdict.races.size() > most) console.out << "… and " << verdict.races.size() - most << " more races; --most says how many to print\n";
  for (std::size_t at = 0; at < verdict.divergences.size() && at < most; ++at) say("ranks differ ", verdict.divergences[at].sentence);
  if (verdict.divergences.size() > most) console.out << "… and ranks differ in " << verdict.divergences.size() - most << " more groups\n";
  if (!verdict.hang.empty()) say("hang: ", verdict.hang);
  if (!verdict.numbers.empty()) say("numbers: ", verdict.numbers);
  // What was looked for and not found
  if (verdict.races.empty()) {
    console.out << "No race: each use of a buffer waits for those before it, also across the border of two steps\n";
  } else {
    say("", text(count_text(static_cast<long long>(verdict.races.size()), "wait"), " missing, for lack of which ",
                 count_text(static_cast<long long>(verdict.pairs), "pair"), " of ops may run in either order"));
  }
  if (verdict.divergences.empty()) console.out << "No rank differs: each group's collectives are the same, in the same order, on every rank that is here\n";
  if (verdict.divergences.empty() && verdict.hang.empty()) console.out << "No hang: the streams of every rank that is here run empty\n";
  if (!verdict.against.empty() && verdict.numbers.empty()) console.out << "No number differs: losses and gradient norms are those of " << verdict.against << ", but for rounding\n";
}

}  // namespace

std::vector<Switch> verify_switches() {
  return {{"against", "RUN", "A run that is trusted, as one rank's of the same training: its losses and gradient norms are compared.", "none"},
          {"most", "N", "Findings to print of each sort.", std::to_string(most_by_default)},
          {"json", "", "Findings as JSON on standard output, all of them.", ""}};
}

int verify(const Line& line, Console& console) {
  int most = most_by_default;
  if (line.has("most")) {
    const base::Result<int> asked = whole_number("most", line.value("most"));
    if (!asked) return refuse(console, asked.error());
    most = asked.value();
  }
  const std::string& place = line.places.front();
  base::Result<std::vector<Record>> records = load_records(place);
  if (!records) return refuse(console, records.error());
  VerifyVerdict verdict = verdict_on(std::move(records).value());
  if (line.has("against")) {
    verdict.against = line.value("against");
    base::Result<std::string> numbers = numbers_against(place, verdict.against);
    if (!numbers) return refuse(console, numbers.error());
    verdict.numbers = std::move(numbers).value();
  }
  if (line.has("json")) {
    console.out << base::json_text(to_json(verdict), 2) << "\n";
  } else {
    print(verdict, place, static_cast<std::size_t>(most), console);
  }
  return verdict.fine() ? exit_ok : exit_failed;
}

}  // namespace shardbook::cli
