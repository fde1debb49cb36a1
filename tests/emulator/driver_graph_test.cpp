// Graphs that are built node by node, instantiated, launched and changed.

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/emulator/driver_test.h"
#include "tests/run_program.h"

using namespace emulator_test;

namespace {

struct Scene : Started {
  Scene() : numbers(8) {
    OK(cuGraphCreate, &graph, 0);
    OK(cuCtxSynchronize);
  }
  // Parameters of a launch of `append`, alive as long as the scene.
  CUDA_KERNEL_NODE_PARAMS append(unsigned digit, unsigned word = 0) {
    arguments.push_back(
        std::make_unique<Arguments<CUdeviceptr, unsigned>>(numbers.address() + 4 * word, digit));
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = kernels["append"];
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = *arguments.back();
    return params;
  }
  CUgraphNode add(unsigned digit, const std::vector<CUgraphNode>& after = {}, unsigned word = 0) {
    const CUDA_KERNEL_NODE_PARAMS params = append(digit, word);
    CUgraphNode node = nullptr;
    OK(cuGraphAddKernelNode, &node, graph, after.data(), after.size(), &params);
    return node;
  }
  CUgraphExec instantiate() {
    CUgraphExec exec = nullptr;
    OK(cuGraphInstantiateWithFlags, &exec, graph, 0);
    return exec;
  }
  unsigned run(CUgraphExec exec) {
    OK(cuMemsetD32, numbers.address(), 0, 8);
    OK(cuGraphLaunch, exec, nullptr);
    OK(cuCtxSynchronize);
    return numbers.read()[0];
  }

  Kernels kernels;
  Numbers numbers;
  CUgraph graph = nullptr;
  std::vector<std::unique_ptr<Arguments<CUdeviceptr, unsigned>>> arguments;
};

}  // namespace

TEST_CASE("Driver: a graph of every kind of node", "[driver]") {
  Scene scene;
  const CUdeviceptr at = scene.numbers.address();
  static int calls;
  calls = 0;
  std::vector<unsigned> source = {4, 5}, back(2);
  CUgraphNode fill = nullptr, copy = nullptr, host = nullptr, empty = nullptr, out = nullptr;
  CUDA_MEMSET_NODE_PARAMS memset{};
  memset.dst = at;
  memset.value = 9;
  memset.elementSize = 4;
  memset.width = 1;
  memset.height = 1;
  OK(cuGraphAddMemsetNode, &fill, scene.graph, nullptr, 0, &memset, scene.context);
  CUDA_MEMCPY3D memcpy{};
  memcpy.srcMemoryType = CU_MEMORYTYPE_HOST;
  memcpy.srcHost = source.data();
  memcpy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  memcpy.dstDevice = at + 4;
  memcpy.WidthInBytes = 8;
  memcpy.Height = memcpy.Depth = 1;
  OK(cuGraphAddMemcpyNode, &copy, scene.graph, nullptr, 0, &memcpy, scene.context);
  CUDA_HOST_NODE_PARAMS function{[](void* data) { calls += int(reinterpret_cast<intptr_t>(data)); },
                                 reinterpret_cast<void*>(intptr_t(3))};
  OK(cuGraphAddHostNode, &host, scene.graph, &fill, 1, &function);
  const CUgraphNode both[] = {host, copy};
  OK(cuGraphAddEmptyNode, &empty, scene.graph, both, 2);
  const CUgraphNode kernel = scene.add(1, {empty});
  CUDA_MEMCPY3D outward{};
  outward.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  outward.srcDevice = at;
  outward.dstMemoryType = CU_MEMORYTYPE_HOST;
  outward.dstHost = back.data();
  outward.WidthInBytes = 8;
  outward.Height = outward.Depth = 1;
  OK(cuGraphAddMemcpyNode, &out, scene.graph, &kernel, 1, &outward, scene.context);

  const std::pair<CUgraphNode, CUgraphNodeType> kinds[] = {{fill, CU_GRAPH_NODE_TYPE_MEMSET},
                                                           {copy, CU_GRAPH_NODE_TYPE_MEMCPY},
                                                           {host, CU_GRAPH_NODE_TYPE_HOST},
                                                           {empty, CU_GRAPH_NODE_TYPE_EMPTY},
                                                           {kernel, CU_GRAPH_NODE_TYPE_KERNEL}};
  for (const auto& [node, expected] : kinds) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_GRAPH;
    OK(cuGraphNodeGetType, node, &type);
    CHECK(type == expected);
  }
  CUDA_MEMSET_NODE_PARAMS memset_back{};
  OK(cuGraphMemsetNodeGetParams, fill, &memset_back);
  CHECK(memset_back.value == 9);
  CUDA_MEMCPY3D memcpy_back{};
  OK(cuGraphMemcpyNodeGetParams, copy, &memcpy_back);
  CHECK(memcpy_back.dstDevice == at + 4);
  CUDA_HOST_NODE_PARAMS function_back{};
  OK(cuGraphHostNodeGetParams, host, &function_back);
  CHECK(function_back.userData == function.userData);
  CHECK(API(cuGraphHostNodeGetParams)(fill, &function_back) == CUDA_ERROR_INVALID_VALUE);

  const CUgraphExec exec = scene.instantiate();
  OK(cuGraphLaunch, exec, nullptr);
  OK(cuCtxSynchronize);
  CHECK(scene.numbers.read()[0] == 91);
  CHECK(scene.numbers.read()[1] == 4);
  CHECK(scene.numbers.read()[2] == 5);
  CHECK(back == std::vector<unsigned>{91, 4});
  CHECK(calls == 3);
  OK(cuGraphExecDestroy, exec);
  CHECK(API(cuGraphExecDestroy)(exec) == CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroy, scene.graph);
  CHECK(API(cuGraphDestroy)(scene.graph) == CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CHECK(API(cuGraphNodeGetType)(fill, &type) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Driver: edges decide the order", "[driver]") {
  Scene scene;
  const CUgraphNode one = scene.add(1), two = scene.add(2), three = scene.add(3);
  const CUgraphNode from[] = {three, one}, to[] = {one, two};
  OK(cuGraphAddDependencies, scene.graph, from, to, nullptr, 2);
  CHECK(API(cuGraphAddDependencies)(scene.graph, from, to, nullptr, 1) ==
        CUDA_ERROR_INVALID_VALUE);  // it is there
  CHECK(API(cuGraphAddDependencies)(scene.graph, &two, &three, nullptr, 1) ==
        CUDA_ERROR_INVALID_VALUE);  // a cycle
  CHECK(API(cuGraphAddDependencies)(scene.graph, &two, &two, nullptr, 1) ==
        CUDA_ERROR_INVALID_VALUE);
  for (unsigned seed = 1; seed <= 10; ++seed) {
    API(cuda_emulator_seed)(seed);
    const CUgraphExec exec = scene.instantiate();
    CHECK(scene.run(exec) == 312);
    OK(cuGraphExecDestroy, exec);
  }
  CUgraphNode sources[4] = {}, targets[4] = {};
  size_t count = 4;
  OK(cuGraphGetEdges, scene.graph, sources, targets, nullptr, &count);
  CHECK(count == 2);
  CHECK(sources[2] == nullptr);
  count = 1;
  CUgraphNode found = nullptr;
  OK(cuGraphNodeGetDependencies, one, &found, nullptr, &count);
  CHECK(found == three);
  OK(cuGraphNodeGetDependentNodes, one, &found, nullptr, &count);
  CHECK(found == two);
  OK(cuGraphGetRootNodes, scene.graph, &found, &count);
  CHECK(found == three);
  OK(cuGraphRemoveDependencies, scene.graph, &three, &one, nullptr, 1);
  CHECK(API(cuGraphRemoveDependencies)(scene.graph, &three, &one, nullptr, 1) ==
        CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphDestroyNode, one);
  OK(cuGraphNodeGetDependencies, two, nullptr, nullptr, &count);
  CHECK(count == 0);
  CHECK(API(cuGraphDestroyNode)(one) == CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphGetNodes, scene.graph, nullptr, &count);
  CHECK(count == 2);
}

TEST_CASE("Driver: a graph is no more than it was when it was instantiated", "[driver]") {
  Scene scene;
  const CUgraphNode one = scene.add(1);
  const CUgraphExec exec = scene.instantiate();
  scene.add(2, {one});
  CHECK(scene.run(exec) == 1);
  CUDA_KERNEL_NODE_PARAMS params = scene.append(7);
  OK(cuGraphKernelNodeSetParams, one, &params);
  CHECK(scene.run(exec) == 1);
  const CUgraphExec later = scene.instantiate();
  CHECK(scene.run(later) == 72);
  CUDA_KERNEL_NODE_PARAMS back{};
  OK(cuGraphKernelNodeGetParams, one, &back);
  CHECK(back.func == scene.kernels["append"]);
  CHECK(*static_cast<CUdeviceptr*>(back.kernelParams[0]) == scene.numbers.address());
  CHECK(*static_cast<unsigned*>(back.kernelParams[1]) == 7);
  OK(cuGraphDestroy, scene.graph);
  CHECK(scene.run(later) == 72);
  OK(cuGraphExecDestroy, later);
  OK(cuGraphExecDestroy, exec);
}

TEST_CASE("Driver: new pointers in an executable graph", "[driver]") {
  Scene scene;
  const CUgraphNode one = scene.add(1), two = scene.add(2, {one});
  const CUgraphExec exec = scene.instantiate();
  CHECK(scene.run(exec) == 12);
  CUDA_KERNEL_NODE_PARAMS params = scene.append(5, 3);
  OK(cuGraphExecKernelNodeSetParams, exec, two, &params);
  CHECK(scene.run(exec) == 1);
  CHECK(scene.numbers.read()[3] == 5);
  // A launch that waits in its stream is not concerned.
  CUstream stream = nullptr;
  OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  OK(cuMemsetD32, scene.numbers.address(), 0, 8);
  OK(cuCtxSynchronize);
  {
    Gate gate(stream);
    OK(cuGraphLaunch, exec, stream);
    params = scene.append(6, 4);
    OK(cuGraphExecKernelNodeSetParams, exec, two, &params);
  }
  OK(cuStreamSynchronize, stream);
  CHECK(scene.numbers.read()[3] == 5);
  CHECK(scene.numbers.read()[4] == 0);
  OK(cuGraphNodeSetEnabled, exec, one, 0);
  unsigned enabled = 1;
  OK(cuGraphNodeGetEnabled, exec, one, &enabled);
  CHECK(enabled == 0);
  CHECK(scene.run(exec) == 0);
  CHECK(scene.numbers.read()[4] == 6);
  // Nodes of other graphs, wrong parameters.
  CUgraph other = nullptr;
  CUgraphNode foreign = nullptr;
  OK(cuGraphCreate, &other, 0);
  OK(cuGraphAddKernelNode, &foreign, other, nullptr, 0, &params);
  const CUresult wrong = CUDA_ERROR_INVALID_VALUE;
  CHECK(API(cuGraphExecKernelNodeSetParams)(exec, foreign, &params) == wrong);
  CHECK(API(cuGraphExecKernelNodeSetParams)(exec, two, nullptr) == wrong);
  params.blockDimX = 2000;
  CHECK(API(cuGraphExecKernelNodeSetParams)(exec, two, &params) == wrong);
  params.blockDimX = 1;
  params.func = nullptr;
  CHECK(API(cuGraphExecKernelNodeSetParams)(exec, two, &params) == wrong);
  CHECK(scene.run(exec) == 0);
  CHECK(scene.numbers.read()[4] == 6);
  OK(cuGraphExecDestroy, exec);
}

TEST_CASE("Driver: launches of an executable graph follow one another", "[driver]") {
  Scene scene;
  scene.add(1);
  const CUgraphExec exec = scene.instantiate();
  CUstream streams[2] = {};
  for (CUstream& stream : streams) OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  for (unsigned seed = 1; seed <= 10; ++seed) {
    API(cuda_emulator_seed)(seed);
    OK(cuMemsetD32, scene.numbers.address(), 0, 8);
    OK(cuCtxSynchronize);
    {
      Gate gate(streams[0]);
      OK(cuGraphLaunch, exec, streams[0]);
      OK(cuGraphLaunch, exec, streams[1]);
      CHECK(launch(scene.kernels["append"], 1, 1, streams[1], scene.numbers.address(), 2u) ==
            CUDA_SUCCESS);
    }
    OK(cuCtxSynchronize);
    CHECK(scene.numbers.read()[0] == 112);
  }
  OK(cuGraphExecDestroy, exec);
}

TEST_CASE("Driver: copies and memsets of an executable graph are changed", "[driver]") {
  Scene scene;
  const CUdeviceptr at = scene.numbers.address();
  CUgraphNode fill = nullptr, copy = nullptr;
  CUDA_MEMSET_NODE_PARAMS memset{};
  memset.dst = at;
  memset.value = 9;
  memset.elementSize = 4;
  memset.width = memset.height = 1;
  OK(cuGraphAddMemsetNode, &fill, scene.graph, nullptr, 0, &memset, scene.context);
  CUDA_MEMCPY3D memcpy{};
  memcpy.srcMemoryType = memcpy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  memcpy.srcDevice = at;
  memcpy.dstDevice = at + 4;
  memcpy.WidthInBytes = 4;
  memcpy.Height = memcpy.Depth = 1;
  OK(cuGraphAddMemcpyNode, &copy, scene.graph, &fill, 1, &memcpy, scene.context);
  const CUgraphExec exec = scene.instantiate();
  scene.run(exec);
  CHECK(scene.numbers.read()[1] == 9);
  memset.value = 11;
  OK(cuGraphExecMemsetNodeSetParams, exec, fill, &memset, scene.context);
  memcpy.dstDevice = at + 8;
  OK(cuGraphExecMemcpyNodeSetParams, exec, copy, &memcpy, scene.context);
  scene.run(exec);
  CHECK(scene.numbers.read()[1] == 0);
  CHECK(scene.numbers.read()[2] == 11);
  const CUresult wrong = CUDA_ERROR_INVALID_VALUE;
  memcpy.WidthInBytes = 400;
  CHECK(API(cuGraphExecMemcpyNodeSetParams)(exec, copy, &memcpy, scene.context) == wrong);
  memcpy.WidthInBytes = 4;
  unsigned host = 0;
  memcpy.dstMemoryType = CU_MEMORYTYPE_HOST;
  memcpy.dstHost = &host;
  CHECK(API(cuGraphExecMemcpyNodeSetParams)(exec, copy, &memcpy, scene.context) == wrong);
  CHECK(API(cuGraphExecMemcpyNodeSetParams)(exec, fill, &memcpy, scene.context) == wrong);
  memset.height = 2;
  memset.pitch = 8;
  CHECK(API(cuGraphExecMemsetNodeSetParams)(exec, fill, &memset, scene.context) == wrong);
  CHECK(API(cuGraphExecMemsetNodeSetParams)(exec, fill, &memset, nullptr) ==
        CUDA_ERROR_INVALID_CONTEXT);
  OK(cuGraphExecDestroy, exec);
}

TEST_CASE("Driver: an executable graph is updated by a graph of the same shape", "[driver]") {
  Scene scene;
  const auto chain = [&](std::vector<unsigned> digits, bool edges = true) {
    OK(cuGraphCreate, &scene.graph, 0);
    CUgraphNode last = nullptr;
    for (const unsigned digit : digits) {
      last = scene.add(digit,
                       last && edges ? std::vector<CUgraphNode>{last} : std::vector<CUgraphNode>{});
    }
    return scene.graph;
  };
  chain({1, 2});
  const CUgraphExec exec = scene.instantiate();
  CUgraphExecUpdateResultInfo info{};
  OK(cuGraphExecUpdate, exec, chain({3, 4}), &info);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  CHECK(scene.run(exec) == 34);
  const auto refused = [&](CUgraph graph, CUgraphExecUpdateResult why) {
    CHECK(API(cuGraphExecUpdate)(exec, graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CHECK(info.result == why);
  };
  refused(chain({1, 2, 3}), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  refused(chain({1, 2}, false), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CHECK(info.errorNode != nullptr);
  chain({1});
  CUgraphNode root = nullptr, empty = nullptr;
  size_t count = 1;
  OK(cuGraphGetNodes, scene.graph, &root, &count);
  OK(cuGraphAddEmptyNode, &empty, scene.graph, &root, 1);
  refused(scene.graph, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  CHECK(info.errorNode == empty);
  CHECK(scene.run(exec) == 34);  // what is refused changes nothing
  CHECK(API(cuGraphExecUpdate)(exec, nullptr, &info) == CUDA_ERROR_INVALID_VALUE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR);
  OK(cuGraphExecDestroy, exec);
}

TEST_CASE("Driver: clones and graphs within graphs", "[driver]") {
  Scene scene;
  const CUgraphNode one = scene.add(1), two = scene.add(2, {one});
  CUgraph clone = nullptr, outer = nullptr, inner = nullptr;
  OK(cuGraphClone, &clone, scene.graph);
  CUgraphNode copy = nullptr, child = nullptr, before = nullptr;
  OK(cuGraphNodeFindInClone, &copy, two, clone);
  CHECK(copy != two);
  CHECK(API(cuGraphNodeFindInClone)(&copy, copy, clone) == CUDA_ERROR_INVALID_VALUE);
  size_t count = 1;
  OK(cuGraphNodeGetDependencies, copy, &before, nullptr, &count);
  CUgraphNode copy_one = nullptr;
  OK(cuGraphNodeFindInClone, &copy_one, one, clone);
  CHECK(before == copy_one);

  OK(cuGraphCreate, &outer, 0);
  const CUgraph built = scene.graph;
  scene.graph = outer;
  const CUgraphNode five = scene.add(5);
  OK(cuGraphAddChildGraphNode, &child, outer, &five, 1, built);
  scene.add(6, {child});
  OK(cuGraphChildGraphNodeGetGraph, child, &inner);
  CHECK(inner != built);
  CHECK(API(cuGraphDestroy)(inner) == CUDA_ERROR_INVALID_VALUE);  // it is the node's
  OK(cuGraphDestroy, built);
  CUgraphExec exec = scene.instantiate();
  CHECK(scene.run(exec) == 5126);
  // The clone has the shape of the child, with digits of its own.
  CUDA_KERNEL_NODE_PARAMS params = scene.append(9);
  OK(cuGraphKernelNodeSetParams, copy, &params);
  OK(cuGraphExecChildGraphNodeSetParams, exec, child, clone);
  CHECK(scene.run(exec) == 5196);
  CHECK(alive()[4] == 2);
  OK(cuGraphDestroyNode, child);
  OK(cuGraphExecDestroy, exec);
  exec = scene.instantiate();
  OK(cuGraphExecDestroy, exec);

  const krait::TestFolder folder;
  const std::string path = folder.file("graph.dot");
  OK(cuGraphDebugDotPrint, clone, path.c_str(), 0);
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(text.str().substr(0, 7) == "digraph");
  CHECK(text.str().find("append") != std::string::npos);
  CHECK(text.str().find("->") != std::string::npos);
  CHECK(API(cuGraphDebugDotPrint)(clone, "/no/such/folder/x", 0) == CUDA_ERROR_OPERATING_SYSTEM);
}

TEST_CASE("Driver: nodes by their generic parameters", "[driver]") {
  Scene scene;
  CUgraphNodeParams params{};
  const CUDA_KERNEL_NODE_PARAMS kernel = scene.append(8);
  params.type = CU_GRAPH_NODE_TYPE_KERNEL;
  std::memcpy(&params.kernel, &kernel, sizeof params.kernel);
  CUgraphNode node = nullptr, empty = nullptr;
  OK(cuGraphAddNode, &node, scene.graph, nullptr, nullptr, 0, &params);
  CUgraphNodeParams nothing{};
  nothing.type = CU_GRAPH_NODE_TYPE_EMPTY;
  OK(cuGraphAddNode, &empty, scene.graph, &node, nullptr, 1, &nothing);
  nothing.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  CHECK(API(cuGraphAddNode)(&empty, scene.graph, &node, nullptr, 1, &nothing) ==
        CUDA_ERROR_NOT_SUPPORTED);
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  OK(cuGraphInstantiateWithParams, &exec, scene.graph, &how);
  CHECK(how.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
  CHECK(scene.run(exec) == 8);
  const CUDA_KERNEL_NODE_PARAMS other = scene.append(3);
  std::memcpy(&params.kernel, &other, sizeof params.kernel);
  OK(cuGraphExecNodeSetParams, exec, node, &params);
  CHECK(scene.run(exec) == 3);
  OK(cuGraphNodeSetParams, node, &params);
  CUkernelNodeAttrValue value{};
  value.priority = -1;
  OK(cuGraphKernelNodeSetAttribute, node, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value);
  OK(cuGraphKernelNodeGetAttribute, node, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &value);
  CHECK(value.priority == -1);
  OK(cuGraphExecDestroy, exec);
}

TEST_CASE("Driver: graphs that cannot be", "[driver]") {
  Scene scene;
  const CUresult wrong = CUDA_ERROR_INVALID_VALUE;
  CUgraph other = nullptr;
  CUgraphNode node = nullptr, foreign = nullptr;
  CHECK(API(cuGraphCreate)(&other, 1) == wrong);
  CHECK(API(cuGraphCreate)(nullptr, 0) == wrong);
  OK(cuGraphCreate, &other, 0);
  OK(cuGraphAddEmptyNode, &foreign, other, nullptr, 0);
  CHECK(API(cuGraphAddEmptyNode)(&node, scene.graph, &foreign, 1) == wrong);
  CHECK(API(cuGraphAddEmptyNode)(&node, nullptr, nullptr, 0) == wrong);
  CHECK(API(cuGraphAddEmptyNode)(nullptr, scene.graph, nullptr, 0) == wrong);
  CHECK(API(cuGraphAddEmptyNode)(&node, scene.graph, nullptr, 1) == wrong);
  const CUgraphNode twice[] = {foreign, foreign};
  CHECK(API(cuGraphAddEmptyNode)(&node, other, twice, 2) == wrong);
  CUDA_KERNEL_NODE_PARAMS params = scene.append(1);
  params.gridDimX = 0;
  CHECK(API(cuGraphAddKernelNode)(&node, scene.graph, nullptr, 0, &params) == wrong);
  params = scene.append(1);
  params.func = reinterpret_cast<CUfunction>(&other);
  CHECK(API(cuGraphAddKernelNode)(&node, scene.graph, nullptr, 0, &params) == wrong);
  CHECK(API(cuGraphAddKernelNode)(&node, scene.graph, nullptr, 0, nullptr) == wrong);
  CUDA_MEMSET_NODE_PARAMS memset{};
  memset.dst = 0x1000;
  memset.elementSize = 4;
  memset.width = memset.height = 1;
  CHECK(API(cuGraphAddMemsetNode)(&node, scene.graph, nullptr, 0, &memset, scene.context) == wrong);
  memset.dst = scene.numbers.address();
  memset.elementSize = 3;
  CHECK(API(cuGraphAddMemsetNode)(&node, scene.graph, nullptr, 0, &memset, scene.context) == wrong);
  CUgraphExec exec = nullptr;
  CHECK(API(cuGraphInstantiateWithFlags)(&exec, nullptr, 0) == wrong);
  CHECK(API(cuGraphInstantiateWithFlags)(&exec, scene.graph, 0x100) == wrong);
  CHECK(API(cuGraphLaunch)(nullptr, nullptr) == wrong);
  // Nothing is left of a call that failed.
  size_t count = 9;
  OK(cuGraphGetNodes, scene.graph, nullptr, &count);
  CHECK(count == 0);
  OK(cuGraphInstantiateWithFlags, &exec, scene.graph, 0);
  OK(cuGraphLaunch, exec, nullptr);  // an empty one
  OK(cuCtxSynchronize);
  OK(cuGraphExecDestroy, exec);
  // Its module or its memory is gone.
  scene.add(1);
  exec = scene.instantiate();
  OK(cuModuleUnload, scene.kernels.module);
  CHECK(API(cuGraphLaunch)(exec, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  OK(cuGraphExecDestroy, exec);
  OK(cuGraphDestroy, scene.graph);
  OK(cuGraphCreate, &scene.graph, 0);
  CUdeviceptr freed = 0;
  OK(cuMemAlloc, &freed, 4);
  memset.dst = freed;
  memset.elementSize = 4;
  OK(cuGraphAddMemsetNode, &node, scene.graph, nullptr, 0, &memset, scene.context);
  exec = scene.instantiate();
  OK(cuMemFree, freed);
  OK(cuGraphLaunch, exec, nullptr);
  CHECK(API(cuCtxSynchronize)() == CUDA_ERROR_ILLEGAL_ADDRESS);
}
