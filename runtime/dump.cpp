#include "runtime/dump.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <system_error>
#include <vector>

#include "codegen/passes/cuda_passes.h"
#include "codegen/passes/passes.h"
#include "dsl/error.h"
#include "runtime/file.h"

namespace krait {
namespace {

constexpr std::array<DumpKind, 8> kKinds{{
    {"graph", ".graph.txt", "the graph of a layer, as its block describes it"},
    {"plan", ".plan.txt", "the kernels of a pass, and what each reads and writes"},
    {"tile", ".tile.txt", "tile programs after all passes; tile@PASS: after that one"},
    {"cuda", ".cu", "CUDA C++ of a kernel for a GPU"},
    {"ptx", ".ptx", "what NVRTC makes of it"},
    {"llvm", ".ll", "LLVM IR of a kernel for the host"},
    {"asm", ".s", "what LLVM makes of it"},
    {"log", ".log", "what the compiler of a kernel for a GPU said"},
}};

/// The passes of all devices, "build" first.
std::vector<std::string> pass_names() {
  std::vector<std::string> names{"build"};
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const TilePass& pass : host_passes()) add(pass.name);
  for (const CudaPass& pass : cuda_passes()) add(pass.name);
  return names;
}

std::string allowed_kinds() {
  std::string all;
  for (const DumpKind& kind : kKinds) {
    all += std::string(kind.name) + ", ";
    if (kind.name == "tile")
      for (const std::string& pass : pass_names()) all += "tile@" + pass + ", ";
  }
  return all + "with commas between and then :PATTERN, if any";
}

bool fits(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

std::span<const DumpKind> dump_kinds() { return kKinds; }

DumpOptions parse_dump(const std::string& text, const std::filesystem::path& directory) {
  DumpOptions options;
  options.directory = directory;
  if (text.empty()) return options;
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) options.pattern = text.substr(colon + 1);
  std::istringstream kinds(text.substr(0, colon));
  std::string kind;
  while (std::getline(kinds, kind, ',')) {
    const std::size_t at = kind.find('@');
    const std::string name = kind.substr(0, at);
    const bool known = std::any_of(kKinds.begin(), kKinds.end(),
                                   [&](const DumpKind& each) { return each.name == name; });
    const std::vector<std::string> passes = pass_names();
    const std::string pass = at == std::string::npos ? "" : kind.substr(at + 1);
    const bool whole = at == std::string::npos;
    if (!known || (!whole && (name != "tile" ||
                              std::find(passes.begin(), passes.end(), pass) == passes.end())))
      throw UsageError("KRAIT_DUMP", "\"" + text + "\", which asks for \"" + kind + "\"",
                       allowed_kinds());
    if (whole)
      options.kinds.insert(name);
    else
      options.passes.insert(pass);
  }
  if (options.pattern.empty() || (options.kinds.empty() && options.passes.empty()))
    throw UsageError("KRAIT_DUMP", "\"" + text + "\"", allowed_kinds());
  return options;
}

bool Dumps::wants(std::string_view kind, const std::string& file) const {
  if (options_.kinds.count(std::string(kind)) == 0 && !(kind == "tile" && !options_.passes.empty()))
    return false;
  if (file.empty()) return false;
  if (fits(options_.pattern, file)) return true;
  std::istringstream parts(file);
  std::string part;
  while (std::getline(parts, part, '.'))
    if (fits(options_.pattern, part)) return true;
  return false;
}

void Dumps::write(std::string_view kind, const std::string& file, const std::string& text) const {
  if (!wants(kind, file)) return;
  const auto row = std::find_if(kKinds.begin(), kKinds.end(),
                                [&](const DumpKind& each) { return each.name == kind; });
  publish(file + std::string(row->suffix), text);
}

PassObserver Dumps::tiles(const std::string& file) const {
  if (!wants("tile", file)) return {};
  const bool last = options_.kinds.count("tile") != 0;
  return [this, file, last](const std::string& pass, const TileProgram& program) {
    if (options_.passes.count(pass) != 0)
      publish(file + ".tile@" + pass + ".txt", to_text(program));
    // Whichever pass is the last one: its program replaces those before.
    if (last) publish(file + ".tile.txt", to_text(program));
  };
}

void Dumps::publish(const std::string& name, const std::string& text) const {
  std::error_code failed;
  std::filesystem::create_directories(options_.directory, failed);
  if (failed)
    throw EnvironmentError(krait::text("cannot create the folder ", options_.directory.string(),
                                       " for KRAIT_DUMP: ", failed.message()));
  write_file_atomically((options_.directory / name).string(), text);
}

}  // namespace krait
