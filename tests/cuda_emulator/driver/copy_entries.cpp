// Entry points of copies and memsets. Those with _ptds use the thread's own default stream where
// the plain ones use the legacy one, those with _ptsz where they get the null stream.

#include "tests/cuda_emulator/driver/copies.h"
#include "tests/cuda_emulator/driver/per_thread.h"

using namespace emulator::driver;

namespace {

constexpr CUstream kLegacy = nullptr;

uint64_t number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

CUresult copy_2d(const char* name, const CUDA_MEMCPY2D* given, CUstream stream, bool synchronous) {
  if (!given) return entry(name, [](Call&) { fail(); });
  return copy(name, flat(*given), stream, synchronous);
}

CUresult copy_3d(const char* name, const CUDA_MEMCPY3D* given, CUstream stream, bool synchronous) {
  if (!given || given->srcLOD || given->dstLOD || given->reserved0 || given->reserved1)
    return entry(name, [](Call&) { fail(); });
  return copy(name, *given, stream, synchronous);
}

// There is one device: what its contexts share is copied as within one.
CUresult copy_peer(const char* name, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                   CUcontext from_context, size_t bytes, CUstream stream, bool synchronous) {
  return copy(name, flat(Kind::device, to, Kind::device, from, bytes), stream, synchronous,
              [&](Call& call) {
                call.driver.contexts.at(to_context, CUDA_ERROR_INVALID_CONTEXT);
                call.driver.contexts.at(from_context, CUDA_ERROR_INVALID_CONTEXT);
              });
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return copy("cuMemcpy", flat(Kind::unified, dst, Kind::unified, src, ByteCount), kLegacy, true);
}

CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return copy("cuMemcpy", flat(Kind::unified, dst, Kind::unified, src, ByteCount),
              CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return copy("cuMemcpyAsync", flat(Kind::unified, dst, Kind::unified, src, ByteCount), hStream,
              false);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return copy("cuMemcpyAsync", flat(Kind::unified, dst, Kind::unified, src, ByteCount),
              per_thread(hStream), false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return copy("cuMemcpyHtoD", flat(Kind::device, dstDevice, Kind::host, number(srcHost), ByteCount),
              kLegacy, true);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return copy("cuMemcpyHtoD", flat(Kind::device, dstDevice, Kind::host, number(srcHost), ByteCount),
              CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                              CUstream hStream) {
  return copy("cuMemcpyHtoDAsync",
              flat(Kind::device, dstDevice, Kind::host, number(srcHost), ByteCount), hStream,
              false);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                                   CUstream hStream) {
  return copy("cuMemcpyHtoDAsync",
              flat(Kind::device, dstDevice, Kind::host, number(srcHost), ByteCount),
              per_thread(hStream), false);
}

CUresult cuMemcpyDtoH_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return copy("cuMemcpyDtoH", flat(Kind::host, number(dstHost), Kind::device, srcDevice, ByteCount),
              kLegacy, true);
}

CUresult cuMemcpyDtoH_v2_ptds(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return copy("cuMemcpyDtoH", flat(Kind::host, number(dstHost), Kind::device, srcDevice, ByteCount),
              CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoHAsync_v2(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
  return copy("cuMemcpyDtoHAsync",
              flat(Kind::host, number(dstHost), Kind::device, srcDevice, ByteCount), hStream,
              false);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                                   CUstream hStream) {
  return copy("cuMemcpyDtoHAsync",
              flat(Kind::host, number(dstHost), Kind::device, srcDevice, ByteCount),
              per_thread(hStream), false);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return copy("cuMemcpyDtoD", flat(Kind::device, dstDevice, Kind::device, srcDevice, ByteCount),
              kLegacy, true);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return copy("cuMemcpyDtoD", flat(Kind::device, dstDevice, Kind::device, srcDevice, ByteCount),
              CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                              CUstream hStream) {
  return copy("cuMemcpyDtoDAsync",
              flat(Kind::device, dstDevice, Kind::device, srcDevice, ByteCount), hStream, false);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                                   CUstream hStream) {
  return copy("cuMemcpyDtoDAsync",
              flat(Kind::device, dstDevice, Kind::device, srcDevice, ByteCount),
              per_thread(hStream), false);
}

CUresult cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                      CUcontext srcContext, size_t ByteCount) {
  return copy_peer("cuMemcpyPeer", dstDevice, dstContext, srcDevice, srcContext, ByteCount, kLegacy,
                   true);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                           CUcontext srcContext, size_t ByteCount) {
  return copy_peer("cuMemcpyPeer", dstDevice, dstContext, srcDevice, srcContext, ByteCount,
                   CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                           CUcontext srcContext, size_t ByteCount, CUstream hStream) {
  return copy_peer("cuMemcpyPeerAsync", dstDevice, dstContext, srcDevice, srcContext, ByteCount,
                   hStream, false);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
                                CUcontext srcContext, size_t ByteCount, CUstream hStream) {
  return copy_peer("cuMemcpyPeerAsync", dstDevice, dstContext, srcDevice, srcContext, ByteCount,
                   per_thread(hStream), false);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* pCopy) {
  return copy_2d("cuMemcpy2D", pCopy, kLegacy, true);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* pCopy) {
  return copy_2d("cuMemcpy2D", pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return copy_2d("cuMemcpy2DAsync", pCopy, hStream, false);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return copy_2d("cuMemcpy2DAsync", pCopy, per_thread(hStream), false);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* pCopy) {
  return copy_2d("cuMemcpy2DUnaligned", pCopy, kLegacy, true);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* pCopy) {
  return copy_2d("cuMemcpy2DUnaligned", pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* pCopy) {
  return copy_3d("cuMemcpy3D", pCopy, kLegacy, true);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* pCopy) {
  return copy_3d("cuMemcpy3D", pCopy, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return copy_3d("cuMemcpy3DAsync", pCopy, hStream, false);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* pCopy, CUstream hStream) {
  return copy_3d("cuMemcpy3DAsync", pCopy, per_thread(hStream), false);
}

CUresult cuMemsetD8_v2(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill("cuMemsetD8", dstDevice, 0, uc, 1, N, 1, kLegacy, true);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill("cuMemsetD8", dstDevice, 0, uc, 1, N, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return fill("cuMemsetD8Async", dstDevice, 0, uc, 1, N, 1, hStream, false);
}

CUresult cuMemsetD8Async_ptsz(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return fill("cuMemsetD8Async", dstDevice, 0, uc, 1, N, 1, per_thread(hStream), false);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                         size_t Height) {
  return fill("cuMemsetD2D8", dstDevice, dstPitch, uc, 1, Width, Height, kLegacy, true);
}

CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                              size_t Width, size_t Height) {
  return fill("cuMemsetD2D8", dstDevice, dstPitch, uc, 1, Width, Height, CU_STREAM_PER_THREAD,
              true);
}

CUresult cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width,
                           size_t Height, CUstream hStream) {
  return fill("cuMemsetD2D8Async", dstDevice, dstPitch, uc, 1, Width, Height, hStream, false);
}

CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc,
                                size_t Width, size_t Height, CUstream hStream) {
  return fill("cuMemsetD2D8Async", dstDevice, dstPitch, uc, 1, Width, Height, per_thread(hStream),
              false);
}

CUresult cuMemsetD16_v2(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return fill("cuMemsetD16", dstDevice, 0, us, 2, N, 1, kLegacy, true);
}

CUresult cuMemsetD16_v2_ptds(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return fill("cuMemsetD16", dstDevice, 0, us, 2, N, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return fill("cuMemsetD16Async", dstDevice, 0, us, 2, N, 1, hStream, false);
}

CUresult cuMemsetD16Async_ptsz(CUdeviceptr dstDevice, unsigned short us, size_t N,
                               CUstream hStream) {
  return fill("cuMemsetD16Async", dstDevice, 0, us, 2, N, 1, per_thread(hStream), false);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                          size_t Height) {
  return fill("cuMemsetD2D16", dstDevice, dstPitch, us, 2, Width, Height, kLegacy, true);
}

CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                               size_t Width, size_t Height) {
  return fill("cuMemsetD2D16", dstDevice, dstPitch, us, 2, Width, Height, CU_STREAM_PER_THREAD,
              true);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width,
                            size_t Height, CUstream hStream) {
  return fill("cuMemsetD2D16Async", dstDevice, dstPitch, us, 2, Width, Height, hStream, false);
}

CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us,
                                 size_t Width, size_t Height, CUstream hStream) {
  return fill("cuMemsetD2D16Async", dstDevice, dstPitch, us, 2, Width, Height, per_thread(hStream),
              false);
}

CUresult cuMemsetD32_v2(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill("cuMemsetD32", dstDevice, 0, ui, 4, N, 1, kLegacy, true);
}

CUresult cuMemsetD32_v2_ptds(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill("cuMemsetD32", dstDevice, 0, ui, 4, N, 1, CU_STREAM_PER_THREAD, true);
}

CUresult cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return fill("cuMemsetD32Async", dstDevice, 0, ui, 4, N, 1, hStream, false);
}

CUresult cuMemsetD32Async_ptsz(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return fill("cuMemsetD32Async", dstDevice, 0, ui, 4, N, 1, per_thread(hStream), false);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                          size_t Height) {
  return fill("cuMemsetD2D32", dstDevice, dstPitch, ui, 4, Width, Height, kLegacy, true);
}

CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                               size_t Width, size_t Height) {
  return fill("cuMemsetD2D32", dstDevice, dstPitch, ui, 4, Width, Height, CU_STREAM_PER_THREAD,
              true);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width,
                            size_t Height, CUstream hStream) {
  return fill("cuMemsetD2D32Async", dstDevice, dstPitch, ui, 4, Width, Height, hStream, false);
}

CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui,
                                 size_t Width, size_t Height, CUstream hStream) {
  return fill("cuMemsetD2D32Async", dstDevice, dstPitch, ui, 4, Width, Height, per_thread(hStream),
              false);
}
