#include "tests/cuda_emulator/machine/report.h"

#include <cinttypes>
#include <cstdio>

#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/grid.h"
#include "tests/cuda_emulator/machine/locate.h"
#include "tests/cuda_emulator/machine/program.h"
#include "tests/cuda_emulator/machine/report_place.h"
#include "tests/cuda_emulator/machine/text.h"

namespace emulator {
namespace {

std::string in_words(const Dim& d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

std::string in_words(const Place& p) {
  std::string text = "block " + in_words(p.block) + ", thread " + in_words(p.thread);
  if (p.line) text += "\n    PTX line " + std::to_string(p.line) + ": " + p.instruction;
  if (p.source.line) {
    text +=
        "\n    " + (p.file.empty() ? "source line" : p.file) + ":" + std::to_string(p.source.line);
    if (p.source.outer_line && p.source.outer_line != p.source.line)
      text += ", inlined at line " + std::to_string(p.source.outer_line);
  }
  return text;
}

void set_instruction(Place& place, const Program& program, const ptx::Instruction& instruction) {
  place.line = instruction.line;
  place.source = instruction.source;
  place.instruction = text_of(instruction);
  const auto file = program.source.files.find(instruction.source.file);
  if (file != program.source.files.end()) place.file = file->second;
}

Report made(const Warp& warp, const Op& op, int lane, Fault fault, const std::string& what) {
  const Grid& grid = warp.block->grid;
  Report report;
  report.fault = fault;
  report.what = what;
  report.place.block = warp.block->index;
  report.place.thread = warp.thread_index(lane);
  if (op.source) set_instruction(report.place, grid.program, *op.source);
  if (grid.launch.entry) report.kernel = grid.launch.entry->name;
  report.seed = grid.launch.seed;
  return report;
}

Dim position(uint64_t linear, const Dim& size) {
  return {static_cast<uint32_t>(linear % size.x), static_cast<uint32_t>(linear / size.x % size.y),
          static_cast<uint32_t>(linear / size.x / size.y)};
}

}  // namespace

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::out_of_bounds: return "out of bounds";
    case Fault::misaligned: return "misaligned address";
    case Fault::freed: return "freed memory";
    case Fault::read_only: return "write to read-only memory";
    case Fault::undefined: return "undefined value";
    case Fault::race: return "race";
    case Fault::divergence: return "divergence";
    case Fault::members: return "member mask";
    case Fault::deadlock: return "deadlock";
    case Fault::barrier: return "wrong use of a barrier";
    case Fault::illegal: return "illegal instruction";
    case Fault::assertion: return "assertion";
    case Fault::trap: return "trap";
    case Fault::stack: return "stack overflow";
  }
  return "?";
}

Place place_of(const Warp& warp, int line, uint64_t block, unsigned warp_of_block, int lane) {
  const Grid& grid = warp.block->grid;
  Place place;
  place.block = position(block, grid.launch.grid);
  place.thread =
      position(uint64_t{warp_of_block} * kLanes + static_cast<unsigned>(lane), grid.launch.block);
  if (line == 0) return place;
  for (const ptx::Function& function : grid.program.source.functions)
    for (const ptx::Instruction& instruction : function.instructions)
      if (instruction.line == line) set_instruction(place, grid.program, instruction);
  return place;
}

std::string Report::text() const {
  std::string text =
      std::string(name_of(fault)) + ": " + what + "\n  kernel " + kernel + ", " + in_words(place);
  if (bytes) {
    char where_text[32];
    std::snprintf(where_text, sizeof where_text, "0x%" PRIx64, address);
    text += "\n  " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + " of " +
            std::string(ptx::name_of(space)) + " memory at " + where_text;
    if (!where.empty()) text += ": " + where;
  }
  if (has_other) text += "\n  the other access: " + in_words(other);
  return text + "\n  seed " + std::to_string(seed) + "\n";
}

void fail(const Warp& warp, const Op& op, int lane, Fault fault, const std::string& what) {
  throw LaunchFailure(made(warp, op, lane, fault, what));
}

void fail_at(const Warp& warp, const Op& op, int lane, Fault fault, ptx::Space space,
             uint64_t address, unsigned bytes, const std::string& what, const Place* other) {
  Report report = made(warp, op, lane, fault, what);
  report.space = space;
  report.address = address;
  report.bytes = bytes;
  if (fault != Fault::out_of_bounds && fault != Fault::freed)
    report.where = locate(warp, space, address, bytes);
  if (other) {
    report.has_other = true;
    report.other = *other;
  }
  throw LaunchFailure(report);
}

}  // namespace emulator
