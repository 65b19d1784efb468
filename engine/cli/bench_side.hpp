// cli/bench_side: what did one side of a row do, this engine or a peer?
//
// A peer is a script of experiments/ in a process of its own; the last line of what it says that is a JSON object with "step_ns" has
// its figures (experiments/speed/torch_peer.py says which).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace shardbook::cli {

// Over its turns. Times in ns; of a turn the median of its untraced steps.
struct Side {
  std::string name;
  std::vector<double> steps;
  double least = 0, most = 0;     // of any step
  double peak_bytes = 0;
  double mfu = -1;                // of its step; −1: the peak of this GPU is not known
  double exposed_share = -1;      // of the last turn's traced steps, modelled of the step itself where a graph launches it; −1: not known
  double overlap = -1;
  double busy_ns = -1;            // of a peer's step in the last turn: its first GPU had something to do; −1: not known
  double computing_ns = -1;       // the same but for the collectives' kernels, which wait for other ranks, too
  std::string failure;            // the sentence; then nothing else counts
  nlohmann::json versions = nlohmann::json::object();

  double step_ns() const;   // the median of the turns' medians; 0: none
  void add(double step, double from, double to);
};

// How many steps a peer takes, of which twelve warm up: what its median is of are twenty at least, or four where few are `asked` for (0:
// none in particular, so as the shape has it); and at most forty.
int peer_steps(int asked, int of_shape);

// Adds a turn of a peer. False where `said` holds no figures, and then nothing is changed.
bool add_figures(const std::string& said, Side& side);

// Of steps that were taken, how long the GPU of a peer is busy in one beside ours: a sentence, or "" where either is not known.
std::string busy_sentence(const Side& peer, const Side& ours);

// What is not known is left out.
nlohmann::json json_of(const Side& side);

// Milliseconds, three digits that count: "9.87", "98.7", "987".
std::string short_ms(double ns);

}  // namespace shardbook::cli
