#include "schedules/plan.h"

#include "dsl/error.h"

namespace krait {

std::int64_t MemoryObject::bytes(const Sizes& sizes) const {
  std::int64_t product = size_in_bytes(dtype);
  for (const Axis& dim : dims)
    KRAIT_REQUIRE(!__builtin_mul_overflow(product, dim.extent.value(sizes), &product), "tensor ",
                  name, " has more bytes than 63 bits can count; allowed: smaller sizes");
  return product;
}

int Plan::find_object(MemoryObject::Kind kind, const std::string& name) const {
  for (std::size_t i = 0; i < objects.size(); ++i)
    if (objects[i].kind == kind && objects[i].name == name) return static_cast<int>(i);
  return -1;
}

bool is_maximum(const Graph& graph, Value value) {
  const auto* reduce = std::get_if<Reduce>(&graph.node(value.node).op);
  return reduce != nullptr && reduce->kind == Reduce::Kind::max;
}

}  // namespace krait
