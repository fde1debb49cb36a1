// ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16-bit elements between shared memory and the
// lanes of a warp.
//
// Row r of matrix i is the 16 bytes at the address that lane 8i + r gives; addresses of the other
// lanes are not looked at. The access counts as that lane's: it must be ordered after what others
// wrote there. Without .trans lane l holds elements 2(l % 4) and 2(l % 4) + 1 of row l / 4, with
// .trans those of column l / 4. The rows of a matrix are one phase of shared memory.
//
// Refused by name: the shapes m16n16, m8n16 and m16n8 of bytes and smaller types (sm_100 and
// later).

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/decode.h"
#include "tests/cuda_emulator/machine/warp.h"

namespace emulator {
namespace {

constexpr int kRows = 8, kRowBytes = 16, kMatrixBytes = kRows * kRowBytes;

// A warp's worth of matrices as they lie in memory: row r of matrix i at lane 8i + r. 128 bytes of
// a matrix are at once the 32-bit registers of its lanes without .trans.
struct Rows {
  alignas(64) std::byte data[4 * kMatrixBytes];
  alignas(64) uint8_t defined[4 * kMatrixBytes];  // 0xff or 0 a byte
};

// Op::mode[0]: matrices; Op::mode[1]: these.
constexpr uint32_t kTransposed = 1, kGeneric = 2;

void row_addresses(Warp& warp, const Op& op, Mask lanes, Arg base, uint64_t (&address)[kLanes]) {
  addresses(warp, op, lanes, base, op.imm[0], address);
  if (!(op.mode[1] & kGeneric)) return;
  each_lane(lanes, [&](int lane) {
    const uint64_t offset = address[lane] - kSharedWindow;
    if (offset >= kWindowBytes)
      fail_at(warp, op, lane, Fault::out_of_bounds, ptx::Space::generic, address[lane], kRowBytes,
              "the generic address of a matrix row is not in shared memory");
    address[lane] = offset;
  });
}

Access row_access(Mask lanes, const uint64_t* address) {
  Access access;
  access.space = ptx::Space::shared;
  access.bytes = kRowBytes;
  access.alignment = kRowBytes;
  access.lanes = lanes;
  access.address = address;
  access.counted = false;
  return access;
}

Mask row_lanes(unsigned matrices) {
  return matrices == 4 ? kAll : (Mask{1} << matrices * kRows) - 1;
}

void count(Counters& counters, const Op& op, const uint64_t* address, uint64_t& instructions,
           uint64_t& wavefronts, uint64_t& ideal) {
  unsigned sum = 0;
  for (unsigned i = 0; i < op.mode[0]; ++i)
    sum += shared_wavefronts(address, Mask{0xff} << i * kRows, kRowBytes);
  ++instructions;
  wavefronts += sum;
  ideal += op.mode[0];
  counters.worst_bank_conflict =
      std::max(counters.worst_bank_conflict, (sum + op.mode[0] - 1) / op.mode[0]);
}

// Where element e of a lane lies among the 64 of a matrix.
constexpr int place(bool transposed, int lane, int e) {
  return transposed ? (lane % 4 * 2 + e) * kRows + lane / 4 : lane * 2 + e;
}

// Definedness of a lane's two elements from and to a byte per byte of the matrix.
uint8_t gather_flags(const uint8_t* defined, bool transposed, int lane) {
  uint8_t flags = 0xf0;
  for (int byte = 0; byte < 4; ++byte)
    flags |= defined[place(transposed, lane, byte / 2) * 2 + byte % 2] & (1 << byte);
  return flags;
}

void scatter_flags(uint8_t flags, bool transposed, int lane, uint8_t* defined) {
  for (int byte = 0; byte < 4; ++byte)
    defined[place(transposed, lane, byte / 2) * 2 + byte % 2] = flags >> byte & 1 ? 0xff : 0;
}

bool all_defined(const uint8_t* defined, size_t bytes) {
  uint8_t all = 0xff;
  for (size_t i = 0; i < bytes; ++i) all &= defined[i];
  return all == 0xff;
}

// One matrix from memory's order into a register, or back.
void to_register(const Registers& registers, Arg target, const std::byte* data,
                 const uint8_t* defined, bool transposed) {
  uint16_t* values = registers.out<uint16_t>(target);
  uint8_t* flags = registers.defined_out(target);
  if (transposed) {
    uint16_t elements[2 * kLanes];
    std::memcpy(elements, data, sizeof elements);
    for (int lane = 0; lane < kLanes; ++lane)
      for (int e = 0; e < 2; ++e) values[lane * 2 + e] = elements[place(true, lane, e)];
  } else {
    std::memcpy(values, data, kMatrixBytes);
  }
  if (all_defined(defined, kMatrixBytes))
    std::memset(flags, 0xff, kLanes);
  else
    for (int lane = 0; lane < kLanes; ++lane) flags[lane] = gather_flags(defined, transposed, lane);
}

void from_register(const Registers& registers, Arg source, std::byte* data, uint8_t* defined,
                   bool transposed) {
  const uint16_t* values = registers.in<uint16_t>(source);
  const uint8_t* flags = registers.defined_in(source);
  uint16_t elements[2 * kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int e = 0; e < 2; ++e) elements[place(transposed, lane, e)] = values[lane * 2 + e];
    scatter_flags(flags[lane], transposed, lane, defined);
  }
  std::memcpy(data, elements, sizeof elements);
}

void run_load(Warp& warp, const Op& op, Mask) {
  const Mask rows = row_lanes(op.mode[0]);
  uint64_t address[kLanes];
  row_addresses(warp, op, rows, op.args[op.mode[0]], address);
  Rows matrices;
  load(warp, op, row_access(rows, address), matrices.data, matrices.defined);
  for (unsigned i = 0; i < op.mode[0]; ++i)
    to_register(warp.registers, op.args[i], matrices.data + i * kMatrixBytes,
                matrices.defined + i * kMatrixBytes, op.mode[1] & kTransposed);
  Counters& counters = warp.block->counters;
  count(counters, op, address, counters.ldmatrix, counters.ldmatrix_wavefronts,
        counters.ldmatrix_ideal);
}

void run_store(Warp& warp, const Op& op, Mask) {
  const Mask rows = row_lanes(op.mode[0]);
  uint64_t address[kLanes];
  row_addresses(warp, op, rows, op.args[0], address);
  Rows matrices;
  for (unsigned i = 0; i < op.mode[0]; ++i)
    from_register(warp.registers, op.args[1 + i], matrices.data + i * kMatrixBytes,
                  matrices.defined + i * kMatrixBytes, op.mode[1] & kTransposed);
  store(warp, op, row_access(rows, address), matrices.data, matrices.defined);
  Counters& counters = warp.block->counters;
  count(counters, op, address, counters.stmatrix, counters.stmatrix_wavefronts,
        counters.stmatrix_ideal);
}

void run_move(Warp& warp, const Op& op, Mask) {
  Rows matrix;
  from_register(warp.registers, op.args[1], matrix.data, matrix.defined, false);
  to_register(warp.registers, op.args[0], matrix.data, matrix.defined, true);
}

void take_sync_aligned(Decoding& decoding, Modifiers& modifiers) {
  if (!modifiers.take("sync") || !modifiers.take("aligned"))
    decoding.fail("only the form .sync.aligned exists");
}

struct Form {
  int matrices = 0;
  bool shape = false, transposed = false, shared = false;
};

// Shape, number, .trans and space may stand in any order, as the assembler takes them.
Form read_form(Decoding& decoding, Modifiers& modifiers) {
  Form form;
  while (modifiers.more() && modifiers.peek() != "b16") {
    const std::string_view next = modifiers.peek();
    for (const char* other : {"m16n16", "m8n16", "m16n8", "b8"})
      if (next == other)
        decoding.fail("." + std::string(other) + " matrices (sm_100 and later) are not emulated");
    if (!form.shape && modifiers.take("m8n8")) {
      form.shape = true;
    } else if (!form.matrices && (next == "x1" || next == "x2" || next == "x4")) {
      form.matrices = 1 << modifiers.take_one({"x1", "x2", "x4"});
    } else if (!form.transposed && modifiers.take("trans")) {
      form.transposed = true;
    } else if (!form.shared && modifiers.take_one({"shared", "shared::cta"}) >= 0) {
      form.shared = true;
    } else {
      decoding.fail("modifier ." + std::string(next) + " is not one of this instruction");
    }
  }
  if (!modifiers.take("b16")) decoding.fail("the type .b16 is missing");
  modifiers.end();
  if (!form.shape || !form.matrices) decoding.fail("needs the shape .m8n8 and .x1, .x2 or .x4");
  return form;
}

void require_architecture(const Decoding& decoding, int least) {
  if (decoding.architecture() < least) decoding.fail("needs sm_" + std::to_string(least));
}

Op decode_memory(Decoding& decoding, bool loads) {
  require_architecture(decoding, loads ? 75 : 90);
  Modifiers modifiers(*decoding.instruction);
  take_sync_aligned(decoding, modifiers);
  const Form form = read_form(decoding, modifiers);
  decoding.expect_operands(2);
  const auto& operands = decoding.instruction->operands;
  const auto address = decoding.address(operands[loads ? 1 : 0],
                                        form.shared ? ptx::Space::shared : ptx::Space::generic);
  std::vector<Arg> args;
  if (!loads) args.push_back(address.base);
  for (const ptx::Operand& element :
       decoding.elements(operands[loads ? 0 : 1], static_cast<size_t>(form.matrices)))
    args.push_back(loads ? decoding.target(element, ptx::Type::b32)
                         : decoding.source(element, ptx::Type::b32));
  if (loads) args.push_back(address.base);
  Op op = decoding.make(Class::matrix_move, loads ? run_load : run_store, args);
  op.flow = Flow::aligned;
  op.imm[0] = address.offset;
  op.mode[0] = static_cast<uint32_t>(form.matrices);
  op.mode[1] = (form.transposed ? kTransposed : 0) | (form.shared ? 0 : kGeneric);
  return op;
}

Op decode_move(Decoding& decoding) {
  require_architecture(decoding, 75);
  Modifiers modifiers(*decoding.instruction);
  take_sync_aligned(decoding, modifiers);
  if (!modifiers.take("m8n8") || !modifiers.take("trans") || !modifiers.take("b16"))
    decoding.fail("only the form .m8n8.trans.b16 exists");
  modifiers.end();
  decoding.expect_operands(2);
  Op op = decoding.make(Class::matrix_move, run_move,
                        {decoding.target(0, ptx::Type::b32), decoding.source(1, ptx::Type::b32)});
  op.flow = Flow::aligned;
  return op;
}

}  // namespace

void add_matrix(Decoders& decoders) {
  decoders.add("ldmatrix", [](Decoding& decoding) { return decode_memory(decoding, true); });
  decoders.add("stmatrix", [](Decoding& decoding) { return decode_memory(decoding, false); });
  decoders.add("movmatrix", decode_move);
}

}  // namespace emulator
