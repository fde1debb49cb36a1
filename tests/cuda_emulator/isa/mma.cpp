// mma.sync: dense products of fragments held by a warp.
//
// Arithmetic. Operands narrower than 32 bits and tf32 are converted exactly; their products are
// exact in f32 but where they leave its range. D is C plus the products in rising k, each addition
// rounded to nearest in f32 (f64: a fused multiply and add each, in rising k). f16 accumulators are
// added up in f32 too and rounded once, at the end. Hardware adds in other orders and with other
// widths, which the ISA leaves open: results agree to the rounding of the sums, not to the bit.
// Integer sums are exact, then wrapped to 32 bits or, with .satfinite, clamped. NaN results are
// 0x7fffffff in f32, 0x7fff in f16.
//
// Layouts. But for m8n8k4 of f16, register r of an operand holds, over the 32 lanes, eight rows of
// four lanes each: with n elements a register, element i of a lane lies in row `lane / 4`, column
// `(lane % 4) * n + i` of an 8 x 4n part. Parts of A go down its eight-row halves first, then along
// k; parts of B go along k, their rows being columns of B. Accumulators of 32 and 64 bits have two
// registers to a part, one for each of a lane's two columns. All figures of the ISA for these
// shapes say that; mma_test.cpp has them one by one.
//
// Not handled, and refused by name: sparse (mma.sp) and block-scaled products, the sub-byte types,
// b1, and the instructions wmma, wgmma and tcgen05.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tests/cuda_emulator/isa/elements.h"
#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/decode.h"
#include "tests/cuda_emulator/machine/warp.h"

namespace emulator {
namespace {

using ptx::Type;

constexpr int kMaxM = 16, kN = 8, kMaxK = 32;

struct Shape {
  int m = 0, k = 0;                // n is 8
  int d = 0, a = 0, b = 0, c = 0;  // registers of each operand, in this order in Op::args
  bool saturate = false;
  bool a_column = false, b_row = false;  // m8n8k4 of f16 alone
  std::string name;                      // in the counts
  uint64_t flops = 0;
};

[[noreturn]] void report_undefined(const Warp& warp, const Op& op, const Shape& shape, int arg) {
  const uint8_t* defined = warp.registers.defined_in(op.args[arg]);
  const auto bad = std::find_if(defined, defined + kLanes, [](uint8_t d) { return d != 0xff; });
  const int a = shape.d, b = a + shape.a, c = b + shape.b;
  const char name = arg < b ? 'A' : (arg < c ? 'B' : 'C');
  const int number = arg - (arg < b ? a : (arg < c ? b : c));
  fail(warp, op, static_cast<int>(bad - defined), Fault::undefined,
       "register " + std::to_string(number) + " of operand " + name +
           " holds a value that was never written");
}

// What all products do first: their checks and counts. All 32 lanes are there: Flow::aligned.
const Shape& begin(Warp& warp, const Op& op) {
  const Shape& shape = *static_cast<const Shape*>(op.extra);
  for (int i = shape.d; i < op.arg_count; ++i) {
    uint64_t words[4];
    std::memcpy(words, warp.registers.defined_in(op.args[i]), sizeof words);
    if ((words[0] & words[1] & words[2] & words[3]) != ~uint64_t{0})
      report_undefined(warp, op, shape, i);
  }
  Counters& counters = warp.block->counters;
  ++counters.mma[shape.name];
  counters.mma_flops += shape.flops;
  return shape;
}

template <class V>
struct Operands {
  alignas(64) V a[kMaxM][kMaxK];
  alignas(64) V b[kMaxK][kN];
  alignas(64) V c[kMaxM][kN];
};

template <class E, class V>
void read_a(const Warp& warp, const Op& op, const Shape& shape, V (&a)[kMaxM][kMaxK]) {
  constexpr int kPart = kLanes / 8 * std::max<int>(1, 4 / sizeof(typename E::Bits));
  const int halves = shape.m / 8;
  for (int r = 0; r < shape.a; ++r) {
    const auto* part = warp.registers.in<typename E::Bits>(op.args[shape.d + r]);
    for (int row = 0; row < 8; ++row) {
      V* to = &a[row + 8 * (r % halves)][r / halves * kPart];
      for (int i = 0; i < kPart; ++i) to[i] = E::value(part[row * kPart + i]);
    }
  }
}

template <class E, class V>
void read_b(const Warp& warp, const Op& op, const Shape& shape, V (&b)[kMaxK][kN]) {
  constexpr int kPart = kLanes / 8 * std::max<int>(1, 4 / sizeof(typename E::Bits));
  for (int r = 0; r < shape.b; ++r) {
    const auto* part = warp.registers.in<typename E::Bits>(op.args[shape.d + shape.a + r]);
    V values[8 * kPart];
    for (int i = 0; i < 8 * kPart; ++i) values[i] = E::value(part[i]);
    for (int column = 0; column < 8; ++column)
      for (int i = 0; i < kPart; ++i) b[r * kPart + i][column] = values[column * kPart + i];
  }
}

// Accumulators of 32 and 64 bits: registers 2h and 2h + 1 hold the even and odd columns of half h.
template <class C>
struct WideAccumulator {
  using Value = C;

  static void read(const Warp& warp, const Arg* args, int count, C (&c)[kMaxM][kN]) {
    for (int r = 0; r < count; ++r) {
      const C* part = warp.registers.in<C>(args[r]);
      for (int lane = 0; lane < kLanes; ++lane)
        c[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2] = part[lane];
    }
  }

  static void write(const Warp& warp, const Arg* args, int count, const C (&c)[kMaxM][kN]) {
    for (int r = 0; r < count; ++r) {
      C* part = warp.registers.out<C>(args[r]);
      for (int lane = 0; lane < kLanes; ++lane)
        part[lane] = c[lane / 4 + r / 2 * 8][lane % 4 * 2 + r % 2];
    }
  }
};

// f16 accumulators: register h holds both columns of half h.
struct HalfAccumulator {
  using Value = float;

  static void read(const Warp& warp, const Arg* args, int count, float (&c)[kMaxM][kN]) {
    for (int r = 0; r < count; ++r) {
      const uint16_t* part = warp.registers.in<uint16_t>(args[r]);
      for (int i = 0; i < 8 * kN; ++i) c[r * 8 + i / kN][i % kN] = value_of_half(part[i]);
    }
  }

  static void write(const Warp& warp, const Arg* args, int count, const float (&c)[kMaxM][kN]) {
    for (int r = 0; r < count; ++r) {
      uint16_t* part = warp.registers.out<uint16_t>(args[r]);
      for (int i = 0; i < 8 * kN; ++i) part[i] = half_of(c[r * 8 + i / kN][i % kN]);
    }
  }
};

float canonical(float value) { return value == value ? value : std::bit_cast<float>(0x7fffffffu); }

// Eight sums stay in registers while k rises.
void accumulate(Operands<float>& o, const Shape& shape) {
  for (int i = 0; i < shape.m; ++i) {
    float sum[kN];
    for (int j = 0; j < kN; ++j) sum[j] = o.c[i][j];
    for (int k = 0; k < shape.k; ++k) {
      const float a = o.a[i][k];
      for (int j = 0; j < kN; ++j) sum[j] += a * o.b[k][j];
    }
    for (int j = 0; j < kN; ++j) o.c[i][j] = canonical(sum[j]);
  }
}

void accumulate(Operands<double>& o, const Shape& shape) {
  for (int i = 0; i < shape.m; ++i)
    for (int k = 0; k < shape.k; ++k)
      for (int j = 0; j < kN; ++j) o.c[i][j] = std::fma(o.a[i][k], o.b[k][j], o.c[i][j]);
}

// 32 products of eight bits fit 32 bits by far; the sum with C may not.
void accumulate(Operands<int32_t>& o, const Shape& shape) {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (int i = 0; i < shape.m; ++i) {
    int32_t products[kN] = {};
    for (int k = 0; k < shape.k; ++k)
      for (int j = 0; j < kN; ++j) products[j] += o.a[i][k] * o.b[k][j];
    for (int j = 0; j < kN; ++j) {
      const int64_t sum = int64_t{o.c[i][j]} + products[j];
      o.c[i][j] = static_cast<int32_t>(shape.saturate ? std::clamp(sum, kLeast, kMost) : sum);
    }
  }
}

void define_results(const Warp& warp, const Op& op, const Shape& shape) {
  for (int r = 0; r < shape.d; ++r)
    std::memset(warp.registers.defined_out(op.args[r]), 0xff, kLanes);
}

template <class A, class B, class Accumulator>
void run(Warp& warp, const Op& op, Mask) {
  const Shape& shape = begin(warp, op);
  Operands<typename Accumulator::Value> o;
  read_a<A>(warp, op, shape, o.a);
  read_b<B>(warp, op, shape, o.b);
  Accumulator::read(warp, op.args + shape.d + shape.a + shape.b, shape.c, o.c);
  accumulate(o, shape);
  Accumulator::write(warp, op.args, shape.d, o.c);
  define_results(warp, op, shape);
}

// m8n8k4 of f16 is four products at once: product q belongs to lanes 4q ... 4q + 3 and 16 lanes
// above those. These hold rows (columns) 0-3 and 4-7 of A and B.
struct Quad {
  const Warp& warp;
  const Op& op;
  const Shape& shape;
  int number;

  int lane(int i) const { return number * 4 + (i < 4 ? i : 12 + i); }  // i: of the eight lanes

  void read(int first, bool by_lane, float (&to)[8][4]) const {
    for (int i = 0; i < 8; ++i)
      for (int e = 0; e < 4; ++e) {
        const auto* part = warp.registers.in<uint16_t>(op.args[first + e / 2]);
        const float value = value_of_half(part[lane(i) * 2 + e % 2]);
        if (by_lane)
          to[i][e] = value;
        else
          to[e + i / 4 * 4][i % 4] = value;
      }
  }

  // Where accumulator element e of lane i lies: f16 by rows, f32 in a pattern of pairs.
  static int row(bool half, int i, int e) { return half ? i : i / 4 * 4 + (i & 1) + (e & 2); }
  static int column(bool half, int i, int e) { return half ? e : (e & 4) + (i & 2) + (e & 1); }

  void read_c(float (&c)[8][8]) const {
    const bool half = shape.c == 4;
    const Arg* args = op.args + shape.d + shape.a + shape.b;
    for (int i = 0; i < 8; ++i)
      for (int e = 0; e < 8; ++e)
        c[row(half, i, e)][column(half, i, e)] =
            half ? value_of_half(warp.registers.in<uint16_t>(args[e / 2])[lane(i) * 2 + e % 2])
                 : warp.registers.in<float>(args[e])[lane(i)];
  }

  void write_d(const float (&d)[8][8]) const {
    const bool half = shape.d == 4;
    for (int i = 0; i < 8; ++i)
      for (int e = 0; e < 8; ++e) {
        const float value = d[row(half, i, e)][column(half, i, e)];
        if (half)
          warp.registers.out<uint16_t>(op.args[e / 2])[lane(i) * 2 + e % 2] = half_of(value);
        else
          warp.registers.out<float>(op.args[e])[lane(i)] = value;
      }
  }
};

void run_quads(Warp& warp, const Op& op, Mask) {
  const Shape& shape = begin(warp, op);
  for (int q = 0; q < 4; ++q) {
    const Quad quad{warp, op, shape, q};
    float a[8][4], b[8][4], c[8][8];  // b: by its columns
    quad.read(shape.d, !shape.a_column, a);
    quad.read(shape.d + shape.a, !shape.b_row, b);
    quad.read_c(c);
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) {
        for (int k = 0; k < 4; ++k) c[i][j] += a[i][k] * b[j][k];
        c[i][j] = canonical(c[i][j]);
      }
    quad.write_d(c);
  }
  define_results(warp, op, shape);
}

using Run = void (*)(Warp&, const Op&, Mask);

template <class A, class B>
Run small_float(Type accumulator) {
  return accumulator == Type::f16 ? run<A, B, HalfAccumulator> : run<A, B, WideAccumulator<float>>;
}

Run run_for(Type a, Type b, Type accumulator) {
  switch (a) {
    case Type::f16: return small_float<Half, Half>(accumulator);
    case Type::bf16: return run<Bfloat, Bfloat, WideAccumulator<float>>;
    case Type::tf32: return run<Tfloat, Tfloat, WideAccumulator<float>>;
    case Type::f64: return run<Double, Double, WideAccumulator<double>>;
    case Type::e4m3:
      return b == Type::e4m3 ? small_float<E4m3, E4m3>(accumulator)
                             : small_float<E4m3, E5m2>(accumulator);
    case Type::e5m2:
      return b == Type::e4m3 ? small_float<E5m2, E4m3>(accumulator)
                             : small_float<E5m2, E5m2>(accumulator);
    case Type::s8:
      return b == Type::s8 ? run<Signed8, Signed8, WideAccumulator<int32_t>>
                           : run<Signed8, Unsigned8, WideAccumulator<int32_t>>;
    default:
      return b == Type::s8 ? run<Unsigned8, Signed8, WideAccumulator<int32_t>>
                           : run<Unsigned8, Unsigned8, WideAccumulator<int32_t>>;
  }
}

// What there is: a shape for a type of A, and the first architecture that has it.
struct Form {
  std::string_view shape;
  int m, k;
  Type type;
  int architecture;
};
constexpr Form kForms[] = {
    {"m8n8k4", 8, 4, Type::f16, 70},      {"m8n8k4", 8, 4, Type::f64, 80},
    {"m16n8k4", 16, 4, Type::tf32, 80},   {"m16n8k4", 16, 4, Type::f64, 90},
    {"m16n8k8", 16, 8, Type::f16, 75},    {"m16n8k8", 16, 8, Type::bf16, 80},
    {"m16n8k8", 16, 8, Type::tf32, 80},   {"m16n8k8", 16, 8, Type::f64, 90},
    {"m16n8k16", 16, 16, Type::f16, 80},  {"m16n8k16", 16, 16, Type::bf16, 80},
    {"m16n8k16", 16, 16, Type::f64, 90},  {"m16n8k16", 16, 16, Type::s8, 80},
    {"m16n8k16", 16, 16, Type::u8, 80},   {"m16n8k16", 16, 16, Type::e4m3, 89},
    {"m16n8k16", 16, 16, Type::e5m2, 89}, {"m8n8k16", 8, 16, Type::s8, 75},
    {"m8n8k16", 8, 16, Type::u8, 75},     {"m16n8k32", 16, 32, Type::s8, 80},
    {"m16n8k32", 16, 32, Type::u8, 80},   {"m16n8k32", 16, 32, Type::e4m3, 89},
    {"m16n8k32", 16, 32, Type::e5m2, 89}};

bool is_integer(Type type) { return type == Type::s8 || type == Type::u8; }
bool is_eight_bit_float(Type type) { return type == Type::e4m3 || type == Type::e5m2; }

// What mma has beyond this, told apart from what does not exist at all.
void refuse_other_kinds(Decoding& decoding) {
  for (const std::string& modifier : decoding.instruction->modifiers) {
    if (modifier == "sp" || modifier.starts_with("sp::"))
      decoding.fail("sparse matrix products (mma.sp) are not emulated");
    if (modifier.starts_with("kind::") || modifier == "block_scale")
      decoding.fail("matrix products with ." + modifier + " are not emulated");
    for (const char* type : {"s4", "u4", "b1", "e3m2", "e2m3", "e2m1"})
      if (modifier == type)
        decoding.fail("matrix products of type ." + modifier + " are not emulated");
  }
}

struct Types {
  Type d, a, b, c;
};

Types read_types(Modifiers& modifiers) {
  const std::initializer_list<Type> accumulators = {Type::f16, Type::f32, Type::f64, Type::s32};
  const std::initializer_list<Type> elements = {Type::f16,  Type::bf16, Type::tf32, Type::f64,
                                                Type::e4m3, Type::e5m2, Type::s8,   Type::u8};
  Types types{};
  types.d = modifiers.type(accumulators);
  types.a = modifiers.type(elements);
  types.b = modifiers.type(elements);
  types.c = modifiers.type(accumulators);
  return types;
}

// A and B of one type (integers and 8-bit floats may differ within their family), accumulators that
// go with it.
bool types_agree(const Types& t, bool quads) {
  const bool family = is_integer(t.a)           ? is_integer(t.b)
                      : is_eight_bit_float(t.a) ? is_eight_bit_float(t.b)
                                                : t.a == t.b;
  if (!family) return false;
  if (is_integer(t.a)) return t.d == Type::s32 && t.c == Type::s32;
  if (t.a == Type::f64) return t.d == Type::f64 && t.c == Type::f64;
  const bool halves = t.a == Type::f16 || is_eight_bit_float(t.a);
  if (quads && t.d == Type::f32 && t.c == Type::f16) return true;
  return t.d == t.c && (t.c == Type::f32 || (t.c == Type::f16 && halves));
}

const Form& form_for(Decoding& decoding, std::string_view shape, Type type) {
  const auto same_shape = [&](const Form& form) { return form.shape == shape; };
  const auto same = [&](const Form& form) { return form.shape == shape && form.type == type; };
  const std::string name = "mma." + std::string(shape);
  const std::string of_type = " of ." + std::string(ptx::name_of(type));
  if (std::none_of(std::begin(kForms), std::end(kForms), same_shape))
    decoding.fail("unknown shape ." + std::string(shape) + " of mma");
  const Form* form = std::find_if(std::begin(kForms), std::end(kForms), same);
  if (form == std::end(kForms)) decoding.fail("there is no " + name + of_type);
  if (decoding.architecture() < form->architecture)
    decoding.fail(name + of_type + " needs sm_" + std::to_string(form->architecture));
  return *form;
}

// The type of the registers that hold a fragment, and how many of them there are.
Type register_type(Type type) {
  switch (type) {
    case Type::f32:
    case Type::s32:
    case Type::f64: return type;
    default: return Type::b32;
  }
}

int registers_of(int elements, Type type) {
  const int bytes = static_cast<int>(ptx::bytes_of(type));
  return elements * bytes / std::max(4, bytes);
}

void add_registers(Decoding& decoding, size_t operand, int count, Type type, bool target,
                   std::vector<Arg>& args) {
  const auto& elements =
      decoding.elements(decoding.instruction->operands.at(operand), static_cast<size_t>(count));
  for (const ptx::Operand& element : elements)
    args.push_back(target ? decoding.target(element, register_type(type))
                          : decoding.source(element, register_type(type)));
}

Op decode_mma(Decoding& decoding) {
  refuse_other_kinds(decoding);
  Modifiers modifiers(*decoding.instruction);
  if (!modifiers.take("sync") || !modifiers.take("aligned"))
    decoding.fail("mma needs .sync.aligned");
  auto shape = std::make_shared<Shape>();
  const std::string shape_name(modifiers.peek());
  modifiers.take(shape_name);
  const int a_layout = modifiers.take_one({"row", "col"});
  const int b_layout = modifiers.take_one({"row", "col"});
  if (a_layout < 0 || b_layout < 0) decoding.fail("mma needs the layouts of A and B");
  shape->saturate = modifiers.take("satfinite");
  const Types types = read_types(modifiers);
  // The assembler takes it here too.
  if (!shape->saturate) shape->saturate = modifiers.take("satfinite");
  modifiers.end();

  const Form& form = form_for(decoding, shape_name, types.a);
  const bool quads = form.type == Type::f16 && form.k == 4;
  if (!types_agree(types, quads)) decoding.fail("mma does not combine these types");
  if (shape->saturate && !is_integer(types.a))
    decoding.fail(".satfinite is for integer matrix products");
  if (!quads && (a_layout != 0 || b_layout != 1))
    decoding.fail("mma." + shape_name + " is for A by rows and B by columns alone: .row.col");
  shape->m = form.m;
  shape->k = form.k;
  shape->a_column = a_layout == 1;
  shape->b_row = b_layout == 0;
  const int products = quads ? 4 : 1;
  shape->flops = uint64_t(2) * form.m * kN * form.k * products;
  shape->d = registers_of(form.m * kN * products / kLanes, types.d);
  shape->a = registers_of(form.m * form.k * products / kLanes, types.a);
  shape->b = registers_of(kN * form.k * products / kLanes, types.b);
  shape->c = registers_of(form.m * kN * products / kLanes, types.c);
  shape->name = shape_name;
  for (Type type : {types.d, types.a, types.b, types.c})
    shape->name += "." + std::string(ptx::name_of(type));

  decoding.expect_operands(4);
  std::vector<Arg> args;
  add_registers(decoding, 0, shape->d, types.d, true, args);
  add_registers(decoding, 1, shape->a, types.a, false, args);
  add_registers(decoding, 2, shape->b, types.b, false, args);
  add_registers(decoding, 3, shape->c, types.c, false, args);
  Op op = decoding.make(Class::mma, quads ? run_quads : run_for(types.a, types.b, types.d), args);
  op.flow = Flow::aligned;
  op.extra = decoding.keep(std::shared_ptr<const void>(shape));
  return op;
}

}  // namespace

void add_mma(Decoders& decoders) {
  decoders.add("mma", decode_mma);
  for (const char* opcode : {"wmma", "wgmma", "tcgen05"})
    decoders.add(opcode, [opcode](Decoding& decoding) -> Op {
      decoding.fail(std::string(opcode) + " instructions are not emulated");
      return {};
    });
}

}  // namespace emulator
