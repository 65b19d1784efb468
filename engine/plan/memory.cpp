// The formulas, one paragraph a kind of memory. Letters are those of notes/06_memory.md.
#include "engine/plan/memory.hpp"

#include <algorithm>

#include "engine/base/check.hpp"

namespace shardbook::plan {

using base::text;
using program::MemoryKind;
using Q = Quantity;

const char* name_of(Held held) {
  static constexpr const char* names[] = {
      "shards of parameters", "blocks, whole", "embedding and head, whole", "parts of blocks, kept", "sums of gradients", "gradients of blocks", "gradients of the ends",
      "a gradient, rounded", "a shard to be added", "a gradient, apart", "masters", "two moments", "slots for masters and moments", "shards on their way to a gather", "sums on their way to the host",
      "shards of parameters in host memory", "sums of gradients in host memory", "sums to be added there", "masters in host memory", "two moments in host memory", "the clip factor in host memory", "inputs of layers", "kept by blocks, then sums of their gradients", "kept by attention", "kept by the rest of blocks", "kept by the head",
      "the loss", "attention, between kernels", "a block, between kernels", "gradients between layers", "partial sums", "norm, clip and loss", "tokens"};
  return names[static_cast<int>(held)];
}

namespace {

class Writer {
 public:
  explicit Writer(const Shapes& shapes) : s_(shapes) {}

  Holding write() {
    letters();
    parameters();
    gradients();
    activations();
    rest();
    host();
    return std::move(holding_);
  }

 private:
  // A letter, and what it stands for.
  Q letter(const std::string& letter, std::int64_t value, const std::string& meaning) {
    holding_.letters.push_back({letter, value, meaning});
    return {letter, value};
  }
  Q letter(const std::string& name, const Q& formula) { return letter(name, formula.value(), formula.text()); }
  void holds(Held held, MemoryKind kind, const Q& bytes) {
    if (bytes.value() != 0) holding_.lines.push_back({held, kind, bytes.text(), bytes.value()});
  }
  static const Q& larger(const Q& a, const Q& b) { return a.value() >= b.value() ? a : b; }
  static Q bytes(base::Bytes each) { return {std::to_string(each) + " B", each}; }

  void letters() {
    const std::int64_t t = s_.tp;
    const bool cut = t > 1;
    const std::string of_rank = cut ? " of this rank" : "";
    L_ = letter("L", s_.layers, "blocks");
    D_ = letter("D", s_.width, "width");
    n_ = letter("n", s_.fsdp, "ranks that shard");
    if (cut) letter("t", t, "ranks that cut each matmul");
    N_ = letter("N", s_.sequences * s_.positions, "tokens of a micro-batch");
    R_ = s_.rows_divided_by == 1 ? N_ : letter("R", N_.value() / s_.rows_divided_by, "rows of them that are here between the linears");
    S_ = letter("S", s_.positions, "positions of a sequence");
    H_ = letter("H", s_.heads / t, "heads" + of_rank);
    I_ = letter("I", s_.heads * s_.head_dim / t, "what they make: H K, with K = " + std::to_string(s_.head_dim));
    E_ = letter("E", (s_.heads + 2 * s_.key_value_heads) * s_.head_dim / t, "rows of q, k and v" + of_rank);
    F_ = letter("F", s_.ffn_width / t, "inner width of the MLP" + of_rank);
    U_ = s_.llama ? letter("U", 2 * F_) : F_;
    V_ = letter("V", s_.vocabulary / t, "rows of the vocabulary" + of_rank);
    a_ = bytes(s_.activation);
    statistics_ = s_.llama ? 1 : 2;   // fp32 numbers that a norm keeps a token
  }

  // A unit of so many numbers, as it lies whole: flat, or where each parameter is cut by itself, these (so many times over)
  // one after the other
  Q padded(const std::string& name, const Q& numbers, std::int64_t times, const std::vector<Q>& parameters) {
    const std::int64_t multiple = 64 * s_.fsdp;
    auto up = [multiple](std::int64_t count) { return (count + multiple - 1) / multiple * multiple; };
    const bool each = s_.each_parameter && s_.fsdp > 1;
    std::int64_t whole = up(numbers.value()), largest = 0;
    if (each) whole = 0;
    for (const Q& parameter : parameters) {
      if (each) whole += times * up(parameter.value());
      largest = std::max(largest, up(parameter.value()));
    }
    const std::string rounded = whole == numbers.value() ? "" : std::string(each ? ", each parameter" : ",") + " up to a multiple of 64 n";
    const Q made = letter(name, whole, numbers.text() + rounded);
    largest_ = larger(largest_, each ? Q{largest} : made);
    largest_unit_ = larger(largest_unit_, made);
    return made;
  }

  //@ plan.parameters: Parameters by unit: four matmuls and their biases, norms; tables at both ends.
  void parameters() {
    const Q D = D_, E = E_, I = I_, F = F_, U = U_, V = V_;
    const Q weights = D * E + I * D + D * U + F * D;
    const Q norm = s_.llama ? D : 2 * D;
    const Q block = s_.llama ? weights + 2 * D : weights + E + U + 6 * D;   // two norms' 4 D, and two biases of D
    const Q embedding = s_.llama ? V * D : V * D + S_ * D;
    // Blocks in units: one each, or g, and one of those that are left
    const std::int64_t large_enough = (s_.numbers_a_unit + block.value() - 1) / block.value();
    const std::int64_t each = std::min(s_.layers, std::max({std::int64_t{1}, s_.blocks_a_unit, large_enough})), left = s_.layers % each;
    const bool joined = each > 1;
    const Q g = joined ? letter("g", each, "blocks of a unit") : Q{1};
    const Q equal = !joined ? L_ : left == 0 ? letter("u", L_ / g) : letter("f", s_.layers / each, "units of g blocks; one has the " + std::to_string(left) + " that are left");
    units_ = left == 0 ? equal : letter("u", equal + 1);
    const std::vector<Q> of_norm(s_.llama ? 1 : 2, D), of_embedding = s_.llama ? std::vector<Q>{V * D} : std::vector<Q>{V * D, S_ * D};
    std::vector<Q> of_block{D * E, I * D, D * U, F * D}, of_ends = of_embedding, of_head = of_norm;
    for (int norms = 0; norms < 2; ++norms) of_block.insert(of_block.end(), of_norm.begin(), of_norm.end());
    if (!s_.llama) of_block.insert(of_block.end(), {E, D, U, D});
    P_unit_ = joined ? padded("P_unit", g * block, g.value(), of_block) : padded("P_block", block, 1, of_block);
    if (s_.tied) of_ends.insert(of_ends.end(), of_norm.begin(), of_norm.end());
    else of_head.push_back(V * D);
    P_ends_ = s_.tied ? padded("P_root", embedding + norm, 1, of_ends) : padded("P_embedding", embedding, 1, of_ends);
    P_blocks_ = equal * P_unit_;
    if (left > 0) {
      P_last_ = padded("P_last", Q{left} * block, left, of_block);
      P_blocks_ = P_blocks_ + P_last_;
    }
    blocks_a_unit_ = g;
    full_units_ = equal;
    blocks_left_ = left;
    P_end_ = P_ends_;
    Q all = P_blocks_ + P_ends_;
    if (!s_.tied) {
      const Q P_head = padded("P_head", V * D + norm, 1, of_head);
      all = all + P_head;
      P_end_ = most(P_ends_, P_head);
      P_ends_ = P_ends_ + P_head;
    }
    tensors_ = s_.layers * static_cast<std::int64_t>(of_block.size()) + static_cast<std::int64_t>(of_ends.size() + (s_.tied ? 0 : of_head.size()));
    P_ = letter("P", all);
    if (s_.each_parameter && s_.fsdp > 1) largest_ = letter("P_largest", largest_.value(), "the largest of the parameters, padded");

    if (s_.shards_on_host) {
      Y_ = letter("Y", largest_unit_ / n_);
      holds(Held::shards_to_device, MemoryKind::parameter, 2 * Y_ * bytes(s_.parameter));   // one comes while another is gathered
    } else if (s_.keeps_copy || alone()) {
      holds(Held::parameter_shards, MemoryKind::parameter, P_ / n_ * bytes(s_.parameter));
    }
    if (alone()) return;
    const Q whole = s_.reshard ? least(letter("k", s_.ahead, "units gathered ahead of their use") + 1, units_) * P_unit_ : P_blocks_;
    holds(Held::whole_blocks, MemoryKind::gathered, whole * bytes(s_.parameter));
    holds(Held::whole_ends, MemoryKind::gathered, P_ends_ * bytes(s_.parameter));
    if (s_.near > 0 && s_.reshard) {
      const Q m = letter("m", s_.near, "ranks that keep a block between them after its forward");
      holds(Held::kept_parts, MemoryKind::gathered, P_blocks_ / m * bytes(s_.parameter));
    }
  }
  //@end

  //@ plan.gradients: Gradients, summed and whole, in fp32; and what the optimizer keeps.
  void gradients() {
    const Q four = bytes(4);
    const bool several = s_.micro_batches > 1;
    if (s_.shards_on_host) holds(Held::sums_to_host, MemoryKind::gradient, 2 * Y_ * four);
    else holds(Held::gradient_sums, MemoryKind::gradient, (lends() ? P_ends_ : P_) / n_ * four);
    // Alone, or with replicas only, a gradient is made where the optimizer reads it
    const bool in_place = alone() && (s_.dp > 1 || !several);
    if (!in_place) {
      // One is made while another is reduced; or all wait for the last micro-batch
      const Q whole = several && !s_.reduce_each ? units_ : least(2, units_);
      holds(Held::block_gradients, MemoryKind::gradient, whole * P_unit_ * four);
      holds(Held::end_gradients, MemoryKind::gradient, (lends() ? P_end_ : P_ends_) * four);   // where memory is lent, one after the other in one place
      // Rounded to cross in fewer bytes; the sum comes back as it crossed, beside the shard that it is written or added to
      const bool rounds = s_.fsdp > 1 && s_.reduce != 4;
      if (rounds) holds(Held::rounded_gradient, MemoryKind::gradient, largest_ * bytes(s_.reduce));
      if (rounds || (several && s_.reduce_each && !s_.shards_on_host)) holds(Held::staged_gradient, MemoryKind::gradient, largest_ / n_ * (rounds ? bytes(s_.reduce) : four));
    }
    if (!s_.fused) {
      const std::int64_t widest = std::max({E_.value(), I_.value(), U_.value(), F_.value(), V_.value()});
      holds(Held::gradient_apart, MemoryKind::gradient, D_ * letter("O", widest, "rows of the weight that has most") * four);
    }
    if (s_.shards_on_host) return;   // the update is the CPU's
    if (s_.states_on_host) return slots();
    holds(Held::masters, MemoryKind::optimizer, P_ / n_ * four);
    holds(Held::moments, MemoryKind::optimizer, P_ / n_ * bytes(8));
  }

  // Where masters and moments are while they are moved: a shard comes in pieces, and some of them are here at once.
  void slots() {
    const std::int64_t most = s_.piece;
    const Q Z = letter("Z", std::min(largest_.value() / n_.value(), most), text("numbers that cross at once: the largest shard, at most ", most));
    // No more slots than pieces. Each shard is one at least; there are few where all blocks are one unit and both ends another
    std::int64_t slots = s_.slots;
    if (s_.tied && units_.value() == 1 && !(s_.each_parameter && s_.fsdp > 1)) {
      const auto pieces = [&](const Q& unit) { return (unit.value() / n_.value() + most - 1) / most; };
      slots = std::min(slots, pieces(P_unit_) + pieces(P_ends_));
    }
    holds(Held::state_slots, MemoryKind::optimizer, letter("z", slots, "slots: one piece comes, one is moved, one goes") * Z * bytes(12));
  }
  //@end

  //@ plan.activations: What backward needs of forward, a block, and what lies between two kernels.
  void activations() {
    const Q L = L_, D = D_, N = N_, R = R_, H = H_, I = I_, E = E_, a = a_;
    const Q inner = s_.llama ? U_ + F_ : 2 * F_;   // what the activation reads and makes
    const Q inner_kept = s_.remake ? U_ : inner;   // ... of which what it makes may be made again, and so what norms make
    const Q four = bytes(4);
    const Q kept = s_.recompute ? Q{1} : L;   // blocks that keep more than their input
    const Q square = N * H * S_ * a;          // the probabilities
    const MemoryKind kind = MemoryKind::activation;

    // Kept from forward until backward
    const Q of_attention = s_.flash || s_.recompute_attention ? N * E * a : N * E * a + square;
    const Q of_rest = (s_.remake ? R * D : 3 * R * D) * a + N * (I + inner_kept) * a;
    const Q logsumexp = s_.flash ? N * H * four : Q{0}, statistics = 2 * (R * bytes(4 * statistics_));
    holds(Held::layer_inputs, kind, lends() ? R * D * a : (L + 1) * R * D * a);
    if (lends()) lent(R * D * a + of_attention + of_rest);
    holds(Held::attention_kept, kind, kept * (lends() ? logsumexp : of_attention + logsumexp));
    holds(Held::block_kept, kind, kept * (lends() ? statistics : of_rest + statistics));
    const Q scored = s_.loss_chunks == 1 ? N : letter("C", (N.value() + s_.loss_chunks - 1) / s_.loss_chunks, text("tokens whose logits are there at once: N / ", s_.loss_chunks));
    holds(Held::head_kept, kind, R * D * a + R * bytes(4 * statistics_) + scored * V_ * a);
    holds(Held::loss, kind, s_.loss_in_one ? scored * four : 4 * (scored * four));
    // Between kernels, shared by all blocks
    if (s_.cudnn) holds(Held::attention_workspace, kind, N * H * four + cudnn_workspace());
    else holds(Held::attention_workspace, kind, s_.flash ? N * H * four : N * (I + E) * a + (s_.recompute_attention ? 2 : 1) * square);
    const Q all_rows = s_.rows_divided_by == 1 ? Q{0} : (s_.rows_in_turns ? 3 : 2) * (N * D) * a;   // where rows come together before a linear, and where summands do
    // GELU's gradient may lie where that of its output lay; what is made again takes the place that is saved
    const Q gradients = s_.gelu_in_matmuls && !s_.remake ? F_ : inner;
    holds(Held::block_workspace, kind, Q{s_.remake ? 4 : 3} * (R * D) * a + N * (E + I + gradients) * a + all_rows);
    holds(Held::between_layers, kind, (s_.recompute ? 3 : 2) * (R * D * a));
  }
  //@end

  // cuDNN's backward has dscore whole, of as many sequences at once as 1 GiB holds (kernels/cudnn_attention.hpp); and, where
  // heads share keys, dk and dv of each head.
  Q cudnn_workspace() {
    const auto up = [this](std::int64_t multiple) { return (s_.positions + multiple - 1) / multiple * multiple; };
    const std::int64_t square = 2 * H_.value() * up(64) * up(128);
    std::int64_t at_once = s_.sequences;
    while (at_once > 1 && (s_.sequences % at_once != 0 || at_once * square > std::int64_t{1} << 30)) --at_once;
    const Q c = letter("c", at_once, "sequences that attention's backward takes at once: their squares are at most 1 GiB");
    const Q rows = up(64) == s_.positions ? S_ : letter("S_q", up(64), "S up to a multiple of 64");
    const Q columns = up(128) == s_.positions ? S_ : letter("S_k", up(128), "S up to a multiple of 128");
    const Q of_heads = s_.heads == s_.key_value_heads ? Q{0} : 2 * (c * S_ * I_ * bytes(2));
    return c * H_ * rows * columns * bytes(2) + of_heads + bytes(256);
  }

  // What blocks keep of `each`, in the memory that is their gradient's after: of each unit the larger of the two.
  void lent(const Q& each) {
    const Q K = letter("K", each);
    const auto larger_of = [&](const Q& blocks, const Q& numbers) { return most(blocks * K, numbers / n_ * bytes(4)); };
    Q all = full_units_ * larger_of(blocks_a_unit_, P_unit_);
    if (blocks_left_ > 0) all = all + larger_of(Q{blocks_left_}, P_last_);
    holds(Held::lent, MemoryKind::activation, all);
  }

  void rest() {
    const Q r = letter("r", std::min<std::int64_t>(128, (N_.value() + 31) / 32), "parts of a sum over tokens: N / 32, at most 128");
    const Q W = letter("W", std::max({2 * s_.width, 3 * s_.heads * s_.head_dim, 2 * s_.ffn_width}), "widest of such sums: 2 D, 3 H K or 2 F, uncut");
    holds(Held::partial_sums, MemoryKind::workspace, r * W * bytes(4));
    const Q early = s_.shards_on_host ? letter("T", tensors_, "parameters, the squares of each of which may be taken early") : Q{0};
    holds(Held::optimizer_scratch, MemoryKind::workspace, (Q{1024} + 4 + early) * bytes(4));
    const Q micro_batches = s_.micro_batches == 1 ? Q{1} : letter("M", s_.micro_batches, "micro-batches");
    holds(Held::tokens, MemoryKind::input, micro_batches * (3 * N_ + least(N_, V_) + V_ + 2) * bytes(4));
  }

  void host() {
    if (!s_.states_on_host) return;
    const auto lies = [this](Held held, const Q& of) { holding_.lines.push_back({held, MemoryKind::optimizer, of.text(), of.value(), true}); };
    if (s_.shards_on_host) {
      lies(Held::host_shards, P_ / n_ * bytes(s_.parameter));
      lies(Held::host_sums, P_ / n_ * bytes(4));
      if (s_.micro_batches > 1 && s_.reduce_each) lies(Held::host_landings, 2 * Y_ * bytes(4));
      lies(Held::host_factor, bytes(4));
    }
    lies(Held::host_masters, P_ / n_ * bytes(4));
    lies(Held::host_moments, P_ / n_ * bytes(8));
  }

  const Shapes& s_;
  Holding holding_;
  Q L_{0}, D_{0}, n_{0}, N_{0}, R_{0}, S_{0}, H_{0}, I_{0}, E_{0}, F_{0}, U_{0}, V_{0}, a_{0};
  bool lends() const { return s_.lends && !alone(); }
  bool alone() const { return s_.fsdp == 1 && !s_.shards_on_host; }   // has each unit whole anyway

  Q P_end_{0}, blocks_a_unit_{1}, full_units_{0}, P_last_{0};
  std::int64_t blocks_left_ = 0;
  Q units_{0}, P_unit_{0}, P_blocks_{0}, P_ends_{0}, P_{0}, largest_{0}, largest_unit_{0}, Y_{0};
  std::int64_t statistics_ = 2, tensors_ = 0;
};

}  // namespace

base::Bytes Holding::bytes(MemoryKind kind) const {
  base::Bytes sum = 0;
  for (const HeldLine& line : lines) sum += line.kind == kind && !line.on_host ? line.bytes : 0;
  return sum;
}

base::Bytes Holding::all() const {
  base::Bytes sum = 0;
  for (const HeldLine& line : lines) sum += line.on_host ? 0 : line.bytes;
  return sum;
}

base::Bytes Holding::on_host() const {
  base::Bytes sum = 0;
  for (const HeldLine& line : lines) sum += line.on_host ? line.bytes : 0;
  return sum;
}

Holding holding_of(const Shapes& shapes) { return Writer(shapes).write(); }

}  // namespace shardbook::plan
