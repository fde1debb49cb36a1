// The host's compiler: LLVM IR to functions of this process.
#pragma once

#include "runtime/compile.h"
#include "runtime/host/orc.h"

namespace krait {

class HostExecutable : public Executable {
 public:
  HostExecutable(std::string name, std::string key, HostJit::Loaded loaded)
      : Executable(std::move(name), std::move(key), ""), loaded_(std::move(loaded)) {}
  HostKernel function() const { return loaded_.function; }

 private:
  HostJit::Loaded loaded_;
};

class HostBackend : public CompilerBackend {
 public:
  explicit HostBackend(HostTarget target) : jit_(std::move(target)) {}

  const HostJit& jit() const { return jit_; }
  Toolchain toolchain(DiskCache*) const override { return jit_.toolchain(); }
  CompiledCode compile(const KernelSource& source) const override {
    return {jit_.compile(source), "", ""};
  }
  std::string assembly(const KernelSource& source) const override { return jit_.assembly(source); }
  std::shared_ptr<Executable> load(const KernelSource& source, const std::string& key,
                                   const CompiledCode& code) const override {
    return std::make_shared<HostExecutable>(source.name, key, jit_.load(code.binary, source));
  }

 private:
  HostJit jit_;
};

/// The function of a kernel that a HostBackend made.
inline HostKernel host_kernel(const Executable& executable) {
  return dynamic_cast<const HostExecutable&>(executable).function();
}

}  // namespace krait
