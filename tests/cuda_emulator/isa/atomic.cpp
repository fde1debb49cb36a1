// atom, red, membar, fence. Not handled: red.async, multimem.

#include <algorithm>

#include "tests/cuda_emulator/isa/atomic_updates.h"
#include "tests/cuda_emulator/isa/memory_forms.h"
#include "tests/cuda_emulator/isa/memory_values.h"
#include "tests/cuda_emulator/machine/block.h"
#include "tests/cuda_emulator/machine/spaces.h"

namespace emulator {
namespace {

using ptx::Space;
using ptx::Type;

// Args: results (none for red), the base of the address, b of every element, c.
struct Form {
  Access access;
  Type type = Type::b32;
  unsigned element = 4, count = 1;
  unsigned results = 0;  // 0: red, or the result goes nowhere
  bool ignores_old = false, compares = false;
  Element global = nullptr, shared = nullptr;
};

struct Context {
  const Form* form;
  const uint64_t* address;
  alignas(16) std::byte b[16 * kLanes], c[16 * kLanes];
  uint8_t defined[16 * kLanes];
};

bool update(const void* context, int lane, const std::byte* old, std::byte* fresh) {
  const auto& all = *static_cast<const Context*>(context);
  const Form& form = *all.form;
  const unsigned bytes = form.access.bytes;
  const bool shared =
      form.access.space == Space::shared ||
      (form.access.space == Space::generic && space_of(all.address[lane]) == Space::shared);
  const Element element = shared ? form.shared : form.global;
  bool stores = false;
  for (unsigned at = 0; at < bytes; at += form.element)
    stores = element(old + at, all.b + lane * bytes + at, all.c + lane * bytes + at, fresh + at);
  return stores;
}

// Operands of all lanes, which must be defined.
void take_operands(Warp& warp, const Op& op, Mask lanes, const Form& form, unsigned first,
                   std::byte* to, uint8_t* defined) {
  const unsigned bytes = form.access.bytes;
  for (unsigned i = 0; i < form.count; ++i)
    from_register(warp.registers, op.args[first + i], form.element, form.element, lanes,
                  to + i * form.element, defined + i * form.element, bytes);
  for (Mask rest = lanes; rest; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint8_t* own = defined + lane * bytes;
    if (std::any_of(own, own + bytes, [](uint8_t byte) { return byte != 0xff; }))
      fail(warp, op, lane, Fault::undefined, "an operand of an atomic operation is undefined");
  }
}

void run_atomic(Warp& warp, const Op& op, Mask lanes) {
  const Form& form = *static_cast<const Form*>(op.extra);
  Context context;
  uint64_t address[kLanes];
  context.form = &form;
  context.address = address;
  const unsigned base = form.results;
  addresses(warp, op, lanes, op.args[base], op.imm[0], address);
  take_operands(warp, op, lanes, form, base + 1, context.b, context.defined);
  if (form.compares)
    take_operands(warp, op, lanes, form, base + 1 + form.count, context.c, context.defined);
  Access access = form.access;
  access.lanes = lanes;
  access.address = address;
  alignas(16) std::byte old[16 * kLanes];
  atomic(warp, op, access, form.ignores_old, &context, update, old);
  if (form.results == 0) return;
  static const auto defined = [] {
    std::array<uint8_t, 16 * kLanes> all;
    all.fill(0xff);
    return all;
  }();
  for (unsigned i = 0; i < form.count; ++i)
    to_register(warp.registers, op.args[i], form.element, form.element, false, lanes,
                old + i * form.element, defined.data(), access.bytes);
}

// Everything but the operands. Modifiers come in the order of the ISA's syntax, in that of its
// examples, where the type and the vector precede the operation, or as NVRTC writes them: with the
// scope behind the space, or semantics and scope behind the operation (cuda::atomic).
Form form_of(Decoding& decoding, bool returns, bool* policy) {
  Modifiers modifiers(*decoding.instruction);
  Form form;
  form.access.order = {Semantics::relaxed, Scope::gpu};
  int semantics = -1, scope = -1;
  const auto take_semantics = [&] {
    if (semantics >= 0) return false;
    semantics = modifiers.take_one({"relaxed", "acquire", "release", "acq_rel"});
    if (semantics >= 0) form.access.order.semantics = static_cast<Semantics>(semantics + 1);
    return semantics >= 0;
  };
  const auto take_its_scope = [&] {
    if (scope >= 0) return false;
    scope = take_scope(modifiers);
    if (scope >= 0) form.access.order.scope = static_cast<Scope>(scope);
    return scope >= 0;
  };
  take_semantics();
  take_its_scope();
  form.access.space = take_space(modifiers);
  if (form.access.space != Space::generic && form.access.space != Space::global &&
      form.access.space != Space::shared)
    decoding.fail("atomic operations are for shared and global memory");
  take_its_scope();
  int operation = -1;
  bool typed = false, noftz = false;
  *policy = false;
  while (modifiers.more()) {
    if (const int found = modifiers.take_one(
            {"add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas"});
        found >= 0) {
      if (operation >= 0) decoding.fail("two operations");
      operation = found;
    } else if (modifiers.take("noftz")) {
      noftz = true;
    } else if (operation >= 0 && (take_semantics() || take_its_scope())) {
      continue;
    } else if (modifiers.take("L2::cache_hint")) {
      *policy = true;
    } else if (const unsigned count = take_vector(modifiers); count > 1) {
      form.count = count;
    } else {
      if (typed) decoding.fail("." + std::string(modifiers.peek()) + " is not handled here");
      form.type = modifiers.type();
      typed = true;
    }
  }
  if (!returns && (semantics == 1 || semantics == 3)) decoding.fail("red is .relaxed or .release");
  if (operation < 0 || !typed) decoding.fail("an operation and a type are needed");
  const auto which = static_cast<Atomic>(operation);
  const bool halves = form.type == Type::f16 || form.type == Type::bf16 ||
                      form.type == Type::f16x2 || form.type == Type::bf16x2;
  form.global = element_of(which, form.type, true);
  form.shared = element_of(which, form.type, false);
  if (!form.global) decoding.fail("there is no such operation on this type");
  if (!returns && (which == Atomic::exch || which == Atomic::cas))
    decoding.fail("red cannot exchange");
  if (halves != noftz) decoding.fail(".noftz belongs to the 16-bit types, and they need it");
  if (halves && which != Atomic::add && form.count == 1)
    decoding.fail("min and max of these types are for vectors");
  form.element = ptx::bytes_of(form.type);
  form.access.bytes = form.access.alignment = form.element * form.count;
  if (form.count > 1) {
    if (!halves && form.type != Type::f32) decoding.fail("no vectors of this type");
    if (form.access.bytes > 16 || form.access.space == Space::shared)
      decoding.fail("vectors are of up to 16 bytes in global memory");
    if (decoding.architecture() < 90) decoding.fail("vectors need sm_90 or later");
  }
  form.compares = form.access.compares = which == Atomic::cas;
  form.ignores_old = which == Atomic::exch;
  return form;
}

Op decode(Decoding& decoding, bool returns) {
  bool policy = false;
  Form form = form_of(decoding, returns, &policy);
  const auto& operands = decoding.instruction->operands;
  decoding.expect_operands((returns ? 1 : 0) + 2 + (form.compares ? 1 : 0) + (policy ? 1 : 0));
  size_t next = 0;
  std::vector<Arg> args;
  const auto each = [&](const ptx::Operand& operand, auto&& take) {
    if (form.count == 1) return take(operand);
    for (const auto& element : decoding.elements(operand, form.count)) take(element);
  };
  if (returns) {
    const ptx::Operand& result = operands[next++];
    if (result.kind != ptx::Operand::Kind::sink) {
      form.results = form.count;
      each(result, [&](const ptx::Operand& element) {
        args.push_back(decoding.target(element, form.type, false, form.count > 1));
      });
    }
  }
  const auto address = decoding.address(operands[next++], form.access.space);
  args.push_back(address.base);
  for (int i = 0; i < (form.compares ? 2 : 1); ++i)
    each(operands[next++],
         [&](const ptx::Operand& element) { args.push_back(decoding.source(element, form.type)); });
  if (policy) decoding.source(operands[next], Type::b64);
  Op op = decoding.make(Class::atomic, run_atomic, args);
  op.imm[0] = address.offset;
  op.extra = decoding.keep(std::make_shared<const Form>(form));
  return op;
}

void run_fence(Warp& warp, const Op& op, Mask lanes) {
  fence(warp, op, lanes, {static_cast<Semantics>(op.mode[0]), static_cast<Scope>(op.mode[1])});
}

Op make_fence(Decoding& decoding, Modifiers& modifiers, Semantics semantics, Scope scope) {
  modifiers.end();
  decoding.expect_operands(0);
  Op op = decoding.make(Class::fence, run_fence, {});
  op.mode[0] = static_cast<uint32_t>(semantics);
  op.mode[1] = static_cast<uint32_t>(scope);
  return op;
}

void run_nothing(Warp&, const Op&, Mask) {}

// Fences between proxies. There is one way to memory here, so those without a semantics of their
// own do nothing.
Op decode_proxy(Decoding& decoding, Modifiers& modifiers) {
  size_t operands = 0;
  int acquires = -1;
  Scope scope = Scope::cluster;
  if (modifiers.take("tensormap::generic")) {
    acquires = modifiers.take_one({"release", "acquire"});
    if (acquires < 0) decoding.fail(".release or .acquire must follow");
    scope = scope_that_follows(decoding, modifiers);
    operands = acquires ? 2 : 0;
  } else if (modifiers.take("async::generic")) {
    acquires = modifiers.take_one({"release", "acquire"});
    if (acquires < 0 ||
        !modifiers.take(acquires ? "sync_restrict::shared::cluster"
                                 : "sync_restrict::shared::cta") ||
        !modifiers.take("cluster"))
      decoding.fail("no such fence between proxies");
  } else if (modifiers.take("async")) {
    modifiers.take_one({"global", "shared::cta", "shared::cluster"});
  } else if (!modifiers.take("alias")) {
    decoding.fail("no such proxy");
  }
  modifiers.end();
  decoding.expect_operands(operands);
  std::vector<Arg> args;
  if (operands) {
    args.push_back(decoding.address(decoding.instruction->operands[0], Space::generic).base);
    if (decoding.literal(1) != 128) decoding.fail("the size must be 128");
  }
  Op op = decoding.make(Class::fence, acquires < 0 ? run_nothing : run_fence, args);
  op.mode[0] = static_cast<uint32_t>(acquires == 1 ? Semantics::acquire : Semantics::release);
  op.mode[1] = static_cast<uint32_t>(scope);
  return op;
}

Op decode_fence(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (modifiers.take("proxy")) return decode_proxy(decoding, modifiers);
  if (modifiers.take("mbarrier_init")) {
    if (!modifiers.take("release") || !modifiers.take("cluster"))
      decoding.fail("this fence has the form fence.mbarrier_init.release.cluster");
    return make_fence(decoding, modifiers, Semantics::release, Scope::cluster);
  }
  const int which = modifiers.take_one({"acq_rel", "sc", "acquire", "release"});
  const Semantics semantics = which == 2   ? Semantics::acquire
                              : which == 3 ? Semantics::release
                                           : Semantics::acq_rel;
  if (which >= 2)  // of shared memory alone, which is ordered no less by the whole fence
    modifiers.take(which == 2 ? "sync_restrict::shared::cluster" : "sync_restrict::shared::cta");
  return make_fence(decoding, modifiers, semantics, scope_that_follows(decoding, modifiers));
}

Op decode_membar(Decoding& decoding) {
  Modifiers modifiers(*decoding.instruction);
  if (modifiers.take("proxy")) return decode_proxy(decoding, modifiers);
  const int level = modifiers.take_one({"cta", "gl", "sys"});
  if (level < 0) decoding.fail("a level must follow: .cta, .gl or .sys");
  return make_fence(decoding, modifiers, Semantics::acq_rel, level == 0 ? Scope::cta : Scope::gpu);
}

}  // namespace

void add_atomic(Decoders& decoders) {
  decoders.add("atom", [](Decoding& decoding) { return decode(decoding, true); });
  decoders.add("red", [](Decoding& decoding) { return decode(decoding, false); });
  decoders.add("fence", decode_fence);
  decoders.add("membar", decode_membar);
}

}  // namespace emulator
