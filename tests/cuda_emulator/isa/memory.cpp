// ld, ldu, st, prefetch, prefetchu, applypriority, discard, createpolicy. Hints to caches (cache
// operators, eviction priorities, prefetch sizes, policies) are checked for their form and have no
// effect.

#include "tests/cuda_emulator/isa/memory_forms.h"
#include "tests/cuda_emulator/isa/memory_values.h"
#include "tests/cuda_emulator/machine/block.h"

namespace emulator {

using ptx::Space;
using ptx::Type;

Space take_space(Modifiers& modifiers) {
  static constexpr Space spaces[] = {Space::global, Space::shared, Space::shared,
                                     Space::shared, Space::local,  Space::constant,
                                     Space::param,  Space::param,  Space::param};
  const int i = modifiers.take_one({"global", "shared", "shared::cta", "shared::cluster", "local",
                                    "const", "param", "param::entry", "param::func"});
  return i < 0 ? Space::generic : spaces[i];
}

bool take_hints(Modifiers& modifiers, bool prefetch) {
  modifiers.take_one({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
                      "L1::evict_last", "L1::no_allocate"});
  modifiers.take_one({"L2::evict_normal", "L2::evict_first", "L2::evict_last"});
  const bool policy = modifiers.take("L2::cache_hint");
  if (prefetch) modifiers.take_one({"L2::64B", "L2::128B", "L2::256B"});
  return policy;
}

namespace {

constexpr auto kTypes = {Type::b8,  Type::b16, Type::b32, Type::b64, Type::b128,
                         Type::u8,  Type::u16, Type::u32, Type::u64, Type::s8,
                         Type::s16, Type::s32, Type::s64, Type::f32, Type::f64};

// What ld and st do beside their args, which are the values and the base of the address.
struct Form {
  Access access;           // its space, bytes, alignment and order
  unsigned element = 4;    // bytes of a value in memory
  unsigned count = 1;      // values
  bool sign = false;       // a wider register is filled with copies of the sign
  uint8_t widths[8] = {};  // bytes of the registers
};

void run_load(Warp& warp, const Op& op, Mask lanes) {
  const Form& form = *static_cast<const Form*>(op.extra);
  alignas(64) std::byte data[32 * kLanes];
  alignas(64) uint8_t defined[32 * kLanes];
  uint64_t address[kLanes];
  addresses(warp, op, lanes, op.args[form.count], op.imm[0], address);
  Access access = form.access;
  access.lanes = lanes;
  access.address = address;
  load(warp, op, access, data, defined);
  for (unsigned i = 0; i < form.count; ++i) {
    const unsigned at = i * form.element;
    to_register(warp.registers, op.args[i], form.element, form.widths[i], form.sign, lanes,
                data + at, defined + at, access.bytes);
  }
}

void run_store(Warp& warp, const Op& op, Mask lanes) {
  const Form& form = *static_cast<const Form*>(op.extra);
  alignas(64) std::byte data[32 * kLanes];
  alignas(64) uint8_t defined[32 * kLanes];
  uint64_t address[kLanes];
  addresses(warp, op, lanes, op.args[form.count], op.imm[0], address);
  Access access = form.access;
  access.lanes = lanes;
  access.address = address;
  for (unsigned i = 0; i < form.count; ++i) {
    const unsigned at = i * form.element;
    from_register(warp.registers, op.args[i], form.element, form.widths[i], lanes, data + at,
                  defined + at, access.bytes);
  }
  store(warp, op, access, data, defined);
}

Class class_of(Space space, bool loads) {
  switch (space) {
    case Space::global: return loads ? Class::load_global : Class::store_global;
    case Space::shared: return loads ? Class::load_shared : Class::store_shared;
    case Space::local: return loads ? Class::load_local : Class::store_local;
    case Space::constant: return Class::load_constant;
    case Space::param: return loads ? Class::load_param : Class::store_param;
    default: return loads ? Class::load_generic : Class::store_generic;
  }
}

void run_nothing(Warp&, const Op&, Mask) {}

// The operands of a load or store, whose modifiers but for the vector and the type were taken.
Op with_values(Decoding& decoding, Modifiers& modifiers, Form form, bool loads, bool policy) {
  form.count = take_vector(modifiers);
  const Type type = modifiers.type(kTypes);
  modifiers.end();
  form.element = ptx::bytes_of(type);
  form.sign = ptx::is_signed(type);
  form.access.bytes = form.access.alignment = form.element * form.count;
  if (form.access.bytes > 32 || (form.count == 8 && form.element != 4))
    decoding.fail("no such vector of this type");
  const bool global = form.access.space == Space::global || form.access.space == Space::generic;
  if (form.access.bytes == 32 && (!global || type == Type::b128))
    decoding.fail("vectors of 32 bytes are for global memory, eight 4-byte or four 8-byte values");
  if (form.access.bytes == 32 && decoding.architecture() < 100)
    decoding.fail("vectors of 32 bytes need sm_100 or later");
  const size_t operands = policy ? 3 : 2;
  decoding.expect_operands(operands);
  const auto& all = decoding.instruction->operands;
  const ptx::Operand& value = all[loads ? 0 : 1];
  const bool list = form.count > 1 || value.kind == ptx::Operand::Kind::vector;
  std::vector<ptx::Operand> values =
      list ? decoding.elements(value, form.count) : std::vector<ptx::Operand>{value};
  std::vector<Arg> args;
  for (unsigned i = 0; i < form.count; ++i) {
    const Type held = decoding.register_type(values[i]);
    form.widths[i] = static_cast<uint8_t>(held == Type::none ? form.element : ptx::bytes_of(held));
    args.push_back(loads ? decoding.target(values[i], type, true, form.count > 1)
                         : decoding.source(values[i], type, true));
  }
  const auto address = decoding.address(all[loads ? 1 : 0], form.access.space);
  args.push_back(address.base);
  if (policy) decoding.source(2, Type::b64);
  Op op = decoding.make(class_of(form.access.space, loads), loads ? run_load : run_store, args);
  op.imm[0] = address.offset;
  op.extra = decoding.keep(std::make_shared<const Form>(form));
  return op;
}

Op decode_ld(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  Form form;
  bool written = false;
  form.access.order = take_order(decoding, modifiers, "acquire", Semantics::acquire, &written);
  form.access.space = take_space(modifiers);
  const bool weak = form.access.order.semantics == Semantics::weak;
  if (weak) modifiers.take_one({"ca", "cg", "cs", "lu", "cv"});
  bool constant = modifiers.take("nc");
  const bool policy = take_hints(modifiers, true);
  constant = constant || modifiers.take("nc");
  if (constant && (written || form.access.space != Space::global))
    decoding.fail(".nc is for weak loads of global memory");
  return with_values(decoding, modifiers, form, true, policy);
}

Op decode_ldu(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  Form form;
  form.access.space = take_space(modifiers);
  if (form.access.space != Space::global && form.access.space != Space::generic)
    decoding.fail("ldu is for global memory");
  return with_values(decoding, modifiers, form, true, false);
}

Op decode_st(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  Form form;
  form.access.order = take_order(decoding, modifiers, "release", Semantics::release);
  form.access.space = take_space(modifiers);
  if (form.access.space == Space::constant) decoding.fail("constant memory cannot be written");
  if (form.access.order.semantics == Semantics::weak) modifiers.take_one({"wb", "cg", "cs", "wt"});
  const bool policy = take_hints(modifiers, false);
  return with_values(decoding, modifiers, form, false, policy);
}

// prefetch of a cache line: nothing that could be seen.
Op decode_prefetch(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Space space = take_space(modifiers);
  if (space != Space::generic && space != Space::global && space != Space::local)
    decoding.fail("prefetch is for global and local memory");
  if (modifiers.take_one({"L1", "L2", "L2::evict_last", "L2::evict_normal"}) < 0)
    decoding.fail("a cache level must follow: .L1, .L2, .L2::evict_last or .L2::evict_normal");
  modifiers.end();
  decoding.expect_operands(1);
  return decoding.make(Class::other, run_nothing,
                       {decoding.address(decoding.instruction->operands[0], space).base});
}

Op decode_prefetchu(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (!modifiers.take("L1")) decoding.fail("prefetchu has the form prefetchu.L1");
  modifiers.end();
  decoding.expect_operands(1);
  return decoding.make(Class::other, run_nothing,
                       {decoding.address(decoding.instruction->operands[0], Space::generic).base});
}

// applypriority and discard: [a], 128.
Op with_line(Decoding& decoding, Modifiers& modifiers, Space space,
             void (*run)(Warp&, const Op&, Mask)) {
  modifiers.end();
  decoding.expect_operands(2);
  if (space != Space::generic && space != Space::global) decoding.fail("this is for global memory");
  if (decoding.literal(1) != 128) decoding.fail("the size must be 128");
  const auto address = decoding.address(decoding.instruction->operands[0], space);
  Op op = decoding.make(Class::other, run, {address.base});
  op.imm[0] = address.offset;
  op.mode[0] = static_cast<uint32_t>(space);
  return op;
}

Op decode_applypriority(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Space space = take_space(modifiers);
  if (!modifiers.take("L2::evict_normal")) decoding.fail("the priority must be .L2::evict_normal");
  return with_line(decoding, modifiers, space, run_nothing);
}

// The 128 bytes hold no value that one may rely on.
void run_discard(Warp& warp, const Op& op, Mask lanes) {
  static constexpr std::byte data[16 * kLanes] = {};
  static constexpr uint8_t defined[16 * kLanes] = {};
  uint64_t address[kLanes];
  addresses(warp, op, lanes, op.args[0], op.imm[0], address);
  Access access;
  access.space = static_cast<Space>(op.mode[0]);
  access.bytes = 16;
  access.alignment = 128;
  access.lanes = lanes;
  access.address = address;
  access.counted = false;
  access.keeps_undefined = true;
  for (unsigned done = 0; done < 128; done += 16) {
    store(warp, op, access, data, defined);
    access.alignment = 16;
    for (uint64_t& a : address) a += 16;
  }
}

Op decode_discard(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  const Space space = take_space(modifiers);
  if (!modifiers.take("L2")) decoding.fail("discard has the form discard.L2");
  return with_line(decoding, modifiers, space, run_discard);
}

// A cache policy is a number without meaning here.
void run_policy(Warp& warp, const Op& op, Mask lanes) {
  uint64_t* to = warp.registers.out<uint64_t>(op.args[0]);
  uint8_t* defined = warp.registers.defined_out(op.args[0]);
  each_lane(lanes, [&](int lane) {
    to[lane] = 0x12f0'0000'0000'0000;
    defined[lane] = 0xff;
  });
}

Op decode_createpolicy(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  std::vector<Arg> args;
  const auto priorities = {"L2::evict_last", "L2::evict_normal", "L2::evict_first",
                           "L2::evict_unchanged"};
  const int form = modifiers.take_one({"fractional", "range", "cvt"});
  if (form < 0) decoding.fail(".fractional, .range or .cvt must follow");
  if (form == 2) {
    if (!modifiers.take("L2")) decoding.fail("createpolicy.cvt.L2 is the only conversion");
    modifiers.type({Type::b64});
    decoding.expect_operands(2);
    args = {decoding.target(0, Type::b64), decoding.source(1, Type::b64)};
  } else {
    if (form == 1) modifiers.take("global");
    if (modifiers.take_one({*priorities.begin(), priorities.begin()[1], priorities.begin()[2],
                            priorities.begin()[3]}) < 0)
      decoding.fail("a priority must follow");
    modifiers.take_one({"L2::evict_first", "L2::evict_unchanged"});
    modifiers.type({Type::b64});
    decoding.expect_operands(form == 1 ? 4 : 1, form == 1 ? 4 : 2);
    args = {decoding.target(0, Type::b64)};
    if (form == 1) {
      args.push_back(decoding.address(decoding.instruction->operands[1], Space::global).base);
      args.push_back(decoding.source(2, Type::u32));
      args.push_back(decoding.source(3, Type::u32));
    } else if (decoding.instruction->operands.size() == 2) {
      args.push_back(decoding.source(1, Type::f32));
    }
  }
  modifiers.end();
  return decoding.make(Class::other, run_policy, args);
}

}  // namespace

void add_memory(Decoders& decoders) {
  decoders.add("ld", decode_ld);
  decoders.add("ldu", decode_ldu);
  decoders.add("st", decode_st);
  decoders.add("prefetch", decode_prefetch);
  decoders.add("prefetchu", decode_prefetchu);
  decoders.add("applypriority", decode_applypriority);
  decoders.add("discard", decode_discard);
  decoders.add("createpolicy", decode_createpolicy);
}

}  // namespace emulator
