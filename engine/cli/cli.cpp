#include "engine/cli/cli.hpp"

#include <algorithm>
#include <cctype>
#include <ostream>

#include "engine/base/nearest.hpp"
#include "engine/cli/built_with.hpp"
#include "engine/cli/bench_command.hpp"
#include "engine/cli/calibrate_command.hpp"
#include "engine/cli/check_command.hpp"
#include "engine/cli/checkpoint_command.hpp"
#include "engine/cli/command.hpp"
#include "engine/cli/diff_command.hpp"
#include "engine/cli/doctor.hpp"
#include "engine/cli/figures.hpp"
#include "engine/cli/help.hpp"
#include "engine/cli/loop_command.hpp"
#include "engine/cli/notes_command.hpp"
#include "engine/cli/pack_command.hpp"
#include "engine/cli/plan_command.hpp"
#include "engine/cli/read_command.hpp"
#include "engine/cli/report_command.hpp"
#include "engine/cli/show_command.hpp"
#include "engine/cli/switches_command.hpp"
#include "engine/cli/teacher_command.hpp"
#include "engine/cli/train_command.hpp"
#include "engine/cli/train_config.hpp"
#include "engine/cli/tune_command.hpp"
#include "engine/cli/verify_command.hpp"
#include "engine/cli/viewer.hpp"
#include "engine/cli/why_command.hpp"
#include "engine/cli/window.hpp"

namespace shardbook::cli {

namespace {

std::vector<Switch> with(std::vector<Switch> own, const std::vector<Switch>& more) {
  own.insert(own.end(), more.begin(), more.end());
  return own;
}

const Switch json{"json", "", "Figures as JSON on standard output.", ""};

template <const char* name>
int of_viewer(const Line& line, Console& console) {
  return viewer_command(name, line, console);
}
template <const char* name>
int of_launcher(const Line&, Console& console) {
  return refuse(console, base::text("`", name, "` is done by the launcher: run ./shardbook ", name, " at the root of the project"));
}

constexpr char view[] = "view", diagram[] = "diagram";
constexpr char build[] = "build", test[] = "test", fetch[] = "fetch";

// The verbs that carry a learner through the labs.
std::vector<Command> loop_commands() {
  return {
      {"next", "[NN[a]] [KEY=VALUE...]", 0, -1, "Where you are in the labs, what to predict, and one command.",
       "Asks for a part's predictions and seals them, before you run anything. They can stand on the line, or be\n"
       "piped in, a line each. Progress is kept in experiments/progress.txt, a line an event.\n\n"
       "  ./shardbook next\n"
       "  ./shardbook next shorter=20ms fault=3\n"
       "  ./shardbook next 00b\n",
       {{"seed", "N", "A number from your teacher, before you begin; exercises then ask for other sizes.", ""}}, next_part},
      {"list", "", 0, 0, "All parts of all labs, and what became of them.", "", {}, list_parts},
      {"check", "[NN[a]] [KEY=VALUE...]", 0, -1, "Judge your file of a part: the first thing that is wrong, or why it is right.",
       "An exercise is compiled alone and run in a child with limits (20 s, 2 GiB). Answers are compared with what the\n"
       "captured runs say. Exit code 0: passed; 1: not; 2: it cannot be judged.\n\n"
       "  ./shardbook check                       the part where you are\n"
       "  ./shardbook check 00b --watch           again whenever you save\n"
       "  ./shardbook check 00a late_rank=3       an answer on the line\n"
       "  ./shardbook check 04 --trace FOLDER     your traces of PyTorch, all ranks\n",
       check_switches(), check_part},
      {"hint", "[NN[a]]", 0, 1, "The next of a part's three hints.", "", {}, hint_of},
      {"card", "[NN[a]]", 0, 1, "A question from a part that you have passed, then its answer.", "", {}, card_of},
      {"solution", "NN[a]", 1, 1, "One way to do it: after a pass, or after three failed checks with --anyway.", "", solution_switches(), solution_of_part},
      {"reset", "NN[a]", 1, 1, "Begin a part's file again; what you have written is kept beside it.", "", {}, reset_part},
      {"submit", "", 0, 0, "One file with your progress and your files, for a teacher.",
       "Predictions, tries, hints, checks and files of all parts. Where a teacher has given you a seed, say it first,\n"
       "before you begin: ./shardbook next --seed 7.\n\n"
       "  ./shardbook submit --name \"Ada Lovelace\"\n",
       submit_switches(), submit},
      {"grade", "FILE|FOLDER...", 1, -1, "Check submissions anew, and print a table (CSV).",
       "Nothing that a submission says of itself is believed: each file is judged here, with its learner's seed. Beside that\n"
       "stand tries, hints, minutes and predictions of its progress file; code that equals another's or the solution\n"
       "but for names, comments and blanks; and lines that were edited.\n\n"
       "  ./shardbook grade submissions/ > grades.csv\n",
       grade_switches(), grade},
      {"lab", "new|lint|figures ...", 1, 3, "For who writes labs: make one, check that it is whole, state its figures.",
       "  ./shardbook lab new 05 sequence_parallel   a lab that builds and passes, to fill in\n"
       "  ./shardbook lab lint                       what is missing or stale in any lab\n"
       "  ./shardbook lab lint 05                    whether this one is done: solutions, starters and wrong answers are tried\n"
       "  ./shardbook lab figures 05 --write         all figures of its facts and of its solutions' checks, computed now\n",
       lab_switches(), lab},
  };
}

std::vector<Command> make_commands() {
  std::vector<Command> all = loop_commands();
  const std::vector<Command> others = {
      {"run", "LAB", 1, 1, "Run a lab: train what it is about, on the largest layout that this node allows.",
       "A lab suggests a model and a layout; every option of `train` may be given on top, and what is asked for\n"
       "is granted or refused, never changed. It ends with where the time of each rank went, the longest\n"
       "blocking exposure with its source line, and the folder of the run.\n\n"
       "  ./shardbook run 02                       on GPUs where there are any, else on the host\n"
       "  ./shardbook run 02 --device host --tp 4  the same with another cut\n"
       "  ./shardbook run 02 --prefetch 0          what if nothing is gathered ahead?\n"
       "  ./shardbook run 02 --set fsdp.backward_prefetch=none\n"
       "                                           the same in backward only; `shardbook switches` lists more\n",
       training_switches(), run_lab},
      {"train", "", 0, 0, "Train a model under any layout, and leave a timeline.",
       "Without options: the grammar tutor, on one rank. Times are measured on GPUs (--device cuda), modelled\n"
       "by a machine profile (--device host and meta), or taken from this CPU's clock (--clock wall).\n\n"
       "  ./shardbook train --tp 2 --fsdp 2 --steps 20\n"
       "  ./shardbook train --device meta --model gpt-1.3b --fsdp 64\n"
       "  ./shardbook train --config experiments/train/runs/RUN       repeats a run\n"
       "  ./shardbook train --fsdp 4 --checkpoint saved --save-every 10     and `train --resume saved` goes on\n"
       "  ./shardbook train --fsdp 4 --set fsdp.backward_prefetch=none\n"
       "                     a design choice made otherwise; `shardbook switches` lists them\n",
       training_switches(), train},
      {"plan", "", 0, 0, "What a step would do, as a list: what is gathered, computed, summed, and when.",
       "Takes the options of `train`, and starts nothing. Prints the actions of one rank in the order in which it would\n"
       "issue them, each with the micro-batch that it is for, the shared buffer that it takes and the line of source\n"
       "that planned it; then the memory that this order needs, and what a check over all ranks says of it.\n\n"
       "  ./shardbook plan --fsdp 4\n"
       "  ./shardbook plan --fsdp 4 --prefetch 0\n"
       "  ./shardbook plan --model gpt-1.3b --fsdp 8 --memory    what a rank holds, by formulas\n"
       "  ./shardbook plan --model gpt-1.3b --tp 2 --fsdp 8 --micro-batches 4 --rank 15\n",
       plan_switches(), plan_of},
      {"show", "DIR|FILE...", 1, -1, "Draw a timeline in the terminal; keys move about in it.",
       "A row a stream, a row of exposed communication and a row of idle time for each rank. On a terminal:\n"
       "arrows or w a s d zoom and pan, n and N go from one exposed span to the next, j and k to more ranks, f shows\n"
       "all, q ends.\n"
       "Opens folders of runs and rank files, also traces of torch.profiler (.json, .json.gz).\n\n"
       "  ./shardbook show experiments/02_tensor_parallel/runs/RUN\n"
       "  ./shardbook show RUN --step 11 --ranks 0,1 --plain\n",
       with(window_switches(), {{"ranks", "R,R...", "These ranks only.", "all"},
                                {"width", "N", "Columns.", "the terminal's, else 100"},
                                {"plain", "", "Draw once, without keys.", ""},
                                {"ascii", "", "Only ASCII characters.", ""},
                                {"json", "", "The exposed spans, longest blocking first, as JSON.", ""}}),
       show},
      {"why", "RUN|TRACE...", 1, -1, "What bounds a step, which causes cost most, and what would change them.",
       "One sentence, then where the step's time went (it sums to the step) with what the step would gain without\n"
       "each, and the causes by what they cost. A run of ours is resolved again without each cause, so a gain is what\n"
       "its removal gives; of another trace the timeline alone tells, and gains are bounds. A run without a problem\n"
       "says so.\n\n"
       "  ./shardbook why experiments/02_tensor_parallel/runs/RUN\n"
       "  ./shardbook why experiments/captured/gpt-1.3b-fsdp4-no-prefetch.tar.gz --step 11\n"
       "  ./shardbook why rank0.json.gz rank1.json.gz                  traces of torch.profiler\n",
       why_switches(), why},
      {"whatif", "RUN [KEY=FACTOR...]", 0, -1, "What would the step take if a cost were another, or a wait not there?",
       "The recorded step is resolved again with that change. Of a modelled run by its own profile; of a measured one\n"
       "each op keeps its measured duration and the recorded edges place it. With --set the step is issued again with a\n"
       "switch: ops that stay keep their durations, others take the profile's. The answer is a model in all cases.\n\n"
       "  ./shardbook whatif RUN host=0\n"
       "  ./shardbook whatif RUN --scale alpha=0 --scale beta=0.5\n"
       "  ./shardbook whatif experiments/captured/gpt-1.3b-tp4.tar.gz comm=0\n"
       "  ./shardbook whatif RUN --drop wait=engine/fsdp/schedule.cpp:79\n"
       "  ./shardbook whatif RUN --prefetch 2                         the same as --set fsdp.prefetch=2\n"
       "  ./shardbook whatif RUN --set fsdp.backward_prefetch=none\n",
       whatif_switches(), whatif, false, not_for_whatif},
      {"diff", "[A B | NN[a]]", 0, 2, "What differs between two runs: what was changed, what it cost or gained, and where.",
       "One step of each, aligned op by op. Compute, exposed communication, exposed memory and idle are differences that\n"
       "sum to that of the step; then tables by kind, the largest loss first. Equal runs say that they are equal.\n\n"
       "  ./shardbook diff experiments/captured/gpt-1.3b-fsdp4.tar.gz \\\n"
       "                   experiments/captured/gpt-1.3b-fsdp4-no-prefetch.tar.gz\n"
       "  ./shardbook diff             the last two runs that you have made\n"
       "  ./shardbook diff 00b         your file beside the solution, once that may be seen\n",
       diff_switches(), diff_any},
      {"metrics", "DIR|FILE...", 1, -1, "Where the time of each rank went, exact to the nanosecond.",
       "compute + exposed communication + exposed memory + idle = the window, for each rank. Communication is\n"
       "exposed while no compute of its rank runs; overlap is the part of it that is not.\n"
       "With --json, a run gives one object; traces of other programs give a line a rank.\n\n"
       "  ./shardbook metrics experiments/02_tensor_parallel/runs/RUN --step 11\n"
       "  ./shardbook metrics rank0.json.gz rank1.json.gz --json       traces of torch.profiler\n",
       with(window_switches(), {json}), metrics_of},
      {"verify", "RUN", 1, 1, "Could what a run issued race, or hang? From its records, all ranks.",
       "Three checks of what was issued, whatever the clocks said. Stream order: every use of a buffer waits for those\n"
       "before it on other streams, within a step and across the border of two. Collectives: the ranks of each group\n"
       "call the same ones, in the same order, of the same size and type. Queues: the streams of all ranks run empty.\n"
       "Each finding is one sentence with its lines of source. Numbers, with --against: losses and gradient norms are\n"
       "those of another run of the same training, as of one rank. Exit code 0: nothing found; 1: something was; 2: no\n"
       "record to look at.\n\n"
       "  ./shardbook verify experiments/02_tensor_parallel/runs/RUN\n"
       "  ./shardbook verify experiments/captured/gpt-1.3b-tp2-fsdp2.tar.gz\n"
       "  ./shardbook verify RUN --against ONE_RANK\n",
       verify_switches(), verify},
      {"read", "[NOTE]", 0, 1, "Read a note, with the engine's code woven in; without a name, list them.",
       "Notes are named by number, name or path. Where a note names a span of the engine, its lines are shown as\n"
       "they stand in your working copy.\n\n"
       "  ./shardbook read 03\n"
       "  ./shardbook read 00a                         the chapter of a lab's part\n"
       "  ./shardbook read 00a --found                 what there was to find in it\n"
       "  ./shardbook read words\n"
       "  ./shardbook read labs/02_tensor_parallel\n",
       {{"lang", "en|es", "The language, where there is a translation.", "en"},
        {"found", "", "What there is to find in this part of a lab: for when you have your own numbers.", ""}}, read_note},
      {"notes", "check|compare|sources [FOLDER]", 1, 2, "Check your notes of lab 03, compare them, fetch what they read.",
       "check: files, commit, five choices a note with `path:L10-L20` that hold what they name, nothing pasted, two\n"
       "diagrams, figures as their runs have them. Each finding has file, line and rule; it never judges a reason.\n"
       "compare: your notes beside the reference by the places that both cite.\n"
       "sources: the few files of Megatron-LM and PyTorch at the commits that the lab pins, into sources/.\n"
       "FOLDER is experiments/35-reading-notes where none is named.\n\n"
       "  ./shardbook notes sources\n"
       "  ./shardbook notes check\n"
       "  ./shardbook notes check solutions/03_reading --clone ../Megatron-LM ../pytorch\n"
       "  ./shardbook notes compare\n",
       notes_switches(), notes},
      {"switches", "[NAME]", 0, 1, "Design choices that can be made otherwise; with a name, all of one.",
       "A switch is a choice that Megatron-LM or PyTorch has made, and that --set KEY=VALUE makes otherwise in\n"
       "`train` and `run`. With a name: where it stands in the originals, how it is asked for there, what it needs,\n"
       "and the configurations in which it matters and in which it does not.\n\n"
       "  ./shardbook switches\n"
       "  ./shardbook switches fsdp.prefetch\n"
       "  ./shardbook train --device meta --model gpt-124m --fsdp 8 --set fsdp.prefetch=0\n",
       {{"json", "", "The rows as JSON on standard output.", ""}}, switches_of},
      {"figures", "[FILE...]", 0, -1, "Do the texts still say what is so? Makes each figure that they name anew.",
       "A text names where a number comes from in a comment below it, `<!-- says`: a modelled run, the machine profile,\n"
       "or a formula of the notes. Each is made anew and must round to what the text says. Without files: notes/, labs/,\n"
       "solutions/ and README.md. Exit code 1 if one is stale.\n\n"
       "  ./shardbook figures\n"
       "  ./shardbook figures notes/03_tensor_parallel.md --stale\n",
       figures_switches(), figures_of},
      {"doctor", "", 0, 0, "What is here, what works with it, and how to get the rest.",
       "Looks at compiler, CUDA, GPUs and their links, NCCL, BLAS, zlib and display. Changes nothing.\n",
       {json}, doctor},
      {"calibrate", "", 0, 0, "Measure this node's GPUs and write a machine profile of them.",
       "Runs micro-benchmarks of matmuls, kernels, collectives and their overlap through the calls that\n"
       "training makes, a process a GPU, and fits the profile that the modelled clock uses. Takes some minutes.\n\n"
       "  ./shardbook calibrate --name mynode --out mynode.json\n"
       "  ./shardbook train --device host --tp 2 --fsdp 2 --profile mynode.json\n",
       calibrate_switches(), calibrate},
      {"tune", "", 0, 0, "Measure which of cuBLASLt's algorithms is fastest for each matmul of a run.",
       "cuBLASLt puts the algorithms for a matmul in an order, by a heuristic, and a run takes the first. This times those that\n"
       "it names, on one GPU, for every matmul of a step of the run that the options describe (of any layout), and keeps the\n"
       "fastest in a file. A run with --matmuls FILE multiplies so, each time alike.\n\n"
       "  ./shardbook tune --model gpt-1.3b --fsdp 2 --sequences 16\n"
       "  ./shardbook train --model gpt-1.3b --fsdp 2 --sequences 16 --data synthetic --matmuls matmuls.json\n",
       tune_switches(), tune},
      {"bench", "[SHAPE...]", 0, -1, "How fast is the engine on these GPUs, and beside PyTorch?",
       "Trains the shapes that other engines are compared with, each over all GPUs, and prints a table: step, tokens a\n"
       "second, exposed communication, memory; beside them what the model foretells, and the floor of the step, its\n"
       "flops and bytes at measured rates. SHAPE is a name, or the beginning of one: gpt-1.3b-fsdp, gpt-6.9b, llama-8b.\n\n"
       "  ./shardbook bench --device meta --gpus 8         what the model foretells, without a GPU\n"
       "  ./shardbook bench gpt-1.3b --vs torch            the same shapes in PyTorch, in turn\n"
       "  ./shardbook bench gpt-1.3b-fsdp --set attention.kernel=unfused\n",
       bench_switches(), bench},
      {view, "[RUN|TRACE|LAB...]", 0, -1, "Open the viewer on runs, traces and labs.",
       "Timelines beside notes, diagrams and source. Opens folders of runs, packed runs, traces of torch.profiler\n"
       "(.json, .json.gz) and labs by number; without a name, it shows what can be opened. F1 lists all keys.\n"
       "With --screenshot or --script it needs no display.\n\n"
       "  ./shardbook view experiments/02_tensor_parallel/runs/RUN\n"
       "  ./shardbook view 02 RUN                      the lab's text beside the run\n"
       "  ./shardbook view RUN --screenshot out.png    a picture, also on a node without a screen\n",
       {{"screenshot", "OUT.png", "Draw one picture into this file, without a window.", ""},
        {"script", "FILE", "Do what this file says, without a window.", ""},
        {"size", "WxH", "Of the picture, in pixels.", "1280x800"},
        {"scale", "X", "How large letters and panes are.", "1"},
        {"theme", "light|dark", "Colours.", "as last time"},
        {"layout", "read|split|trace", "How text and timeline share the window.", "as last time"},
        {"view", "LINK", "Where to begin: trace:RUN?t=1.2ms..1.9ms, note:03, lab:02.", ""},
        {"panel", "NAME", "The panel to show: span, source, area, find, compare, marks.", ""}},
       of_viewer<view>, true},
      {"report", "RUN|TRACE...", 1, -1, "A run as one page to share: pictures, sentence, figures.",
       "One HTML file that needs nothing else: opens from a disk, prints, follows light and dark. It shows who told\n"
       "the times, the longest blocking exposure with its lines of source, where the time of each rank went, the\n"
       "timeline of a step, the largest exposures, and the figures of `metrics` to the nanosecond.\n\n"
       "  ./shardbook report experiments/02_tensor_parallel/runs/RUN\n"
       "  ./shardbook report RUN --step 11 --out /tmp/step11.html\n"
       "  ./shardbook report rank0.json.gz rank1.json.gz               traces of torch.profiler\n",
       report_switches(), report_run},
      {"pack", "RUN", 1, 1, "A run as one small file, to carry to another machine.",
       "Rank files, records, configuration with the source that the run was made from, summary, the notes and the\n"
       "run's lab, as a tar archive. `show`, `metrics` and the viewer open it as it is.\n\n"
       "  ./shardbook pack experiments/02_tensor_parallel/runs/RUN\n"
       "  ./shardbook pack RUN --out /tmp/run.tar.gz\n",
       pack_switches(), pack_run},
      {"checkpoint", "DIR", 1, 1, "What a checkpoint holds, whether it is whole, and as one file for other programs.",
       "DIR is a checkpoint, or the folder that --checkpoint named: then it is the newest whole one. Lists step, layout of\n"
       "the run that wrote it, and tensors: a parameter's master by its own name, and its two moments. A checkpoint can be\n"
       "gone on from under any other layout.\n\n"
       "  ./shardbook train --tp 2 --fsdp 2 --checkpoint saved --save-every 10\n"
       "  ./shardbook checkpoint saved\n"
       "  ./shardbook checkpoint saved --verify\n"
       "  ./shardbook checkpoint saved --to tutor.safetensors\n"
       "  ./shardbook checkpoint other --from tutor.safetensors\n"
       "  ./shardbook train --resume saved --fsdp 4 --steps 80\n",
       checkpoint_switches(), checkpoint_of},
      {diagram, "FILE", 1, 1, "Say what a Mermaid diagram means, or draw it.",
       "Reads a flowchart, a sequence diagram or a gantt chart and lists what was understood; if it was not, line\n"
       "and reason, and exit code 2. Of a page (.md), the first diagram, or that of --number.\n\n"
       "  ./shardbook diagram notes/map.md --number 2\n"
       "  ./shardbook diagram map.mmd --png map.png\n",
       {json,
        {"png", "OUT.png", "Draw it into this file.", ""},
        {"number", "N", "Which diagram of a page.", "1"},
        {"theme", "light|dark", "Colours of the picture.", "light"},
        {"scale", "X", "How large it is drawn.", "1"}},
       of_viewer<diagram>, true},
      {build, "", 0, -1, "Build again.", "", {}, of_launcher<build>},
      {test, "", 0, -1, "Run all tests.", "", {}, of_launcher<test>},
      {fetch, "", 0, -1, "Fetch pinned packages, to carry to a node without a network.", "", {}, of_launcher<fetch>},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all = make_commands();
  return all;
}

// What is meant by a word of another course, or of habit: the command as it is typed here. "" if nobody knows.
std::string meant_by(const std::vector<std::string>& words) {
  struct Habit {
    const char* word;
    const char* command;
  };
  static constexpr Habit habits[] = {
      {"start", "next"},      {"begin", "next"},      {"init", "next"},      {"continue", "next"},     {"learn", "next"},      {"predict", "next"},
      {"step", "next"},       {"status", "next"},     {"watch", "check --watch"}, {"try", "check"},     {"judge", "check"},     {"compile", "check"},
      {"done", "check"},      {"answer", "check"},    {"exercise", "next"},  {"exercises", "list"},    {"ls", "list"},         {"labs", "list"},
      {"progress", "list"},   {"parts", "list"},      {"hints", "hint"},     {"clue", "hint"},         {"solve", "solution"},  {"sol", "solution"},
      {"solutions", "solution"}, {"answers", "solution"}, {"restart", "reset"}, {"undo", "reset"},     {"cards", "card"},      {"quiz", "card"},
      {"recall", "card"},     {"open", "view"},       {"text", "read"},      {"note", "read"},         {"man", "read"},
      {"handin", "submit"},   {"hand-in", "submit"},  {"mark", "grade"},     {"lint", "lab lint"},     {"new", "lab new"},     {"figures", "lab figures"},
      {"compare", "diff"},    {"explain", "why"},     {"profile", "metrics"},  {"sources", "notes sources"}, {"cite", "notes check"},
  };
  // A part alone: "00b".
  const std::string& word = words.front();
  const bool part = word.size() >= 2 && word.size() <= 3 && std::isdigit(static_cast<unsigned char>(word[0])) && std::isdigit(static_cast<unsigned char>(word[1]));
  std::string rest;
  for (std::size_t i = 1; i < words.size(); ++i) rest += " " + words[i];
  if (part) return "./shardbook check " + word + rest;
  for (const Habit& one : habits) {
    if (word == one.word) return std::string("./shardbook ") + one.command + rest;
  }
  return "";
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

}  // namespace

int main_with(const std::vector<std::string>& arguments, Console& console) {
  if (arguments.empty()) return first_page(console);
  std::vector<std::string> words = arguments;
  if (asks_for_help(words[0])) {
    if (words.size() == 1) {
      console.out << overview(commands());
      return exit_ok;
    }
    words = {words[1], "--help"};   // `help train` is `train --help`
  }
  if (words[0] == "--version") {
    console.out << "shardbook " << built_with::version << "\n";
    return exit_ok;
  }
  const auto command = std::find_if(commands().begin(), commands().end(), [&](const Command& one) { return one.name == words[0]; });
  if (command == commands().end()) {
    if (const std::string meant = meant_by(words); !meant.empty()) return refuse(console, base::text("there is no command '", words[0], "'; you may want ", meant));
    std::vector<std::string> names;
    // Nobody who slips is led to where everything is built and tested, for minutes.
    for (const Command& one : commands()) {
      if (one.act != of_launcher<test>) names.push_back(one.name);
    }
    const std::string nearest = base::nearest(words[0], names);
    const std::string guess = base::is_near(words[0], nearest) ? base::text("; the nearest is `", nearest, "`, and") : std::string(";");
    return refuse(console, base::text("there is no command '", words[0], "'", guess, " `shardbook --help` lists all"));
  }
  words.erase(words.begin());
  if (std::any_of(words.begin(), words.end(), [](const std::string& word) { return word == "--help" || word == "-h"; })) {
    console.out << help_of(*command);
    return exit_ok;
  }
  if (command->passes_on) return command->act(Line{words, {}}, console);
  base::Result<Line> line = read_line(*command, words);
  if (!line) return refuse(console, line.error());
  for (const std::string& place : line.value().places) {
    if (place.empty()) return refuse(console, base::text("`", command->name, "` was given an empty name"));
  }
  return command->act(line.value(), console);
}

int main_with(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  Console console{out, err};
  return main_with(arguments, console);
}

}  // namespace shardbook::cli
