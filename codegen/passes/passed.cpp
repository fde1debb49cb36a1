#include "codegen/passes/passed.h"

#include "codegen/passes/cuda_passes.h"
#include "dsl/error.h"

namespace krait {

std::shared_ptr<PassedPrograms::Entry> PassedPrograms::entry(TileProgram program,
                                                             const CudaTarget& target) {
  const std::scoped_lock lock(mutex_);
  auto& named = entries_[program.name];
  for (const auto& known : named)
    if (known->before == program && known->target == target) return known;
  auto made = std::make_shared<Entry>();
  made->before = std::move(program);
  made->target = target;
  named.push_back(made);
  return made;
}

PassedPrograms::Passed PassedPrograms::get(TileProgram program, const CudaTarget& target) {
  const std::shared_ptr<Entry> found = entry(std::move(program), target);
  std::call_once(found->once, [&] {
    try {
      TileProgram after = found->before;
      for (const CudaPass& pass : cuda_passes()) pass.run(after, target);
      found->after = std::move(after);
    } catch (...) {
      found->error = std::current_exception();
    }
  });
  if (found->error) std::rethrow_exception(found->error);
  return {found->after, [found] {
            TileProgram program = found->before;
            run_passes(program, found->target, cuda_passes());
            KRAIT_ASSERT(program == found->after, "tile program ", program.name,
                         " becomes another where it is verified");
          }};
}

std::size_t PassedPrograms::size() const {
  const std::scoped_lock lock(mutex_);
  std::size_t count = 0;
  for (const auto& [name, entries] : entries_) count += entries.size();
  return count;
}

}  // namespace krait
