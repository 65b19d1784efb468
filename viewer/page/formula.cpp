// page/formula: TeX to Unicode; see formula.hpp.
#include "viewer/page/formula.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <unordered_map>

#include "engine/base/check.hpp"

namespace shardbook::page {

namespace {

constexpr int deepest = 16;

// What a command stands for. Letters of variables are italic, everything else is upright.
const std::unordered_map<std::string_view, std::string_view>& symbols() {
  static const std::unordered_map<std::string_view, std::string_view> table{
      {"alpha", "α"}, {"beta", "β"}, {"gamma", "γ"}, {"delta", "δ"}, {"epsilon", "ϵ"}, {"varepsilon", "ε"}, {"zeta", "ζ"}, {"eta", "η"},
      {"theta", "θ"}, {"vartheta", "ϑ"}, {"iota", "ι"}, {"kappa", "κ"}, {"lambda", "λ"}, {"mu", "μ"}, {"nu", "ν"}, {"xi", "ξ"}, {"pi", "π"},
      {"rho", "ρ"}, {"sigma", "σ"}, {"tau", "τ"}, {"upsilon", "υ"}, {"phi", "φ"}, {"varphi", "φ"}, {"chi", "χ"}, {"psi", "ψ"}, {"omega", "ω"},
      {"Gamma", "Γ"}, {"Delta", "Δ"}, {"Theta", "Θ"}, {"Lambda", "Λ"}, {"Xi", "Ξ"}, {"Pi", "Π"}, {"Sigma", "Σ"}, {"Phi", "Φ"}, {"Psi", "Ψ"},
      {"Omega", "Ω"}, {"sum", "∑"}, {"prod", "∏"}, {"int", "∫"}, {"cap", " ∩ "}, {"cup", " ∪ "}, {"bigcap", "⋂"}, {"bigcup", "⋃"},
      {"setminus", " ∖ "}, {"subset", " ⊂ "}, {"subseteq", " ⊆ "}, {"supset", " ⊃ "}, {"in", " ∈ "}, {"notin", " ∉ "}, {"emptyset", "∅"},
      {"varnothing", "∅"}, {"le", " ≤ "}, {"leq", " ≤ "}, {"ge", " ≥ "}, {"geq", " ≥ "}, {"ne", " ≠ "}, {"neq", " ≠ "}, {"approx", " ≈ "},
      {"equiv", " ≡ "}, {"sim", " ∼ "}, {"simeq", " ≃ "}, {"propto", " ∝ "}, {"ll", " ≪ "}, {"gg", " ≫ "}, {"times", " × "}, {"cdot", " · "},
      {"div", " ÷ "}, {"pm", " ± "}, {"mp", " ∓ "}, {"oplus", " ⊕ "}, {"otimes", " ⊗ "}, {"odot", " ⊙ "}, {"circ", " ∘ "}, {"ast", " ∗ "},
      {"star", "⋆"}, {"bullet", "•"}, {"to", " → "}, {"rightarrow", " → "}, {"leftarrow", " ← "}, {"leftrightarrow", " ↔ "}, {"mapsto", " ↦ "},
      {"Rightarrow", " ⇒ "}, {"Leftarrow", " ⇐ "}, {"Leftrightarrow", " ⇔ "}, {"implies", " ⇒ "}, {"iff", " ⇔ "}, {"uparrow", "↑"},
      {"downarrow", "↓"}, {"forall", "∀"}, {"exists", "∃"}, {"neg", "¬"}, {"land", " ∧ "}, {"wedge", " ∧ "}, {"lor", " ∨ "}, {"vee", " ∨ "},
      {"infty", "∞"}, {"partial", "∂"}, {"nabla", "∇"}, {"ldots", "…"}, {"dots", "…"}, {"cdots", "⋯"}, {"vdots", "⋮"}, {"ell", "ℓ"},
      {"hbar", "ℏ"}, {"Re", "ℜ"}, {"Im", "ℑ"}, {"prime", "′"}, {"degree", "°"}, {"top", "⊤"}, {"bot", "⊥"}, {"perp", " ⊥ "}, {"mid", " ∣ "},
      {"parallel", " ∥ "}, {"vert", "|"}, {"lvert", "|"}, {"rvert", "|"}, {"Vert", "‖"}, {"lVert", "‖"}, {"rVert", "‖"}, {"lceil", "⌈"},
      {"rceil", "⌉"}, {"lfloor", "⌊"}, {"rfloor", "⌋"}, {"langle", "⟨"}, {"rangle", "⟩"}, {"lbrace", "{"}, {"rbrace", "}"}, {"quad", "  "},
      {"qquad", "    "}, {"colon", ":"}, {"backslash", "∖"}, {"dagger", "†"}, {"checkmark", "✓"}, {"triangleq", " ≜ "}, {"coloneqq", " ≔ "},
      {"lt", " < "}, {"gt", " > "}, {"And", " & "}, {"square", "□"}, {"angle", "∠"}, {"aleph", "ℵ"}};
  return table;
}

// Commands that say how what follows looks and that we leave out.
bool is_silent(std::string_view name) {
  for (const std::string_view known : {"left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr", "bigg", "Bigg", "displaystyle", "textstyle",
                                       "scriptstyle", "limits", "nolimits", "rm", "bf", "it", "middle"}) {
    if (name == known) return true;
  }
  return false;
}
// Commands whose argument is set upright as it is.
bool is_text(std::string_view name) {
  for (const std::string_view known : {"text", "textrm", "textbf", "textit", "texttt", "mathrm", "mathbf", "mathsf", "mathtt", "operatorname", "mbox", "mathit"}) {
    if (name == known) return true;
  }
  return false;
}
std::string_view accent_of(std::string_view name) {
  if (name == "hat" || name == "widehat") return "\u0302";
  if (name == "bar" || name == "overline") return "\u0304";
  if (name == "tilde" || name == "widetilde") return "\u0303";
  if (name == "dot") return "\u0307";
  if (name == "vec") return "\u20D7";
  return {};
}

class Reader {
 public:
  explicit Reader(std::string_view tex) : tex_(tex) {}

  std::vector<FormulaRun> run() {
    while (at_ < tex_.size()) {
      atom(0, 0);
      if (at_ < tex_.size() && tex_[at_] == '}') ++at_;
    }
    tidy();
    return std::move(runs_);
  }

 private:
  char at(std::size_t i) const { return i < tex_.size() ? tex_[i] : '\0'; }
  void skip_blanks() {
    while (at_ < tex_.size() && std::isspace(static_cast<unsigned char>(tex_[at_])) != 0) ++at_;
  }
  void add(std::string_view text, int raise, bool upright) {
    if (text.empty()) return;
    if (!runs_.empty() && runs_.back().raise == raise && runs_.back().upright == upright) {
      runs_.back().text += text;
    } else {
      runs_.push_back({std::string(text), raise, upright});
    }
  }

  void atom(int raise, int depth);
  void argument(int raise, int depth);
  void command(int raise, int depth);
  void fraction(int raise, int depth);
  void raw_argument(int raise);
  std::size_t character_end(std::size_t from) const;
  void tidy();

  std::string_view tex_;
  std::size_t at_ = 0;
  std::vector<FormulaRun> runs_;
};

std::size_t Reader::character_end(std::size_t from) const {
  std::size_t end = from + 1;
  while (end < tex_.size() && (static_cast<unsigned char>(tex_[end]) & 0xC0) == 0x80) ++end;
  return end;
}

// One letter, one command with its arguments, or one {group}; stops before a '}' that it has not opened.
void Reader::atom(int raise, int depth) {
  const char c = at(at_);
  if (c == '}') return;
  if (c == '{') return argument(raise, depth);
  if (c == '\\') return command(raise, depth);
  ++at_;
  switch (c) {
    case '^':
    case '_':
      skip_blanks();
      if (at_ < tex_.size()) argument(depth < deepest ? raise + (c == '^' ? 1 : -1) : raise, depth + 1);
      return;
    case '~': return add(" ", raise, true);
    case '&': return add(" ", raise, true);
    case '\'': return add("′", raise, true);
    case '-': return add("−", raise, true);
    case '*': return add("∗", raise, true);
    case '=': case '<': case '>': case '+': {
      const std::string sign{' ', c, ' '};
      return add(raise == 0 ? std::string_view(sign) : std::string_view(sign).substr(1, 1), raise, true);
    }
    case ',': return add(raise == 0 ? ", " : ",", raise, true);
    default: break;
  }
  if (std::isspace(static_cast<unsigned char>(c)) != 0) return;
  const std::size_t begin = at_ - 1;
  at_ = character_end(begin);
  add(tex_.substr(begin, at_ - begin), raise, std::isalpha(static_cast<unsigned char>(c)) == 0);
}

// A {group}, or one atom.
void Reader::argument(int raise, int depth) {
  skip_blanks();
  if (at(at_) != '{') {
    if (at_ < tex_.size() && at(at_) != '}') {
      if (depth < deepest) {
        atom(raise, depth + 1);
      } else {
        at_ = character_end(at_);
      }
    }
    return;
  }
  ++at_;
  if (depth >= deepest) return;          // deeper ones lose their group, not their text
  while (at_ < tex_.size() && tex_[at_] != '}') atom(raise, depth + 1);
  if (at_ < tex_.size()) ++at_;
}

// The text of a {group} as it stands.
void Reader::raw_argument(int raise) {
  skip_blanks();
  if (at(at_) != '{') {
    if (at_ >= tex_.size() || at(at_) == '\\' || at(at_) == '}') return;
    const std::size_t one = at_;
    at_ = character_end(one);
    return add(tex_.substr(one, at_ - one), raise, true);
  }
  const std::size_t begin = ++at_;
  const std::size_t end = std::min(tex_.find_first_of("{}", begin), tex_.size());
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    if (tex_[i] != '\\') text += tex_[i];
  }
  add(text, raise, true);
  at_ = end;
  if (at(at_) == '}') ++at_;
}

// a/b, with brackets where a part is more than one thing.
void Reader::fraction(int raise, int depth) {
  const auto part = [&] {
    const std::size_t first = runs_.size();
    runs_.push_back({"", raise, true});
    argument(raise, depth + 1);
    std::size_t letters = 0;
    bool composed = false;
    for (std::size_t i = first; i < runs_.size(); ++i) {
      letters += runs_[i].text.size();
      composed = composed || runs_[i].text.find_first_of(" /") != std::string::npos || runs_[i].text.find("−") != std::string::npos;
    }
    if (composed && letters > 0) {
      runs_[first].text = base::text('(', runs_[first].text);
      add(")", raise, true);
    }
  };
  part();
  add("/", raise, true);
  part();
}

void Reader::command(int raise, int depth) {
  const std::size_t begin = ++at_;
  if (at_ >= tex_.size()) return;
  if (std::isalpha(static_cast<unsigned char>(tex_[at_])) == 0) {
    // One sign: a thin space, a line's end, or the sign itself.
    const char sign = tex_[at_];
    at_ = character_end(at_);
    if (sign == ',' || sign == ';' || sign == ':' || sign == ' ' || sign == '\\') return add(" ", raise, true);
    if (sign == '!') return;
    if (sign == '|') return add("‖", raise, true);
    return add(tex_.substr(begin, at_ - begin), raise, true);
  }
  while (std::isalpha(static_cast<unsigned char>(at(at_))) != 0) ++at_;
  const std::string_view name = tex_.substr(begin, at_ - begin);

  if (name == "frac" || name == "tfrac" || name == "dfrac") return depth < deepest ? fraction(raise, depth) : void();
  if (name == "sqrt") {
    add("√(", raise, true);
    argument(raise, depth + 1);
    return add(")", raise, true);
  }
  if (is_text(name)) return raw_argument(raise);
  if (name == "mathbb" || name == "mathcal" || name == "boldsymbol") return argument(raise, depth + 1);
  if (is_silent(name)) {
    // \left. stands for no bracket.
    if ((name == "left" || name == "right") && at(at_) == '.') ++at_;
    return;
  }
  if (const std::string_view accent = accent_of(name); !accent.empty()) {
    const std::size_t before = runs_.size();
    runs_.push_back({"", raise, true});
    argument(raise, depth + 1);
    if (runs_.back().text.empty() && runs_.size() == before + 1) return;
    runs_.back().text += accent;
    return;
  }
  const auto found = symbols().find(name);
  if (found == symbols().end()) return add(name, raise, true);       // log, max, exp; or a command that we do not know
  std::string_view shown = found->second;
  if (raise != 0 && shown.size() > 2 && shown.front() == ' ' && shown != "  ") shown = shown.substr(1, shown.size() - 2);
  add(shown, raise, true);
}

// Runs without text go; two blanks become one; none at the ends.
void Reader::tidy() {
  std::vector<FormulaRun> kept;
  bool after_blank = true;
  for (FormulaRun& run : runs_) {
    std::string text;
    for (const char c : run.text) {
      if (c == ' ' && after_blank) continue;
      after_blank = c == ' ';
      text += c;
    }
    if (text.empty()) continue;
    run.text = std::move(text);
    if (!kept.empty() && kept.back().raise == run.raise && kept.back().upright == run.upright) {
      kept.back().text += run.text;
    } else {
      kept.push_back(std::move(run));
    }
  }
  while (!kept.empty() && kept.back().text.back() == ' ') {
    kept.back().text.pop_back();
    if (kept.back().text.empty()) kept.pop_back();
  }
  runs_ = std::move(kept);
}

}  // namespace

std::vector<FormulaRun> formula_runs(std::string_view tex) { return Reader(tex).run(); }

std::string formula_text(std::string_view tex) {
  std::string out;
  int raise = 0;
  for (const FormulaRun& run : formula_runs(tex)) {
    const bool several = run.text.size() > 1 && static_cast<unsigned char>(run.text[0]) < 0x80;
    if (run.raise > raise) out += '^';
    if (run.raise < raise && run.raise < 0) out += '_';
    out += run.raise != 0 && several ? base::text("(", run.text, ")") : run.text;
    raise = run.raise;
  }
  return out;
}

}  // namespace shardbook::page
