#include "runtime/executor.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "dsl/error.h"

namespace krait {

/// A call in the making: what depends on shapes and strides.
struct Executor::Call {
  struct Kernel {
    std::vector<void*> buffers;
    std::vector<std::int64_t> arguments;
    std::int64_t grid = 1;
    std::shared_ptr<PreparedProduct> product;  // of a library
  };
  std::vector<std::int64_t> key;  // shapes and strides of the tensors it was prepared for
  std::vector<std::int64_t> offsets;
  std::vector<Kernel> kernels;
  std::vector<void*> pointers;        // by object
  std::int64_t bytes = 0;             // of temporaries, then of what libraries work in
  std::int64_t workspace_offset = 0;  // byte at which that starts
  bool has_workspace = false;
  void* workspace = nullptr;
};

namespace {

/// Hands every number that a prepared call depends on to f, which may end it with false.
template <typename F>
bool visit_key(BoundTensors tensors, const F& f) {
  for (const TensorRef* tensor : tensors) {
    if (tensor == nullptr) {
      if (!f(std::int64_t{-1})) return false;
      continue;
    }
    if (!f(static_cast<std::int64_t>(tensor->dtype)) ||
        !f(static_cast<std::int64_t>(tensor->shape.size())))
      return false;
    for (std::int64_t size : tensor->shape)
      if (!f(size)) return false;
    for (std::int64_t stride : tensor->strides)
      if (!f(stride)) return false;
  }
  return true;
}

bool has_key(const std::vector<std::int64_t>& key, BoundTensors tensors) {
  std::size_t at = 0;
  return visit_key(tensors,
                   [&](std::int64_t number) { return at < key.size() && key[at++] == number; }) &&
         at == key.size();
}

std::vector<std::int64_t> key_of(BoundTensors tensors) {
  std::vector<std::int64_t> key;
  visit_key(tensors, [&](std::int64_t number) {
    key.push_back(number);
    return true;
  });
  return key;
}

}  // namespace

Executor::Executor(Plan plan, std::shared_ptr<Device> device, Uncompiled)
    : plan_(std::move(plan)), device_(std::move(device)) {
  plan_ = device_->adapted(std::move(plan_));
  verify(plan_);
  merged_ = merged_dims(plan_);
  for (const PlannedKernel& kernel : plan_.kernels) {
    Launch launch;
    launch.library =
        kernel.kind == PlannedKernel::Kind::product && device_->uses_library(plan_, kernel);
    launches_.push_back(std::move(launch));
  }
}

Executor::Executor(Plan plan, std::shared_ptr<Device> device)
    : Executor(std::move(plan), std::move(device), Uncompiled{}) {
  compile({this}, *device_, {});
}

Executor::~Executor() = default;

std::vector<std::unique_ptr<Executor>> Executor::make(std::vector<Plan> plans,
                                                      std::shared_ptr<Device> device,
                                                      const Prepared& prepared) {
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<Executor*> all;
  for (Plan& plan : plans) {
    executors.emplace_back(new Executor(std::move(plan), device, Uncompiled{}));
    all.push_back(executors.back().get());
  }
  compile(all, *device, prepared);
  return executors;
}

void Executor::compile(const std::vector<Executor*>& executors, Device& device,
                       const Prepared& prepared) {
  struct Item {
    Executor* executor;
    int kernel;
  };
  std::vector<Item> items;
  for (Executor* executor : executors)
    for (std::size_t k = 0; k < executor->launches_.size(); ++k)
      if (!executor->launches_[k].library) items.push_back({executor, static_cast<int>(k)});
  std::vector<std::exception_ptr> errors(items.size());
  device.pool().parallel_for(static_cast<std::int64_t>(items.size()), 0,
                             [&](std::int64_t begin, std::int64_t end, void*) {
                               for (std::int64_t i = begin; i < end; ++i) {
                                 Executor& executor = *items[i].executor;
                                 try {
                                   executor.launches_[items[i].kernel].kernel =
                                       device.generate(executor.plan_, items[i].kernel, prepared);
                                 } catch (...) {
                                   errors[i] = std::current_exception();
                                 }
                               }
                             });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);

  std::vector<KernelSource> sources;
  for (const Item& item : items)
    sources.push_back(item.executor->launches_[item.kernel].kernel.source);
  const auto executables = device.compiler().compile_all(sources, device.pool());
  std::int64_t scratch = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Launch& launch = items[i].executor->launches_[items[i].kernel];
    launch.executable = executables[i];
    launch.kernel.source.verify = nullptr;  // asked for the last time
    scratch = std::max(scratch, launch.kernel.scratch_bytes);
  }
  device.reserve_scratch(scratch);
}

std::size_t Executor::library_kernels() const {
  return static_cast<std::size_t>(std::count_if(
      launches_.begin(), launches_.end(), [](const Launch& launch) { return launch.library; }));
}

bool Executor::in_place(std::size_t kernel, int read, int written) const {
  const auto& pairs = launches_.at(kernel).kernel.in_place;
  return std::find(pairs.begin(), pairs.end(), std::pair(read, written)) != pairs.end();
}

const Executable* Executor::executable(std::size_t kernel) const {
  return launches_.at(kernel).executable.get();
}

std::unique_ptr<Executor::Call> Executor::take(BoundTensors tensors) const {
  {
    const std::scoped_lock lock(mutex_);
    // Prefers one that was prepared for these shapes.
    for (auto call = idle_.rbegin(); call != idle_.rend(); ++call)
      if (has_key((*call)->key, tensors)) {
        std::unique_ptr<Call> found = std::move(*call);
        idle_.erase(std::next(call).base());
        return found;
      }
    if (!idle_.empty()) {
      std::unique_ptr<Call> found = std::move(idle_.back());
      idle_.pop_back();
      return found;
    }
  }
  return std::make_unique<Call>();
}

void Executor::give_back(std::unique_ptr<Call> call) const {
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(call));
}

void Executor::prepare(Call& call, BoundTensors tensors) const {
  try {
    prepare(call, tensors, true);
  } catch (const EnvironmentError&) {
    // Libraries do without a workspace, more slowly, where they cannot have one.
    if (library_kernels() == 0) throw;
    prepare(call, tensors, false);
  }
}

void Executor::prepare(Call& call, BoundTensors tensors, bool workspace) const {
  call.key.clear();
  const Sizes sizes = bind_sizes(plan_, tensors);
  const Arena place = arena(plan_, sizes);
  call.offsets = place.offset;
  constexpr std::int64_t alignment = 256;
  call.workspace_offset = (place.bytes + alignment - 1) / alignment * alignment;
  std::int64_t workspace_bytes = 0;
  ObjectStrides strides;
  for (std::size_t i = 0; i < plan_.objects.size(); ++i)
    strides.push_back(tensors[i] != nullptr ? tensors[i]->strides
                                            : dense_strides(shape_of(plan_.objects[i], sizes)));
  call.kernels.assign(plan_.kernels.size(), {});
  for (std::size_t k = 0; k < plan_.kernels.size(); ++k) {
    Call::Kernel& kernel = call.kernels[k];
    if (launches_[k].library) {
      kernel.product =
          device_->prepare(gemm_calls(plan_, plan_.kernels[k], sizes, strides), workspace);
      workspace_bytes = std::max(workspace_bytes, kernel.product->workspace_bytes);
      continue;
    }
    const GeneratedKernel& generated = launches_[k].kernel;
    kernel.buffers.resize(generated.objects.size());
    for (const TileProgram::Argument& argument : generated.arguments)
      kernel.arguments.push_back(argument.kind == TileProgram::Argument::Kind::size
                                     ? Extent::symbolic(argument.symbol).value(sizes)
                                     : strides[generated.objects[argument.pointer]][argument.dim]);
    for (const Extent& extent : generated.grid)
      KRAIT_REQUIRE(!__builtin_mul_overflow(kernel.grid, extent.value(sizes), &kernel.grid),
                    "kernel ", plan_.kernels[k].name,
                    " has more grid points than 63 bits can count; allowed: smaller sizes");
  }
  call.has_workspace = workspace_bytes > 0;
  call.bytes = call.has_workspace ? call.workspace_offset + workspace_bytes : place.bytes;
  call.pointers.assign(plan_.objects.size(), nullptr);
  call.key = key_of(tensors);
}

Memory Executor::memory_for(Call& call, BoundTensors tensors, Stream stream) const {
  if (call.bytes == 0) return {};
  if (!call.has_workspace) return device_->scratch(call.bytes, stream);
  try {
    return device_->scratch(call.bytes, stream);
  } catch (const EnvironmentError&) {
    prepare(call, tensors, false);
    return call.bytes > 0 ? device_->scratch(call.bytes, stream) : Memory();
  }
}

void Executor::point(Call& call, BoundTensors tensors, char* memory) const {
  call.workspace = memory + call.workspace_offset;
  for (std::size_t i = 0; i < plan_.objects.size(); ++i) {
    void*& pointer = call.pointers[i];
    if (tensors[i] != nullptr) {
      // What the last call was given is known already.
      if (pointer != tensors[i]->data)
        device_->require_reachable(tensors[i]->data, plan_.objects[i].name);
      pointer = tensors[i]->data;
    } else if (call.offsets[i] >= 0) {
      pointer = memory + call.offsets[i];
    }
  }
  for (std::size_t k = 0; k < call.kernels.size(); ++k)
    for (std::size_t p = 0; p < call.kernels[k].buffers.size(); ++p)
      call.kernels[k].buffers[p] = call.pointers[launches_[k].kernel.objects[p]];
}

void Executor::launch(const Call& call, Stream stream, std::vector<double>* kernel_seconds) const {
  using Clock = std::chrono::steady_clock;
  if (kernel_seconds != nullptr) kernel_seconds->assign(call.kernels.size(), 0);
  for (std::size_t k = 0; k < call.kernels.size(); ++k) {
    if (kernel_seconds == nullptr) {
      launch_one(call, k, stream);
      continue;
    }
    device_->finish(stream);
    const auto start = Clock::now();
    launch_one(call, k, stream);
    device_->finish(stream);
    (*kernel_seconds)[k] = std::chrono::duration<double>(Clock::now() - start).count();
  }
}

void Executor::launch_one(const Call& call, std::size_t k, Stream stream) const {
  const Call::Kernel& kernel = call.kernels[k];
  if (launches_[k].library) {
    device_->product(*kernel.product, call.pointers.data(), call.workspace, stream);
    return;
  }
  device_->launch({launches_[k].executable.get(), &launches_[k].kernel, kernel.grid, kernel.buffers,
                   kernel.arguments, stream});
}

void Executor::run(BoundTensors tensors, Stream stream, std::vector<double>* kernel_seconds) const {
  KRAIT_ASSERT(tensors.size() == plan_.objects.size(), "bound ", tensors.size(), " tensors of ",
               plan_.objects.size());
  std::unique_ptr<Call> call = take(tensors);
  try {
    if (call->key.empty() || !has_key(call->key, tensors)) prepare(*call, tensors);
    check_layout(plan_, merged_, tensors);
    const Memory memory = memory_for(*call, tensors, stream);
    point(*call, tensors, static_cast<char*>(memory.data()));
    launch(*call, stream, kernel_seconds);
  } catch (...) {
    give_back(std::move(call));
    throw;
  }
  give_back(std::move(call));
}

void Executor::run(const TensorMap& inputs, const TensorMap& outputs, Stream stream,
                   std::vector<double>* kernel_seconds) const {
  std::vector<const TensorRef*> bound(plan_.objects.size(), nullptr);
  for (std::size_t i = 0; i < plan_.objects.size(); ++i) {
    const MemoryObject& object = plan_.objects[i];
    if (object.kind == MemoryObject::Kind::temporary) continue;
    const TensorMap& given = object.kind == MemoryObject::Kind::input ? inputs : outputs;
    if (auto found = given.find(object.name); found != given.end()) bound[i] = &found->second;
  }
  run(bound, stream, kernel_seconds);
}

}  // namespace krait
