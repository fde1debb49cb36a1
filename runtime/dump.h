// KRAIT_DUMP: what becomes of layers and kernels on their way, in files.
//
// KRAIT_DUMP=KIND,KIND...[:GLOB], as in "plan,tile@place,cuda,ptx,log:ssd" or "llvm:part_*". The
// pattern is held against the whole name of a layer or kernel (see file_of) and against each part
// of it between dots, so that the name of a layer, a pass or a kernel chooses what belongs to it.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "codegen/generate.h"

namespace krait {

/// One row of the table of what can be dumped.
struct DumpKind {
  std::string_view name;    // in KRAIT_DUMP
  std::string_view suffix;  // of its files
  std::string_view what;    // for people
};
std::span<const DumpKind> dump_kinds();

struct DumpOptions {
  std::set<std::string> kinds;   // of the table; empty: nothing is dumped
  std::set<std::string> passes;  // after which tile programs are dumped, besides the last one
  std::string pattern = "*";
  std::filesystem::path directory = "krait-dump";
};

/// Reads a value of KRAIT_DUMP, "" for nothing. Throws UsageError for a kind or a pass that is not
/// known, with those that are.
DumpOptions parse_dump(const std::string& text, const std::filesystem::path& directory);

/// Writes what was asked for, each file whole: DIRECTORY/NAME and the kind's suffix. Where two
/// layers of a program have kernels of one name, the later files stand: give the layers names. Safe
/// to use from several threads at once. Throws EnvironmentError where a file cannot be written.
class Dumps {
 public:
  explicit Dumps(DumpOptions options = {}) : options_(std::move(options)) {}

  bool any() const { return !options_.kinds.empty(); }
  /// Whether `file`, the name of a layer, a plan or a kernel, is to be dumped as this kind.
  bool wants(std::string_view kind, const std::string& file) const;
  /// Does nothing where that is not wanted.
  void write(std::string_view kind, const std::string& file, const std::string& text) const;
  /// Writes the tile programs of a kernel; empty where none is wanted.
  PassObserver tiles(const std::string& file) const;

 private:
  void publish(const std::string& name, const std::string& text) const;

  DumpOptions options_;
};

}  // namespace krait
