// MapTile: all results of one point, or of one vector of points, before any is stored.
#include "codegen/llvm/kernel_emitter.h"

namespace krait {

void KernelEmitter::emit(const MapTile& s) {
  std::vector<Operand> operands, destinations;
  for (const Access& access : s.operands) operands.push_back(operand(access, s.domain));
  for (const Access& access : s.destinations) destinations.push_back(operand(access, s.domain));
  std::vector<const Operand*> reads, writes, all;
  for (const Operand& read : operands) reads.push_back(&read), all.push_back(&read);
  for (const Operand& write : destinations) writes.push_back(&write), all.push_back(&write);

  Nest points = nest(s.domain);
  merge(points, all, checked_vars(all, &s.positions));
  const int width = target_.lanes(size_in_bytes(computed_in(s.compute)));
  const int along = vector_variable(points, reads, writes, width, work_of(s.results));
  loops(points, outer_order(points, along, destinations[0]), [&] {
    vectors(points, along, width, 1, [&](const std::vector<Lanes>& lanes) {
      std::vector<Val> values = evaluate(s.results, operands, s.positions, s.compute, lanes[0]);
      for (std::size_t i = 0; i < values.size(); ++i) store(destinations[i], lanes[0], values[i]);
    });
  });
}

}  // namespace krait
