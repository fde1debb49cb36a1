#include "runtime/cuda/code_report.h"

#include <elf.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "dsl/error.h"

namespace krait {
namespace {

/// The number before `words` in the line, such as 12 in "12 bytes smem".
std::optional<std::int64_t> number_before(std::string_view line, std::string_view words) {
  const std::size_t end = line.find(words);
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(line.data() + begin, line.data() + end, number);
  if (error != std::errc() || stop == line.data() + begin) return std::nullopt;
  return number;
}

/// Bytes of all sections .text.KERNEL of a device image.
std::int64_t text_bytes(const std::string& image) {
  const auto at = [&](std::uint64_t offset, auto& value) {
    KRAIT_ASSERT(offset <= image.size() && sizeof(value) <= image.size() - offset,
                 "a device image of ", image.size(), " bytes is cut at ", offset);
    std::memcpy(&value, image.data() + offset, sizeof(value));
  };
  Elf64_Ehdr header{};
  at(0, header);
  KRAIT_ASSERT(
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64,
      "a device image is no 64-bit ELF");
  const auto section = [&](std::uint64_t index) {
    Elf64_Shdr found{};
    at(header.e_shoff + index * header.e_shentsize, found);
    return found;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  std::int64_t bytes = 0;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr each = section(i);
    const std::uint64_t name = names.sh_offset + each.sh_name;
    constexpr std::string_view wanted = ".text.";
    if (name < image.size() && image.compare(name, wanted.size(), wanted) == 0)
      bytes += static_cast<std::int64_t>(each.sh_size);
  }
  return bytes;
}

}  // namespace

CodeReport code_report(const CompiledCode& code) {
  CodeReport report;
  std::string_view log = code.log;
  bool told = false;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    const auto most = [&](std::string_view words, auto& value) {
      if (const auto number = number_before(line, words))
        value = std::max(value, static_cast<std::decay_t<decltype(value)>>(*number));
    };
    told = told || number_before(line, " registers").has_value();
    most(" registers", report.registers);
    most(" bytes stack frame", report.stack);
    most(" bytes spill stores", report.spill_stores);
    most(" bytes spill loads", report.spill_loads);
    most(" bytes smem", report.static_shared);
  }
  KRAIT_ASSERT(told, "the log of ptxas tells no registers:\n", code.log);
  report.code_bytes = text_bytes(code.binary);
  return report;
}

int blocks_per_multiprocessor(const CudaTarget& target, int threads, int registers,
                              std::int64_t shared_bytes) {
  // Registers are given to warps in steps of 256, shared memory to blocks in steps of 128 bytes.
  constexpr int kRegisters = 64 << 10, kStep = 256, kLanes = 32, kSharedStep = 128;
  const int warps = (threads + kLanes - 1) / kLanes;
  const int of_warp = (registers * kLanes + kStep - 1) / kStep * kStep;
  const std::int64_t shared =
      (shared_bytes + target.reserved + kSharedStep - 1) / kSharedStep * kSharedStep;
  int blocks = target.multiprocessor_blocks;
  blocks = std::min(blocks, target.multiprocessor_threads / (warps * kLanes));
  if (of_warp > 0) blocks = std::min(blocks, kRegisters / of_warp / warps);
  if (shared > 0)
    blocks =
        static_cast<int>(std::min<std::int64_t>(blocks, target.multiprocessor_shared / shared));
  return blocks;
}

}  // namespace krait
