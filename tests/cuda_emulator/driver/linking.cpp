// Linking of several images is not handled: the entry points say so.

#include "tests/cuda_emulator/driver/driver.h"

using namespace emulator::driver;

namespace {

CUresult not_supported(const char* name) {
  return entry(name, [](Call& call) {
    call.sound_context();
    fail(CUDA_ERROR_NOT_SUPPORTED);
  });
}

}  // namespace

CUresult cuLinkCreate_v2(unsigned int, CUjit_option*, void**, CUlinkState*) {
  return not_supported("cuLinkCreate");
}

CUresult cuLinkAddData_v2(CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned int,
                          CUjit_option*, void**) {
  return not_supported("cuLinkAddData");
}

CUresult cuLinkAddFile_v2(CUlinkState, CUjitInputType, const char*, unsigned int, CUjit_option*,
                          void**) {
  return not_supported("cuLinkAddFile");
}

CUresult cuLinkComplete(CUlinkState, void**, size_t*) { return not_supported("cuLinkComplete"); }

CUresult cuLinkDestroy(CUlinkState) { return not_supported("cuLinkDestroy"); }
