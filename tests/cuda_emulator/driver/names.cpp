// Entry points by name.

#include "tests/cuda_emulator/driver/names.h"

#include <cctype>
#include <string_view>

#include "tests/cuda_emulator/driver/driver.h"

using namespace emulator::driver;

namespace emulator::driver {

std::string plain_name(std::string name) {
  for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  const size_t size = name.size();
  if (size > 3 && name[size - 3] == '_' && name[size - 2] == 'v' &&
      std::isdigit(static_cast<unsigned char>(name[size - 1])))
    name.resize(size - 3);
  return name;
}

namespace {

// The newest entry that the version has; of the thread's form where it is wanted and there is one.
CUdriverProcAddressQueryResult look_up(std::string_view symbol, int version, bool per_thread,
                                       void** address) {
  *address = nullptr;
  bool known = false;
  int newest = 0;
  bool own = false;
  for (const NamedEntry& entry : named_entries()) {
    if (symbol != entry.name) continue;
    known = true;
    if (entry.version > version || (entry.per_thread && !per_thread)) continue;
    if (entry.per_thread < own || (entry.per_thread == own && entry.version < newest)) continue;
    newest = entry.version;
    own = entry.per_thread;
    *address = entry.address;
  }
  return *address ? CU_GET_PROC_ADDRESS_SUCCESS
         : known  ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                  : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

CUdriverProcAddressQueryResult checked_look_up(const char* symbol, void** pfn, int version,
                                               cuuint64_t flags) {
  require(symbol && pfn && version <= CUDA_VERSION);
  require(flags == CU_GET_PROC_ADDRESS_DEFAULT || flags == CU_GET_PROC_ADDRESS_LEGACY_STREAM ||
          flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  return look_up(symbol, version, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, pfn);
}

}  // namespace
}  // namespace emulator::driver

CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  return entry(
      "cuGetProcAddress",
      [&](Call&) {
        const auto found = checked_look_up(symbol, pfn, cudaVersion, flags);
        require(found == CU_GET_PROC_ADDRESS_SUCCESS, CUDA_ERROR_NOT_FOUND);
      },
      false);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* symbolStatus) {
  return entry(
      "cuGetProcAddress",
      [&](Call&) {
        const auto found = checked_look_up(symbol, pfn, cudaVersion, flags);
        if (symbolStatus) *symbolStatus = found;
      },
      false);
}

// Tables that are not documented, which NVIDIA's libraries ask for; NVRTC 13 does without.
CUresult cuGetExportTable(const void** ppExportTable, const CUuuid* pExportTableId) {
  return entry(
      "cuGetExportTable",
      [&](Call&) {
        require(ppExportTable && pExportTableId);
        *ppExportTable = nullptr;
        require(false, CUDA_ERROR_NOT_SUPPORTED);
      },
      false);
}
