// The forms of entry points for which the null stream is the thread's own default stream.

#include "tests/cuda_emulator/driver/per_thread.h"

using namespace emulator::driver;

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                    unsigned int flags, CUstream hStream) {
  return cuMemPrefetchAsync_v2(devPtr, count, location, flags, per_thread(hStream));
}

CUresult cuStreamBeginCapture_v2_ptsz(CUstream hStream, CUstreamCaptureMode mode) {
  return cuStreamBeginCapture_v2(per_thread(hStream), mode);
}

CUresult cuStreamGetCaptureInfo_v3_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                        cuuint64_t* id_out, CUgraph* graph_out,
                                        const CUgraphNode** dependencies_out,
                                        const CUgraphEdgeData** edgeData_out,
                                        size_t* numDependencies_out) {
  return cuStreamGetCaptureInfo_v3(per_thread(hStream), captureStatus_out, id_out, graph_out,
                                   dependencies_out, edgeData_out, numDependencies_out);
}

CUresult cuStreamUpdateCaptureDependencies_v2_ptsz(CUstream hStream, CUgraphNode* dependencies,
                                                   const CUgraphEdgeData* dependencyData,
                                                   size_t numDependencies, unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(per_thread(hStream), dependencies, dependencyData,
                                              numDependencies, flags);
}

CUresult cuStreamGetPriority_ptsz(CUstream hStream, int* priority) {
  return cuStreamGetPriority(per_thread(hStream), priority);
}

CUresult cuStreamGetId_ptsz(CUstream hStream, unsigned long long* streamId) {
  return cuStreamGetId(per_thread(hStream), streamId);
}

CUresult cuStreamGetFlags_ptsz(CUstream hStream, unsigned int* flags) {
  return cuStreamGetFlags(per_thread(hStream), flags);
}

CUresult cuStreamGetDevice_ptsz(CUstream hStream, CUdevice* device) {
  return cuStreamGetDevice(per_thread(hStream), device);
}

CUresult cuStreamGetCtx_ptsz(CUstream hStream, CUcontext* pctx) {
  return cuStreamGetCtx(per_thread(hStream), pctx);
}

CUresult cuStreamGetCtx_v2_ptsz(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  return cuStreamGetCtx_v2(per_thread(hStream), pCtx, pGreenCtx);
}

CUresult cuStreamWaitEvent_ptsz(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  return cuStreamWaitEvent(per_thread(hStream), hEvent, Flags);
}

CUresult cuStreamEndCapture_ptsz(CUstream hStream, CUgraph* phGraph) {
  return cuStreamEndCapture(per_thread(hStream), phGraph);
}

CUresult cuStreamIsCapturing_ptsz(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return cuStreamIsCapturing(per_thread(hStream), captureStatus);
}

CUresult cuStreamAddCallback_ptsz(CUstream hStream, CUstreamCallback callback, void* userData,
                                  unsigned int flags) {
  return cuStreamAddCallback(per_thread(hStream), callback, userData, flags);
}

CUresult cuStreamAttachMemAsync_ptsz(CUstream hStream, CUdeviceptr dptr, size_t length,
                                     unsigned int flags) {
  return cuStreamAttachMemAsync(per_thread(hStream), dptr, length, flags);
}

CUresult cuStreamQuery_ptsz(CUstream hStream) { return cuStreamQuery(per_thread(hStream)); }

CUresult cuStreamSynchronize_ptsz(CUstream hStream) {
  return cuStreamSynchronize(per_thread(hStream));
}

CUresult cuEventRecord_ptsz(CUevent hEvent, CUstream hStream) {
  return cuEventRecord(hEvent, per_thread(hStream));
}

CUresult cuEventRecordWithFlags_ptsz(CUevent hEvent, CUstream hStream, unsigned int flags) {
  return cuEventRecordWithFlags(hEvent, per_thread(hStream), flags);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  return cuGraphInstantiateWithParams(phGraphExec, hGraph, instantiateParams);
}

CUresult cuGraphUpload_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return cuGraphUpload(hGraphExec, per_thread(hStream));
}

CUresult cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return cuGraphLaunch(hGraphExec, per_thread(hStream));
}

CUresult cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src) {
  return cuStreamCopyAttributes(per_thread(dst), per_thread(src));
}

CUresult cuStreamGetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr,
                                   CUstreamAttrValue* value) {
  return cuStreamGetAttribute(per_thread(hStream), attr, value);
}

CUresult cuStreamSetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr,
                                   const CUstreamAttrValue* value) {
  return cuStreamSetAttribute(per_thread(hStream), attr, value);
}

CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream hStream) {
  return cuMemFreeAsync(dptr, per_thread(hStream));
}

CUresult cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return cuMemAllocAsync(dptr, bytesize, per_thread(hStream));
}

CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                      CUstream hStream) {
  return cuMemAllocFromPoolAsync(dptr, bytesize, pool, per_thread(hStream));
}

CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream hStream, CUgraph hGraph,
                                          const CUgraphNode* dependencies,
                                          const CUgraphEdgeData* dependencyData,
                                          size_t numDependencies, CUstreamCaptureMode mode) {
  return cuStreamBeginCaptureToGraph(per_thread(hStream), hGraph, dependencies, dependencyData,
                                     numDependencies, mode);
}
