#include "tests/cuda_emulator/ptx/names.h"

#include <array>
#include <charconv>
#include <unordered_map>

#include "tests/cuda_emulator/ptx/module.h"

namespace emulator::ptx {

namespace {

struct TypeInfo {
  Type type;
  std::string_view name;
  unsigned bytes;
};

// In the order of Type.
constexpr TypeInfo kTypes[] = {
    {Type::none, "", 0},         {Type::pred, "pred", 0},     {Type::b8, "b8", 1},
    {Type::b16, "b16", 2},       {Type::b32, "b32", 4},       {Type::b64, "b64", 8},
    {Type::b128, "b128", 16},    {Type::u8, "u8", 1},         {Type::u16, "u16", 2},
    {Type::u32, "u32", 4},       {Type::u64, "u64", 8},       {Type::s8, "s8", 1},
    {Type::s16, "s16", 2},       {Type::s32, "s32", 4},       {Type::s64, "s64", 8},
    {Type::f16, "f16", 2},       {Type::f16x2, "f16x2", 4},   {Type::bf16, "bf16", 2},
    {Type::bf16x2, "bf16x2", 4}, {Type::tf32, "tf32", 4},     {Type::f32, "f32", 4},
    {Type::f64, "f64", 8},       {Type::u16x2, "u16x2", 4},   {Type::s16x2, "s16x2", 4},
    {Type::e4m3, "e4m3", 1},     {Type::e5m2, "e5m2", 1},     {Type::e4m3x2, "e4m3x2", 2},
    {Type::e5m2x2, "e5m2x2", 2}, {Type::f32x2, "f32x2", 8},   {Type::e2m1x2, "e2m1x2", 1},
    {Type::e2m3x2, "e2m3x2", 2}, {Type::e3m2x2, "e3m2x2", 2}, {Type::ue8m0x2, "ue8m0x2", 2},
    {Type::e2m1x4, "e2m1x4", 2}, {Type::e2m3x4, "e2m3x4", 4}, {Type::e3m2x4, "e3m2x4", 4},
    {Type::e4m3x4, "e4m3x4", 4}, {Type::e5m2x4, "e5m2x4", 4}, {Type::s4, "s4", 0},
    {Type::u4, "u4", 0},         {Type::b1, "b1", 0},         {Type::e2m1, "e2m1", 0},
    {Type::e2m3, "e2m3", 1},     {Type::e3m2, "e3m2", 1},     {Type::ue8m0, "ue8m0", 1},
    {Type::ue4m3, "ue4m3", 1},
};

constexpr bool in_order() {
  for (unsigned i = 0; i < std::size(kTypes); ++i) {
    if (static_cast<unsigned>(kTypes[i].type) != i) return false;
  }
  return true;
}
static_assert(in_order() && static_cast<unsigned>(Type::ue4m3) + 1 == std::size(kTypes));

const std::unordered_map<std::string_view, Type>& types() {
  static const auto* map = [] {
    auto* made = new std::unordered_map<std::string_view, Type>;
    for (const TypeInfo& info : kTypes) {
      if (info.type != Type::none) made->emplace(info.name, info.type);
    }
    return made;
  }();
  return *map;
}

constexpr std::string_view kVectors[] = {
    "tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"};

constexpr std::string_view kScalars[] = {"laneid",
                                         "warpid",
                                         "nwarpid",
                                         "smid",
                                         "nsmid",
                                         "gridid",
                                         "is_explicit_cluster",
                                         "cluster_ctarank",
                                         "cluster_nctarank",
                                         "lanemask_eq",
                                         "lanemask_le",
                                         "lanemask_lt",
                                         "lanemask_ge",
                                         "lanemask_gt",
                                         "clock",
                                         "clock_hi",
                                         "clock64",
                                         "globaltimer",
                                         "globaltimer_lo",
                                         "globaltimer_hi",
                                         "reserved_smem_offset_begin",
                                         "reserved_smem_offset_end",
                                         "reserved_smem_offset_cap",
                                         "reserved_smem_offset_0",
                                         "reserved_smem_offset_1",
                                         "total_smem_size",
                                         "aggr_smem_size",
                                         "dynamic_smem_size",
                                         "current_graph_exec"};

// The number behind the prefix where the name is that and a number in its usual writing; -1.
int number_behind(std::string_view name, std::string_view prefix) {
  if (name.size() > prefix.size() + 2 || name.substr(0, prefix.size()) != prefix) return -1;
  name.remove_prefix(prefix.size());
  if (name.empty() || (name.size() > 1 && name[0] == '0')) return -1;
  int value = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  return error == std::errc() && end == name.data() + name.size() ? value : -1;
}

}  // namespace

Type type_named(std::string_view name) {
  const auto found = types().find(name);
  return found == types().end() ? Type::none : found->second;
}

std::string_view name_of(Type type) { return kTypes[static_cast<unsigned>(type)].name; }

unsigned bytes_of(Type type) { return kTypes[static_cast<unsigned>(type)].bytes; }

bool is_float(Type type) {
  switch (type) {
    case Type::f16:
    case Type::f16x2:
    case Type::bf16:
    case Type::bf16x2:
    case Type::tf32:
    case Type::f32:
    case Type::f32x2:
    case Type::f64: return true;
    default: return name_of(type).substr(0, 1) == "e" || name_of(type).substr(0, 2) == "ue";
  }
}

bool is_signed(Type type) { return name_of(type).substr(0, 1) == "s"; }

std::string_view name_of(Space space) {
  switch (space) {
    case Space::generic: return "generic";
    case Space::global: return "global";
    case Space::shared: return "shared";
    case Space::local: return "local";
    case Space::constant: return "const";
    case Space::param: return "param";
  }
  return "";
}

Special special_register(std::string_view name) {
  if (name.empty() || name[0] != '%') return Special::none;
  name.remove_prefix(1);
  for (std::string_view known : kVectors) {
    if (name == known) return Special::vector;
  }
  for (std::string_view known : kScalars) {
    if (name == known) return Special::scalar;
  }
  if (const int n = number_behind(name, "envreg"); n >= 0 && n < 32) return Special::scalar;
  if (name.size() > 3 && name.substr(name.size() - 3) == "_64") name.remove_suffix(3);
  if (const int n = number_behind(name, "pm"); n >= 0 && n < 8) return Special::scalar;
  return Special::none;
}

}  // namespace emulator::ptx
