#include "tests/cuda_emulator/machine/report.h"

#include <cinttypes>
#include <cstdio>

#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/grid.h"

namespace emulator {
namespace {

std::string in_words(const ptx::Operand& operand);

std::string joined(const std::vector<ptx::Operand>& operands, const char* open, const char* close) {
  std::string text = open;
  for (const auto& o : operands) text += (text.size() > 1 ? ", " : "") + in_words(o);
  return text + close;
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

std::string with_offset(const std::string& base, int64_t offset) {
  if (offset == 0) return base;
  return base + (offset > 0 ? "+" : "") + std::to_string(offset);
}

std::string in_words(const ptx::Operand& o) {
  using Kind = ptx::Operand::Kind;
  std::string text = o.negated ? "!" : "";
  switch (o.kind) {
    case Kind::integer: text += std::to_string(static_cast<int64_t>(o.bits)); break;
    case Kind::single:
    case Kind::number: text += hex(o.bits); break;
    case Kind::variable: text += with_offset(o.name, o.offset); break;
    case Kind::address:
      text += "[" + with_offset(o.elements.empty() ? "" : in_words(o.elements[0]), o.offset) + "]";
      break;
    case Kind::vector: text += joined(o.elements, "{", "}"); break;
    case Kind::list: text += joined(o.elements, "(", ")"); break;
    case Kind::sink: text += "_"; break;
    default: text += o.name.empty() ? "#" + std::to_string(o.index) : o.name;
  }
  if (o.second) text += "|" + in_words(*o.second);
  return text;
}

std::string in_words(const ptx::Instruction& instruction) {
  std::string text = instruction.opcode;
  for (const auto& m : instruction.modifiers) text += "." + m;
  for (size_t i = 0; i < instruction.operands.size(); ++i)
    text += (i ? ", " : " ") + in_words(instruction.operands[i]);
  return text;
}

std::string in_words(const Dim& d) {
  return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
}

Report made(const Warp& warp, const Op& op, int lane, Fault fault, const std::string& what) {
  Report report;
  report.fault = fault;
  report.what = what;
  report.place.block = warp.block->index;
  report.place.thread = warp.thread_index(lane);
  if (op.source) {
    report.place.line = op.source->line;
    report.place.source = op.source->source;
    report.place.instruction = in_words(*op.source);
  }
  const Launch& launch = warp.block->grid.launch;
  if (launch.entry) report.kernel = launch.entry->name;
  report.seed = launch.seed;
  return report;
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

std::string Report::text() const {
  const auto place_text = [this](const Place& p) {
    std::string text = "block " + in_words(p.block) + ", thread " + in_words(p.thread) +
                       "\n    line " + std::to_string(p.line) + ": " + p.instruction;
    if (p.source.line)
      text += "\n    " + (file.empty() ? "source" : file) + ":" + std::to_string(p.source.line);
    return text;
  };
  std::string text =
      std::string(name_of(fault)) + ": " + what + "\n  kernel " + kernel + ", " + place_text(place);
  if (bytes)
    text += "\n  " + std::to_string(bytes) + " bytes of " + std::string(ptx::name_of(space)) +
            " memory at " + hex(address);
  if (has_other) text += "\n  other access: " + place_text(other);
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
  if (other) {
    report.has_other = true;
    report.other = *other;
  }
  throw LaunchFailure(report);
}

}  // namespace emulator
