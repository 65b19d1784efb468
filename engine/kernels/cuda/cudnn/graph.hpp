// kernels/cuda/cudnn/graph: how is a computation told to cuDNN?
//
// As a graph: tensors (shape, strides, type) and operations between them. cuDNN looks for an engine that does all of it in
// one kernel or a few; what lies between two operations, a *virtual* tensor, then never reaches memory. Everything is a
// descriptor with attributes, filled one by one and then finalized (cudnn_graph_v9.h). A Graph names its tensors as a
// formula does; a Plan is the engine that was found, with all that it needs to run again and again.
//
// Follows the "backend API" of cuDNN's developer guide. Which operations make up attention is in attention.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/kernels/cuda/cudnn/library.hpp"

namespace shardbook::kernels::cuda::cudnn {

// Owns one of cuDNN's descriptors.
class Descriptor {
 public:
  Descriptor(cudnnBackendDescriptorType_t type, const char* name);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)), name_(other.name_) {}
  Descriptor& operator=(Descriptor&&) = delete;

  // Sets an attribute to some values; T has one of cuDNN's types, or is one of C++'s.
  template <class T>
  void set(cudnnBackendAttributeName_t attribute, const std::vector<T>& values);
  template <class T>
  void set(cudnnBackendAttributeName_t attribute, T value) { set_raw(attribute, type_of(value), 1, &value); }
  void set(cudnnBackendAttributeName_t attribute, const Descriptor& value) {
    set_raw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  void set(cudnnBackendAttributeName_t attribute, const std::vector<Descriptor>& values);
  void set_raw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, std::int64_t count, const void* values);
  void finalize();
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  static cudnnBackendAttributeType_t type_of(std::int64_t) { return CUDNN_TYPE_INT64; }
  static cudnnBackendAttributeType_t type_of(bool) { return CUDNN_TYPE_BOOLEAN; }
  static cudnnBackendAttributeType_t type_of(char) { return CUDNN_TYPE_CHAR; }
  static cudnnBackendAttributeType_t type_of(void*) { return CUDNN_TYPE_VOID_PTR; }
  static cudnnBackendAttributeType_t type_of(cudnnHandle_t) { return CUDNN_TYPE_HANDLE; }
  static cudnnBackendAttributeType_t type_of(cudnnDataType_t) { return CUDNN_TYPE_DATA_TYPE; }
  static cudnnBackendAttributeType_t type_of(cudnnPointwiseMode_t) { return CUDNN_TYPE_POINTWISE_MODE; }
  static cudnnBackendAttributeType_t type_of(cudnnReduceTensorOp_t) { return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE; }
  static cudnnBackendAttributeType_t type_of(cudnnBackendHeurMode_t) { return CUDNN_TYPE_HEUR_MODE; }

  cudnnBackendDescriptor_t descriptor_ = nullptr;
  const char* name_;
};

template <class T>
void Descriptor::set(cudnnBackendAttributeName_t attribute, const std::vector<T>& values) {
  set_raw(attribute, type_of(T{}), static_cast<std::int64_t>(values.size()), values.data());
}

// Attention's tensors have four dims: sequence, head, row, column.
using Extents = std::array<std::int64_t, 4>;

// Strides, in elements, of a tensor that lies dense.
Extents dense(const Extents& shape);

// For whom a plan is made: the GPU of a handle; or one that is only described, by cuDNN's own JSON of its properties, so
// that a plan can be looked for where there is no GPU.
struct Target {
  cudnnHandle_t handle = nullptr;
  std::string properties;
};

// An engine for a graph.
class Plan {
 public:
  // Where a tensor that is no virtual one lies: on the device, or, of a number, on the host.
  struct Place {
    std::int64_t id;
    void* at;
  };
  Plan(Descriptor plan, std::int64_t workspace_bytes, const char* name)
      : plan_(std::move(plan)), workspace_bytes_(workspace_bytes), name_(name) {}
  // Device memory that it writes while it runs, 256-byte aligned.
  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Enqueues it on the handle's stream.
  void run(cudnnHandle_t handle, const std::vector<Place>& places, void* workspace) const;

 private:
  Descriptor plan_;
  std::int64_t workspace_bytes_;
  const char* name_;
};

class Graph {
 public:
  using Tensor = int;
  static constexpr Tensor fresh = -1;   // a result: make a virtual tensor for it

  // `name` stands in messages.
  explicit Graph(const char* name) : name_(name) {}

  // In device memory. Strides in elements; `id`s are the caller's, small and all different.
  Tensor in_memory(std::int64_t id, const Extents& shape, const Extents& strides, cudnnDataType_t type = CUDNN_DATA_BFLOAT16);
  // A float that the host gives at each run.
  Tensor number(std::int64_t id);

  // Each yields a virtual f32 tensor, or writes `into`; math is in f32.
  // Of x's shape; b may be a number, or have one column for all of x's.
  Tensor pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b = fresh, Tensor into = fresh);
  // Which row (axis 2) or column (axis 3) each element of x is in, as i32.
  Tensor index(Tensor x, std::int64_t axis);
  // Whether a ≥ b, as booleans.
  Tensor at_least(Tensor a, Tensor b);
  // x where `chosen`, else b.
  Tensor select(Tensor x, Tensor b, Tensor chosen);
  // x's columns become one; or, with `into`, as that has it.
  Tensor reduce(cudnnReduceTensorOp_t op, Tensor x, Tensor into = fresh);
  // a · b for each head of a; b may have fewer, that neighbours share.
  Tensor matmul(Tensor a, Tensor b, Tensor into = fresh);
  // x with rows and columns exchanged.
  Tensor transpose(Tensor x);
  // A virtual tensor holds its numbers as `type`.
  Tensor as(cudnnDataType_t type, Tensor x);

  // The first of the engines that cuDNN names for this target that can be built. Throws Failure where there is none.
  Plan plan(const Target& target) const;

 private:
  struct Node {
    std::int64_t id;
    Extents shape, strides;
    cudnnDataType_t type;
    bool is_virtual = false, by_value = false;
  };
  enum class Kind { pointwise, reduction, matmul, reshape };
  struct Operation {
    Kind kind;
    int mode;                // cudnnPointwiseMode_t or cudnnReduceTensorOp_t
    Tensor x, b, chosen, y;  // `fresh` where there is none
    std::int64_t axis = -1;
    cudnnDataType_t math = CUDNN_DATA_FLOAT;
  };
  const Node& node(Tensor tensor) const { return tensors_[static_cast<std::size_t>(tensor)]; }
  Tensor add(Node node);
  Tensor between(const Extents& shape, cudnnDataType_t type);
  Descriptor describe(const Node& node) const;
  Descriptor describe(const Operation& operation, const std::vector<Descriptor>& tensors) const;

  const char* name_;
  std::vector<Node> tensors_;
  std::vector<Operation> operations_;
};

}  // namespace shardbook::kernels::cuda::cudnn
