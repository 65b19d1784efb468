// What cost_bench can be asked, a word each. Each prints lines, and says in them what was measured how.
#pragma once

#include <cstdint>
#include <vector>

namespace shardbook::cost {

// `step [MODEL SEQUENCES TURNS STEPS_A_TURN]`: what a step costs the host, issued in several ways.
void of_steps(int count, char** words);
// `trace [MODEL SEQUENCES TURNS STEPS_A_TURN]`: what tracing adds to a step, traced and plain ones in turns.
void of_tracing(int count, char** words);
// `gap`: an op's period on a stream and in a graph.
void of_gaps();
// `marks`: what a mark between two ops costs the host and the stream, by kind of mark.
void of_marks();
// `calls`: what a collective costs the host that issues it; two ranks. The exit code.
int of_calls();
// `log`: what writing a call down costs; no GPU.
void of_the_log();

double median(std::vector<double> values);

}  // namespace shardbook::cost
