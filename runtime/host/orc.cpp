// The only file that includes LLVM: its headers are slow to compile, and nothing of it leaks.
#include "runtime/host/orc.h"

#include <llvm-c/Core.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <math.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "dsl/error.h"

namespace krait {
namespace {

/// Part of the cache key: change it with the pipeline or the code generator's options.
constexpr std::string_view pipeline_name = "O2, no vectorizers, unroll by metadata, contract off";

void prepare_llvm() {
  // LLVM keeps its targets in a registry of the process, which may be filled only once.
  static const bool ready = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    return true;
  }();
  (void)ready;
}

const llvm::Target& find_target(const std::string& triple) {
  std::string fault;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, fault);
  if (!found) throw EnvironmentError("LLVM cannot make code for " + triple + ": " + fault);
  return *found;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const HostTarget& target) {
  prepare_llvm();
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(
      find_target(target.triple)
          .createTargetMachine(target.triple, target.cpu, target.features, options,
                               llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Default,
                               true));
  KRAIT_ASSERT(machine, "LLVM gives no target machine for ", target.triple);
  return machine;
}

/// Collects what LLVM reports in place of its default, which ends the process.
struct Diagnostics : llvm::DiagnosticHandler {
  explicit Diagnostics(std::string& out) : errors(out) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      llvm::raw_string_ostream stream(errors);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
      stream << '\n';
    }
    return true;
  }

  std::string& errors;
};

[[noreturn]] void fail(const KernelSource& source, const std::string& message) {
  throw InternalError(krait::text("LLVM rejects kernel ", source.name, ": ", message, "\n",
                                  numbered_lines(source.text)));
}

bool has_kernel_type(const llvm::Function& function) {
  const llvm::FunctionType& type = *function.getFunctionType();
  return type.getReturnType()->isVoidTy() && !type.isVarArg() && type.getNumParams() == 5 &&
         type.getParamType(0)->isPointerTy() && type.getParamType(1)->isPointerTy() &&
         type.getParamType(2)->isPointerTy() && type.getParamType(3)->isIntegerTy(64) &&
         type.getParamType(4)->isIntegerTy(64);
}

std::unique_ptr<llvm::Module> parse(const KernelSource& source, llvm::LLVMContext& context) {
  llvm::SMDiagnostic diagnostic;
  const llvm::MemoryBufferRef buffer(source.text, source.name);
  std::unique_ptr<llvm::Module> module = llvm::parseAssembly(buffer, diagnostic, context);
  if (!module) {
    fail(source, krait::text("line ", diagnostic.getLineNo(), ", column ",
                             diagnostic.getColumnNo() + 1, ": ", diagnostic.getMessage().str()));
  }
  std::string fault;
  llvm::raw_string_ostream stream(fault);
  if (llvm::verifyModule(*module, &stream)) fail(source, fault);
  const llvm::Function* entry = module->getFunction(source.entry);
  if (!entry || entry->isDeclaration() || entry->hasLocalLinkage()) {
    fail(source, "it does not define an external function " + source.entry);
  }
  if (!has_kernel_type(*entry)) {
    fail(source, source.entry + " is not of type void (ptr, ptr, ptr, i64, i64)");
  }
  return module;
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopInterleaving = false;
  tuning.LoopUnrolling = false;  // those that ask by metadata are unrolled all the same

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

std::string generate(const KernelSource& source, const HostTarget& target,
                     llvm::CodeGenFileType type) {
  KRAIT_ASSERT(source.backend == KernelSource::Backend::llvm, source.name, " is not LLVM IR");
  KRAIT_ASSERT(source.options.empty(), source.name, ": the host's compiler takes no options");
  const std::unique_ptr<llvm::TargetMachine> machine = make_machine(target);
  std::string errors;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Diagnostics>(errors));
  const std::unique_ptr<llvm::Module> module = parse(source, context);
  module->setTargetTriple(target.triple);
  module->setDataLayout(machine->createDataLayout());
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    // Some CPUs are tuned for half of their widest vectors; the emitter has chosen already.
    function.addFnAttr("prefer-vector-width", std::to_string(target.vector_bits));
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  optimise(*module, *machine);

  llvm::SmallVector<char, 0> out;
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  KRAIT_ASSERT(!machine->addPassesToEmitFile(passes, stream, nullptr, type),
               "LLVM emits no such file for ", target.triple);
  passes.run(*module);
  if (!errors.empty()) fail(source, errors);
  return {out.begin(), out.end()};
}

bool has(const llvm::MCSubtargetInfo& subtarget, std::string_view feature) {
  return subtarget.checkFeatures("+" + std::string(feature));
}

}  // namespace

HostTarget host_target(const std::string& cpu) {
  prepare_llvm();
  HostTarget target;
  target.triple = llvm::sys::getProcessTriple();
  // Sorted: the order of a StringMap is no property of the machine.
  std::map<std::string, bool> own;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    own[feature.first().str()] = feature.second;
  }
  if (cpu.empty()) {
    target.cpu = llvm::sys::getHostCPUName().str();
    for (const auto& [feature, present] : own) {
      target.features += (target.features.empty() ? "" : ",");
      target.features += (present ? "+" : "-") + feature;
    }
  } else {
    const std::unique_ptr<llvm::MCSubtargetInfo> known(
        find_target(target.triple).createMCSubtargetInfo(target.triple, "", ""));
    if (!known->isCPUStringValid(cpu)) {
      throw UsageError("KRAIT_HOST_CPU", cpu, "a CPU that LLVM knows for " + target.triple);
    }
    target.cpu = cpu;
  }

  const std::unique_ptr<llvm::TargetMachine> machine = make_machine(target);
  const llvm::MCSubtargetInfo& subtarget = *machine->getMCSubtargetInfo();
  if (!cpu.empty()) {
    for (const auto& [feature, present] : own) {
      if (!present && has(subtarget, feature)) {
        throw UsageError("KRAIT_HOST_CPU", cpu,
                         "a CPU whose features this machine has; it lacks " + feature);
      }
    }
  }
  const bool x86 = machine->getTargetTriple().isX86();
  if (x86 && has(subtarget, "avx512f")) {
    target.vector_bits = 512;
    target.vector_registers = 32;
  } else if (x86 && has(subtarget, "avx2")) {
    target.vector_bits = 256;
  } else if (machine->getTargetTriple().isAArch64()) {
    target.vector_registers = 32;
  }
  return target;
}

/// One execution session; every kernel has a library of its own in it, so that symbols of equal
/// names do not meet and the memory of one kernel can be released alone.
struct HostJit::Session {
  Session()
      : session(llvm::cantFail(llvm::orc::SelfExecutorProcessControl::Create())),
        linker(session),
        builtins(session.createBareJITDylib("builtins")) {
    // The linker reports details here, on the thread that asked, not in the result of a lookup.
    session.setErrorReporter([this](llvm::Error error) {
      const std::string message = llvm::toString(std::move(error));
      const std::scoped_lock lock(mutex);
      reports[std::this_thread::get_id()] += message + "\n";
    });
    llvm::orc::SymbolMap symbols;
    const auto add = [&](const char* name, auto* function) {
      symbols[session.intern(name)] = {
          llvm::orc::ExecutorAddr::fromPtr(function),
          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    };
    add("memcpy", static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memcpy));
    add("memmove", static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memmove));
    add("memset", static_cast<void* (*)(void*, int, std::size_t)>(&std::memset));
    // What llvm.fma becomes on a CPU without the instruction: slow, the same bits.
    add("fmaf", static_cast<float (*)(float, float, float)>(&::fmaf));
    add("fma", static_cast<double (*)(double, double, double)>(&::fma));
    llvm::cantFail(builtins.define(llvm::orc::absoluteSymbols(std::move(symbols))));
  }
  ~Session() { llvm::consumeError(session.endSession()); }

  std::string take_reports() {
    const std::scoped_lock lock(mutex);
    const auto found = reports.extract(std::this_thread::get_id());
    return found.empty() ? "" : found.mapped();
  }

  llvm::orc::ExecutionSession session;
  llvm::orc::ObjectLinkingLayer linker;
  llvm::orc::JITDylib& builtins;
  std::atomic<int> libraries = 0;
  std::mutex mutex;
  std::map<std::thread::id, std::string> reports;
};

HostJit::HostJit(HostTarget target)
    : target_(std::move(target)), session_(std::make_shared<Session>()) {}

HostJit::~HostJit() = default;

Toolchain HostJit::toolchain() const {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);  // of the library in use, not of the headers
  return {target_.cpu,
          {{"llvm", krait::text(major, ".", minor, ".", patch)},
           {"pipeline", std::string(pipeline_name)},
           {"triple", target_.triple},
           {"cpu", target_.cpu},
           {"features", target_.features},
           {"vector_bits", std::to_string(target_.vector_bits)}}};
}

std::string HostJit::compile(const KernelSource& source) const {
  return generate(source, target_, llvm::CodeGenFileType::ObjectFile);
}

std::string HostJit::assembly(const KernelSource& source) const {
  return generate(source, target_, llvm::CodeGenFileType::AssemblyFile);
}

HostJit::Loaded HostJit::load(const std::string& object, const KernelSource& source) const {
  Session& session = *session_;
  llvm::orc::JITDylib& library =
      session.session.createBareJITDylib(krait::text("kernel ", session.libraries.fetch_add(1)));
  // Owns the library from here on, so that a failure below releases it too.
  std::shared_ptr<void> memory(&library, [owner = session_](void* held) {
    llvm::consumeError(owner->session.removeJITDylib(*static_cast<llvm::orc::JITDylib*>(held)));
  });
  library.addToLinkOrder(session.builtins);

  const auto failed = [&](llvm::Error error) {
    std::string message = llvm::toString(std::move(error));
    message += "\n" + session.take_reports();
    throw InternalError(krait::text("cannot link kernel ", source.name, ": ", message,
                                    numbered_lines(source.text)));
  };
  if (llvm::Error error =
          session.linker.add(library, llvm::MemoryBuffer::getMemBufferCopy(object, source.name))) {
    failed(std::move(error));
  }
  llvm::Expected<llvm::orc::ExecutorSymbolDef> found =
      session.session.lookup({&library}, session.session.intern(source.entry));
  if (!found) failed(found.takeError());
  return {found->getAddress().toPtr<HostKernel>(), std::move(memory)};
}

}  // namespace krait
