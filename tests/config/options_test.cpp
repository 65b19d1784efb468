// What was asked for: presets, the table of options, and configs as JSON.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "engine/config/config.hpp"

namespace shardbook::config {
namespace {

std::string error_of(const base::Status& status) { return status ? "" : status.error(); }

void ask_all(RunConfig& config, const std::vector<std::pair<std::string, std::string>>& asked) {
  for (const auto& [name, value] : asked) ASSERT_EQ(error_of(ask(config, name, {value})), "");
}

TEST(Presets, HaveTheSizesAndParametersOfTheirNames) {
  ASSERT_EQ(presets().size(), 6u);
  EXPECT_EQ(parameter_count(presets()[0]), 4 * (12 * 128 * 128 + 13 * 128) + 256 * 128 + 128 * 128 + 2 * 128);
  EXPECT_EQ(parameter_count(presets()[1]), 124'475'904);
  EXPECT_NEAR(parameter_count(presets()[2]), 1.42e9, 0.005e9);
  EXPECT_NEAR(parameter_count(presets()[3]), 6.86e9, 0.01e9);
  // Llama 3 8B as Meta counts it; the tutor by hand: per layer q, k, v, projection, gate, up, down and two norms.
  EXPECT_EQ(parameter_count(presets()[5]), 8'030'261'248);
  EXPECT_EQ(parameter_count(presets()[4]), 4 * (128 * 256 + 128 * 128 + 3 * 128 * 352 + 2 * 128) + 2 * 256 * 128 + 128);
  for (const ModelConfig& model : presets()) {
    EXPECT_EQ(model.heads * model.head_dim, model.width) << model.preset;
    EXPECT_EQ(model.heads % model.kv_heads(), 0) << model.preset;
    if (model.architecture == Architecture::gpt) {
      EXPECT_EQ(model.ffn_width, 4 * model.width) << model.preset;
    }
  }
}

TEST(Presets, NeedTheFlopsOfTheirMatmulsATokenAndNoneForTables) {
  const ModelConfig& gpt = presets()[2];   // untied: 24 blocks of 12 d^2, and the head
  const std::int64_t d = 2048;
  EXPECT_EQ(matmul_parameter_count(gpt), 24 * 12 * d * d + 50304 * d);
  EXPECT_EQ(flops_per_token(gpt), 6.0 * (24 * 12 * d * d + 50304 * d) + 6.0 * 24 * 1024 * d);
  ModelConfig tied = gpt;
  tied.tied = true;
  EXPECT_EQ(matmul_parameter_count(tied), matmul_parameter_count(gpt));   // the head is a matmul whoever's table it uses
  const ModelConfig& llama = presets()[5];
  EXPECT_EQ(parameter_count(llama) - matmul_parameter_count(llama), 128256 * 4096 + 32 * 2 * 4096 + 4096);   // table and norms
}

TEST(RunConfig, IsTheGrammarTutorWhenNothingWasAskedFor) {
  const RunConfig config;
  EXPECT_EQ(config.model, presets()[0]);
  EXPECT_EQ(config.steps, 40);
  EXPECT_EQ(config.sequences, 16);
  EXPECT_EQ(config.lr, 2e-3);
  EXPECT_EQ(config.data, std::vector<std::string>{"grammar"});
  EXPECT_TRUE(config.asked.empty());
}

TEST(Options, HaveOneRowANameAndAHelpSentence) {
  std::set<std::string> names;
  for (const Option& option : options()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_EQ(option.help.back(), '.') << option.name;
    EXPECT_FALSE(option.default_text.empty()) << option.name;
    EXPECT_FALSE(option.values.empty()) << option.name;
  }
}

TEST(Options, ReadBackWhatTheyPrint) {
  for (const Option& option : options()) {
    if (option.takes_many) continue;
    RunConfig config;
    const std::string before = option.get(config);
    EXPECT_EQ(error_of(option.set(config, before)), "") << option.name;
    EXPECT_EQ(option.get(config), before) << option.name;
  }
}

// The default that the help names, where it is a value and not a sentence, is the default. Any
// sentence would do as the text of `data`, `out`, `lab`, `checkpoint`, `resume` and `matmuls`.
TEST(Options, NameTheirTrueDefaults) {
  for (const Option& option : options()) {
    RunConfig config;
    const std::string value = option.get(config);
    RunConfig read;
    if (std::set<std::string>{"data", "out", "lab", "checkpoint", "resume", "matmuls"}.contains(option.name)) continue;
    if (!option.set(read, option.default_text)) continue;
    EXPECT_EQ(option.get(read), value) << option.name;
  }
}

TEST(Ask, KeepsWhatWasAskedForWhateverTheOrder) {
  RunConfig lr_first;
  ask_all(lr_first, {{"lr", "0.001"}, {"model", "gpt-1.3b"}, {"layers", "2"}});
  RunConfig model_first;
  ask_all(model_first, {{"layers", "2"}, {"model", "gpt-1.3b"}, {"lr", "0.001"}});
  EXPECT_EQ(to_json(lr_first), to_json(model_first));
  EXPECT_EQ(lr_first.lr, 0.001);
  EXPECT_EQ(lr_first.model.layers, 2);
  EXPECT_EQ(lr_first.model.width, 2048);
  EXPECT_EQ(lr_first.data, std::vector<std::string>{"synthetic"});
  EXPECT_TRUE(lr_first.was_asked("lr"));
  EXPECT_FALSE(lr_first.was_asked("steps"));
}

TEST(Ask, LetsHeadDimAndFeedForwardWidthFollowTheWidth) {
  RunConfig config;
  ask_all(config, {{"width", "96"}, {"heads", "3"}});
  EXPECT_EQ(config.model.head_dim, 32);
  EXPECT_EQ(config.model.ffn_width, 384);
  ask_all(config, {{"ffn-width", "100"}, {"width", "192"}});
  EXPECT_EQ(config.model.ffn_width, 100);
  EXPECT_EQ(config.model.head_dim, 64);
}

TEST(Ask, ForAnotherModelDropsTheSizesAskedForWithTheFirst) {
  RunConfig config;
  ask_all(config, {{"model", "gpt-124m"}, {"layers", "2"}, {"steps", "7"}, {"model", "gpt-1.3b"}});
  EXPECT_EQ(config.model.layers, 24);
  EXPECT_EQ(config.steps, 7);
}

TEST(Ask, TakesSeveralFilesForData) {
  RunConfig config;
  ASSERT_EQ(error_of(ask(config, "data", {"a.txt", "b.txt"})), "");
  EXPECT_EQ(config.data, (std::vector<std::string>{"a.txt", "b.txt"}));
}

TEST(Ask, RefusesWithOneSentenceAndLeavesTheConfigAsItWas) {
  RunConfig config;
  const std::string before = to_json(config);
  EXPECT_EQ(error_of(ask(config, "fsdpp", {"2"})), "there is no option --fsdpp; the nearest is --fsdp");
  EXPECT_EQ(error_of(ask(config, "tp", {"0"})), "--tp must be a whole number from 1 to 1024, not '0'");
  EXPECT_EQ(error_of(ask(config, "tp", {"2x"})), "--tp must be a whole number from 1 to 1024, not '2x'");
  EXPECT_EQ(error_of(ask(config, "steps", {"99999999999"})),
            "--steps must be a whole number from 1 to 100000000, not '99999999999'");
  EXPECT_EQ(error_of(ask(config, "device", {"gpu"})), "--device must be one of host, cuda, meta, not 'gpu'");
  EXPECT_EQ(error_of(ask(config, "model", {"gpt-5"})),
            "--model must be one of grammar-tutor|gpt-124m|gpt-1.3b|gpt-6.9b|llama-tutor|llama-8b, not 'gpt-5'");
  EXPECT_EQ(error_of(ask(config, "beta1", {"1"})), "--beta1 must be a number of at least 0 and below 1, not '1'");
  EXPECT_EQ(error_of(ask(config, "lr", {"nan"})), "--lr must be a number of at least 0 and below 1000, not 'nan'");
  EXPECT_EQ(error_of(ask(config, "reshard", {"yes"})), "--reshard must be true or false, not 'yes'");
  EXPECT_EQ(error_of(ask(config, "trace-steps", {"5"})),
            "--trace-steps must be A:B with 0 <= A <= B, as in 5:8, not '5'");
  EXPECT_EQ(error_of(ask(config, "seed", {"-1"})),
            "--seed must be a whole number from 0 to 18446744073709551615, not '-1'");
  EXPECT_EQ(error_of(ask(config, "tp", {"1", "2"})), "--tp takes one value, not 2");
  EXPECT_EQ(error_of(ask(config, "data", {})), "--data takes at least one value, not 0");
  EXPECT_EQ(to_json(config), before);
  EXPECT_TRUE(config.asked.empty());
}

TEST(Suggest, YieldsToWhatWasAskedFor) {
  RunConfig config;
  ask_all(config, {{"tp", "4"}});
  ASSERT_EQ(error_of(suggest(config, "tp", {"2"})), "");
  ASSERT_EQ(error_of(suggest(config, "fsdp", {"2"})), "");
  EXPECT_EQ(config.tp, 4);
  EXPECT_EQ(config.fsdp, 2);
  EXPECT_FALSE(config.was_asked("fsdp"));
  EXPECT_FALSE(config.is_open("fsdp"));
  EXPECT_EQ(error_of(suggest(config, "fsd", {"2"})), "there is no option --fsd; the nearest is --fsdp");
}

TEST(Json, ReadsBackWhatItWrote) {
  RunConfig config;
  ask_all(config, {{"model", "gpt-1.3b"}, {"tp", "2"}, {"lr", "0.00012345678901234567"}, {"reshard", "false"},
                   {"device", "meta"}, {"trace-steps", "1:2"}, {"seed", "18446744073709551615"}, {"lab", "02 \"x\""}});
  ASSERT_EQ(error_of(ask(config, "data", {"uno.txt", "d\303\263s \"2\".txt"})), "");
  RunConfig read;
  ASSERT_EQ(error_of(read_json(read, to_json(config), "run.json")), "");
  EXPECT_EQ(to_json(read), to_json(config));
  EXPECT_EQ(read.lr, config.lr);
  EXPECT_EQ(read.seed, ~std::uint64_t{0});
  EXPECT_EQ(read.data, config.data);
  EXPECT_TRUE(read.was_asked("beta2"));
}

TEST(Json, TakesNumbersBooleansAndTexts) {
  RunConfig config;
  ASSERT_EQ(error_of(read_json(config, R"({"tp": 2, "fsdp": "4", "reshard": false, "data": "a.txt"})", "c.json")), "");
  EXPECT_EQ(config.tp, 2);
  EXPECT_EQ(config.fsdp, 4);
  EXPECT_FALSE(config.reshard);
  EXPECT_EQ(config.data, std::vector<std::string>{"a.txt"});
}

TEST(Json, NamesFileLineAndKeyOfWhatIsWrong) {
  RunConfig config;
  const std::string before = to_json(config);
  auto error = [&](std::string_view json) { return error_of(read_json(config, json, "c.json")); };
  EXPECT_EQ(error("{\n  \"steps\": 3,\n  \"microbatches\": 2\n}"),
            "c.json:3: unknown key \"microbatches\"; the nearest is \"micro-batches\"");
  EXPECT_EQ(error("{\"tp\": 2,\n\n\"steps\":\n -3}"),
            "c.json:3: \"steps\" must be a whole number from 1 to 100000000, not '-3'");
  EXPECT_EQ(error("{\"steps\": 1.5}"), "c.json:1: \"steps\" must be a whole number from 1 to 100000000, not '1.5'");
  EXPECT_EQ(error("{\n\"tp\": 1,\n\"tp\": 2}"), "c.json:3: the key \"tp\" stands here a second time");
  EXPECT_EQ(error("{\"tp\": [1]}"), "c.json:1: \"tp\" takes N, not [1]");
  EXPECT_EQ(error("{\"tp\": null}"), "c.json:1: \"tp\" takes N, not null");
  EXPECT_EQ(error("{\"data\": [\"a\", 3]}"), "c.json:1: \"data\" takes grammar|synthetic|FILE..., not [\"a\",3]");
  EXPECT_EQ(error("[1, 2]"), "c.json:1: a config is one JSON object of options, not array");
  auto begins = [&](std::string_view json, const std::string& begin) {
    EXPECT_EQ(error(json).substr(0, begin.size()), begin);
  };
  begins("{\n  \"tp\": 2,\n  \"steps\": 3,,\n}", "c.json:3: malformed JSON at or after the key \"steps\": unexpected");
  begins("{\n  \"tp\": 2", "c.json:2: malformed JSON at or after the key \"tp\": unexpected end of input");
  begins("", "c.json:1: malformed JSON before the first key: ");
  EXPECT_EQ(error("").find("json.exception"), std::string::npos) << error("") << ": the library's words, but not its name for them";
  EXPECT_EQ(to_json(config), before);
}

TEST(File, NamesWhatCannotBeRead) {
  const auto folder = std::filesystem::temp_directory_path() / ("shardbook_config_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string empty = (folder / "empty.json").string();
  std::ofstream{empty};
  const std::string good = (folder / "good.json").string();
  std::ofstream(good) << "{\"steps\": 7}";
  RunConfig config;
  EXPECT_EQ(error_of(read_file(config, (folder / "missing.json").string())),
            "cannot read the config " + (folder / "missing.json").string() + ": No such file or directory");
  EXPECT_EQ(error_of(read_file(config, folder.string())),
            "the config " + folder.string() + " is a folder; name the JSON file within it");
  EXPECT_EQ(error_of(read_file(config, empty)), "the config " + empty + " is empty; the least config is {}");
  EXPECT_EQ(error_of(read_file(config, good)), "");
  EXPECT_EQ(config.steps, 7);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace shardbook::config
