#include "runtime/cuda/decisions.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

#include "dsl/error.h"
#include "runtime/cache_key.h"

namespace krait {
namespace {

/// Bytes of the note that names the build of the program or library with this code in it, as the
/// linker wrote it; "" where there is none.
std::string build_id() {
  struct Sought {
    std::uintptr_t code;
    std::string id;
  } sought{reinterpret_cast<std::uintptr_t>(&build_id), ""};
  const auto look = [](dl_phdr_info* module, std::size_t, void* into) {
    auto& found = *static_cast<Sought*>(into);
    bool inside = false;
    for (int i = 0; i < module->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = module->dlpi_phdr[i];
      const std::uintptr_t begin = module->dlpi_addr + segment.p_vaddr;
      inside = inside || (segment.p_type == PT_LOAD && found.code >= begin &&
                          found.code < begin + segment.p_memsz);
    }
    for (int i = 0; inside && i < module->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = module->dlpi_phdr[i];
      if (segment.p_type != PT_NOTE) continue;
      const char* at = reinterpret_cast<const char*>(module->dlpi_addr + segment.p_vaddr);
      const char* const end = at + segment.p_memsz;
      const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
      while (at + sizeof(ElfW(Nhdr)) <= end) {
        ElfW(Nhdr) note;
        std::memcpy(&note, at, sizeof note);
        const char* const name = at + sizeof note;
        const char* const content = name + padded(note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            std::memcmp(name, "GNU", 4) == 0)
          found.id.assign(content, note.n_descsz);
        at = content + padded(note.n_descsz);
      }
    }
    return inside ? 1 : 0;
  };
  ::dl_iterate_phdr(look, &sought);
  return sought.id;
}

std::string listed(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += name + "\n";
  return all;
}

}  // namespace

std::string decision_key(const ScheduleRequest& request, const CudaTarget& cuda,
                         const std::vector<Schedule>& from) {
  const std::string build = build_id();
  if (build.empty()) return "";
  std::string schedules;
  for (const Schedule& schedule : from) schedules += to_text(schedule) + "\n";
  return cache_key(
      {{"search", "schedule"},
       {"build", build},
       {"graph", to_text(request.graph)},
       {"cotangents", listed(request.cotangents)},
       {"wanted", listed(request.wanted)},
       {"schedules", schedules},
       {"part",
        text(cuda.capability, " ", cuda.architecture, " ", cuda.shared_limit, " ",
             cuda.multiprocessor_shared, " ", cuda.reserved, " ", cuda.multiprocessor_threads, " ",
             cuda.multiprocessor_blocks, " ", cuda.multiprocessors, " ", cuda.warps, " ",
             cuda.fragment_registers, " ", cuda.stages, " ", cuda.stages_asked, " ", cuda.exact)}});
}

std::optional<Schedule> decided(DiskCache& memory, const std::string& key) {
  const std::optional<CacheEntry> entry = memory.load(key);
  if (!entry) return std::nullopt;
  return parse_schedule(entry->source);
}

void decide(DiskCache& memory, const std::string& key, const CudaTarget& cuda,
            const Schedule& schedule) {
  CacheEntry entry;
  entry.key = key;
  entry.meta = {{"name", "schedule"}, {"backend", "search"}, {"arch", cuda.architecture}};
  entry.source = to_text(schedule);
  memory.store(entry);
}

}  // namespace krait
