#include "engine/kernels/cuda/cudnn/graph.hpp"

#include <utility>

namespace shardbook::kernels::cuda::cudnn {

namespace {

// Of every tensor in memory, in bytes.
constexpr std::int64_t alignment = 16;
// Ids of virtual tensors begin here.
constexpr std::int64_t first_virtual = 1000;

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type, const char* name) : name_(name) {
  check(library().cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor", name_);
}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) library().cudnnBackendDestroyDescriptor(descriptor_);
}

void Descriptor::set_raw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  check(library().cudnnBackendSetAttribute(descriptor_, attribute, type, count, values), "cudnnBackendSetAttribute", name_);
}

void Descriptor::set(cudnnBackendAttributeName_t attribute, const std::vector<Descriptor>& values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& value : values) raw.push_back(value.descriptor_);
  set_raw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()), raw.data());
}

void Descriptor::finalize() { check(library().cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize", name_); }

Extents dense(const Extents& shape) { return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}; }

void Plan::run(cudnnHandle_t handle, const std::vector<Place>& places, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const Place& place : places) {
    ids.push_back(place.id);
    pointers.push_back(place.at);
  }
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "a variant pack");
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  check(library().cudnnBackendExecute(handle, plan_.get(), pack.get()), "cudnnBackendExecute", name_);
}

Graph::Tensor Graph::add(Node node) {
  tensors_.push_back(node);
  return static_cast<Tensor>(tensors_.size() - 1);
}

Graph::Tensor Graph::in_memory(std::int64_t id, const Extents& shape, const Extents& strides, cudnnDataType_t type) {
  return add({id, shape, strides, type});
}

Graph::Tensor Graph::number(std::int64_t id) { return add({id, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, false, true}); }

Graph::Tensor Graph::between(const Extents& shape, cudnnDataType_t type) {
  return add({first_virtual + static_cast<std::int64_t>(tensors_.size()), shape, dense(shape), type, true});
}

Graph::Tensor Graph::pointwise(cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor into) {
  const Tensor y = into == fresh ? between(node(x).shape, CUDNN_DATA_FLOAT) : into;
  operations_.push_back({Kind::pointwise, mode, x, b, fresh, y});
  return y;
}

Graph::Tensor Graph::index(Tensor x, std::int64_t axis) {
  const Tensor y = between(node(x).shape, CUDNN_DATA_INT32);
  operations_.push_back({Kind::pointwise, CUDNN_POINTWISE_GEN_INDEX, x, fresh, fresh, y, axis});
  return y;
}

Graph::Tensor Graph::at_least(Tensor a, Tensor b) {
  const Tensor y = between(node(a).shape, CUDNN_DATA_BOOLEAN);
  operations_.push_back({Kind::pointwise, CUDNN_POINTWISE_CMP_GE, a, b, fresh, y, -1, CUDNN_DATA_BOOLEAN});
  return y;
}

Graph::Tensor Graph::select(Tensor x, Tensor b, Tensor chosen) {
  const Tensor y = between(node(x).shape, CUDNN_DATA_FLOAT);
  operations_.push_back({Kind::pointwise, CUDNN_POINTWISE_BINARY_SELECT, x, b, chosen, y});
  return y;
}

Graph::Tensor Graph::reduce(cudnnReduceTensorOp_t op, Tensor x, Tensor into) {
  const Extents& from = node(x).shape;
  const Tensor y = into == fresh ? between({from[0], from[1], from[2], 1}, CUDNN_DATA_FLOAT) : into;
  operations_.push_back({Kind::reduction, op, x, fresh, fresh, y});
  return y;
}

Graph::Tensor Graph::matmul(Tensor a, Tensor b, Tensor into) {
  const Extents& left = node(a).shape;
  const Tensor y = into == fresh ? between({left[0], left[1], left[2], node(b).shape[3]}, CUDNN_DATA_FLOAT) : into;
  operations_.push_back({Kind::matmul, 0, a, b, fresh, y});
  return y;
}

Graph::Tensor Graph::transpose(Tensor x) {
  Node turned = node(x);
  std::swap(turned.shape[2], turned.shape[3]);
  std::swap(turned.strides[2], turned.strides[3]);
  turned.id = first_virtual + static_cast<std::int64_t>(tensors_.size());
  turned.is_virtual = true;
  const Tensor y = add(turned);
  operations_.push_back({Kind::reshape, 0, x, fresh, fresh, y});
  return y;
}

Graph::Tensor Graph::as(cudnnDataType_t type, Tensor x) {
  tensors_[static_cast<std::size_t>(x)].type = type;
  return x;
}

Descriptor Graph::describe(const Node& node) const {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR, name_);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, node.id);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, node.type);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<std::int64_t>(node.shape.begin(), node.shape.end()));
  made.set(CUDNN_ATTR_TENSOR_STRIDES, std::vector<std::int64_t>(node.strides.begin(), node.strides.end()));
  made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, node.is_virtual);
  made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, node.by_value);
  made.finalize();
  return made;
}

Descriptor Graph::describe(const Operation& operation, const std::vector<Descriptor>& tensors) const {
  const auto tensor = [&](Tensor which) -> const Descriptor& { return tensors[static_cast<std::size_t>(which)]; };
  switch (operation.kind) {
    case Kind::pointwise: {
      Descriptor what(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, name_);
      what.set(CUDNN_ATTR_POINTWISE_MODE, static_cast<cudnnPointwiseMode_t>(operation.mode));
      what.set(CUDNN_ATTR_POINTWISE_MATH_PREC, operation.math);
      if (operation.axis >= 0) what.set(CUDNN_ATTR_POINTWISE_AXIS, operation.axis);
      what.finalize();
      Descriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, name_);
      made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
      made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(operation.x));
      if (operation.b != fresh) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(operation.b));
      if (operation.chosen != fresh) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensor(operation.chosen));
      made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(operation.y));
      made.finalize();
      return made;
    }
    case Kind::reduction: {
      Descriptor what(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, name_);
      what.set(CUDNN_ATTR_REDUCTION_OPERATOR, static_cast<cudnnReduceTensorOp_t>(operation.mode));
      what.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, operation.math);
      what.finalize();
      Descriptor made(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, name_);
      made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, what);
      made.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensor(operation.x));
      made.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor(operation.y));
      made.finalize();
      return made;
    }
    case Kind::matmul: {
      Descriptor what(CUDNN_BACKEND_MATMUL_DESCRIPTOR, name_);
      what.set(CUDNN_ATTR_MATMUL_COMP_TYPE, operation.math);
      what.finalize();
      Descriptor made(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, name_);
      made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, what);
      made.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensor(operation.x));
      made.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensor(operation.b));
      made.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensor(operation.y));
      made.finalize();
      return made;
    }
    case Kind::reshape: break;
  }
  Descriptor made(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, name_);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensor(operation.x));
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensor(operation.y));
  made.finalize();
  return made;
}

Plan Graph::plan(const Target& target) const {
  const Library& cudnn = library();
  // The graph
  std::vector<Descriptor> tensors, operations;
  for (const Node& node : tensors_) tensors.push_back(describe(node));
  for (const Operation& operation : operations_) operations.push_back(describe(operation, tensors));
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, name_);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  if (target.handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  graph.finalize();

  // For which GPU
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, name_);
  if (target.handle == nullptr) {
    properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::vector<char>(target.properties.begin(), target.properties.end()));
    properties.finalize();
  }

  // Engines that could do it, the best first
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, name_);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  if (target.handle == nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties);
  heuristics.finalize();
  const auto ask = [&](std::int64_t most, std::int64_t& count, cudnnBackendDescriptor_t* into) {
    check(cudnn.cudnnBackendGetAttribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, into),
          "cudnnBackendGetAttribute", name_);
  };
  std::int64_t count = 0;
  ask(0, count, nullptr);
  std::vector<Descriptor> engines;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) engines.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, name_);
  for (const Descriptor& engine : engines) raw.push_back(engine.get());
  ask(count, count, raw.data());

  // The first of them that can be built
  std::string refused = "cuDNN names no engine";
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      Descriptor made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, name_);
      made.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engines[static_cast<std::size_t>(i)]);
      if (target.handle != nullptr) made.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
      else made.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties);
      made.finalize();
      std::int64_t bytes = 0, values = 0;
      check(cudnn.cudnnBackendGetAttribute(made.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &values, &bytes),
            "cudnnBackendGetAttribute", name_);
      return Plan(std::move(made), bytes, name_);
    } catch (const base::Failure& failure) {
      refused = failure.what();
    }
  }
  throw base::Failure(base::text("cuDNN has no kernel for ", name_, ", of ", count, " engines: ", refused));
}

}  // namespace shardbook::kernels::cuda::cudnn
