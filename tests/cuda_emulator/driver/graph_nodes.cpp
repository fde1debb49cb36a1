// Nodes of graphs and their parameters.

#include <algorithm>

#include "tests/cuda_emulator/driver/copies.h"
#include "tests/cuda_emulator/driver/launch.h"
#include "tests/cuda_emulator/driver/modules.h"

using namespace emulator::driver;

namespace emulator::driver {

CUDA_KERNEL_NODE_PARAMS with_context(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = p.func;
  params.gridDimX = p.gridDimX;
  params.gridDimY = p.gridDimY;
  params.gridDimZ = p.gridDimZ;
  params.blockDimX = p.blockDimX;
  params.blockDimY = p.blockDimY;
  params.blockDimZ = p.blockDimZ;
  params.sharedMemBytes = p.sharedMemBytes;
  params.kernelParams = p.kernelParams;
  params.extra = p.extra;
  return params;
}

Action kernel_action(Call& call, const CUDA_KERNEL_NODE_PARAMS& p) {
  std::shared_ptr<Context> context;
  CUfunction handle = p.func;
  if (!handle) {
    handle = reinterpret_cast<CUfunction>(p.kern);
    context = p.ctx ? call.driver.contexts.at(p.ctx, CUDA_ERROR_INVALID_CONTEXT) : call.context();
  }
  require(handle);
  const bool known = call.driver.functions.find(handle) ||
                     call.driver.kernels.find(reinterpret_cast<CUkernel>(handle));
  require(known);
  const Shape shape{{p.gridDimX, p.gridDimY, p.gridDimZ},
                    {p.blockDimX, p.blockDimY, p.blockDimZ},
                    p.sharedMemBytes};
  return checked_launch(call, function_at(call, handle, context), shape, p.kernelParams, p.extra);
}

Action copy_action(Call& call, const CUDA_MEMCPY3D* params, CUcontext context) {
  require(params);
  call.driver.contexts.at(context, CUDA_ERROR_INVALID_CONTEXT);
  std::optional<CopyAction> action = checked_copy(call, *params);
  require(action.has_value());  // nodes that copy nothing are not supported
  return std::move(*action);
}

Action fill_action(Call& call, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext context) {
  require(params);
  call.driver.contexts.at(context, CUDA_ERROR_INVALID_CONTEXT);
  const std::optional<FillAction> action = checked_fill(call, *params);
  require(action.has_value());
  return *action;
}

Action host_action(const CUDA_HOST_NODE_PARAMS* params) {
  require(params && params->fn);
  return HostAction{params->fn, params->userData, nullptr, nullptr};
}

Action child_action(Call& call, CUgraph graph) {
  auto action = std::make_shared<ChildAction>();
  action->graph = clone(call.driver, *graph_at(call, graph), true);
  return action;
}

Action any_action(Call& call, const CUgraphNodeParams& params) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_EMPTY: return EmptyAction{};
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& k = params.kernel;
      return kernel_action(
          call, {k.func, k.gridDimX, k.gridDimY, k.gridDimZ, k.blockDimX, k.blockDimY, k.blockDimZ,
                 k.sharedMemBytes, k.kernelParams, k.extra, k.kern, k.ctx});
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_action(call, &params.memcpy.copyParams, params.memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& m = params.memset;
      const CUDA_MEMSET_NODE_PARAMS plain{m.dst,         m.pitch, m.value,
                                          m.elementSize, m.width, m.height};
      return fill_action(call, &plain, m.ctx);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS plain{params.host.fn, params.host.userData};
      return host_action(&plain);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH: return child_action(call, params.graph.graph);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return WaitAction{call.driver.events.at(params.eventWait.event, CUDA_ERROR_INVALID_VALUE)};
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return RecordAction{
          call.driver.events.at(params.eventRecord.event, CUDA_ERROR_INVALID_VALUE)};
    default: fail(CUDA_ERROR_NOT_SUPPORTED);
  }
}

namespace {

// `make` gives the action of the new node.
template <class Make>
CUresult add(const char* name, CUgraphNode* to, CUgraph handle, const CUgraphNode* dependencies,
             size_t count, Make&& make) {
  return entry(name, [&](Call& call) {
    require(to);
    const std::shared_ptr<Graph> graph = graph_at(call, handle);
    std::vector<CUgraphNode> before = checked_dependencies(call, *graph, dependencies, count);
    *to = add_node(call.driver, *graph, make(call), std::move(before))->handle;
  });
}

template <class T>
T& action_of(Node& node) {
  T* action = std::get_if<T>(&node.action);
  require(action);
  return *action;
}

// Sets what `make` gives, of the same type as the node.
template <class Make>
CUresult set(const char* name, CUgraphNode handle, Make&& make) {
  return entry(name, [&](Call& call) {
    const std::shared_ptr<Node> node = node_at(call, handle);
    Action action = make(call);
    require(type_of(action) == node->type);
    node->action = std::move(action);
    node->parameter_addresses.clear();
  });
}

template <class Params>
CUresult get_kernel(CUgraphNode handle, Params* params) {
  return entry("cuGraphKernelNodeGetParams", [&](Call& call) {
    require(params);
    const std::shared_ptr<Node> node = node_at(call, handle);
    KernelAction& kernel = action_of<KernelAction>(*node);
    require(kernel.module->module != nullptr);
    node->parameter_addresses.clear();
    for (const auto& parameter : kernel.function->info->parameters)
      node->parameter_addresses.push_back(kernel.parameters.data() + parameter.offset);
    *params = {};
    params->func = kernel.function->handle;
    params->gridDimX = kernel.grid.x;
    params->gridDimY = kernel.grid.y;
    params->gridDimZ = kernel.grid.z;
    params->blockDimX = kernel.block.x;
    params->blockDimY = kernel.block.y;
    params->blockDimZ = kernel.block.z;
    params->sharedMemBytes = kernel.dynamic_shared;
    // Always as pointers, also where they were given in a buffer.
    if (!node->parameter_addresses.empty()) params->kernelParams = node->parameter_addresses.data();
  });
}

}  // namespace
}  // namespace emulator::driver

CUresult cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                             const CUgraphNode* dependencies, size_t numDependencies) {
  return add("cuGraphAddEmptyNode", phGraphNode, hGraph, dependencies, numDependencies,
             [](Call&) { return EmptyAction{}; });
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return add("cuGraphAddKernelNode", phGraphNode, hGraph, dependencies, numDependencies,
             [&](Call& call) {
               require(nodeParams);
               return kernel_action(call, *nodeParams);
             });
}

CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return add("cuGraphAddKernelNode", phGraphNode, hGraph, dependencies, numDependencies,
             [&](Call& call) {
               require(nodeParams);
               return kernel_action(call, with_context(*nodeParams));
             });
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  return add("cuGraphAddMemcpyNode", phGraphNode, hGraph, dependencies, numDependencies,
             [&](Call& call) { return copy_action(call, copyParams, ctx); });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  return add("cuGraphAddMemsetNode", phGraphNode, hGraph, dependencies, numDependencies,
             [&](Call& call) { return fill_action(call, memsetParams, ctx); });
}

CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                            const CUgraphNode* dependencies, size_t numDependencies,
                            const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return add("cuGraphAddHostNode", phGraphNode, hGraph, dependencies, numDependencies,
             [&](Call&) { return host_action(nodeParams); });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                  const CUgraphNode* dependencies, size_t numDependencies,
                                  CUgraph childGraph) {
  return add("cuGraphAddChildGraphNode", phGraphNode, hGraph, dependencies, numDependencies,
             [&](Call& call) { return child_action(call, childGraph); });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                   const CUgraphNode* dependencies, size_t numDependencies,
                                   CUevent event) {
  return add("cuGraphAddEventRecordNode", phGraphNode, hGraph, dependencies, numDependencies,
             [&](Call& call) {
               return RecordAction{call.driver.events.at(event, CUDA_ERROR_INVALID_VALUE)};
             });
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 CUevent event) {
  return add("cuGraphAddEventWaitNode", phGraphNode, hGraph, dependencies, numDependencies,
             [&](Call& call) {
               return WaitAction{call.driver.events.at(event, CUDA_ERROR_INVALID_VALUE)};
             });
}

CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                           const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData,
                           size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return add("cuGraphAddNode", phGraphNode, hGraph, dependencies, numDependencies, [&](Call& call) {
    require(nodeParams);
    require(!dependencyData, CUDA_ERROR_NOT_SUPPORTED);
    return any_action(call, *nodeParams);
  });
}

CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, nullptr, numDependencies, nodeParams);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return get_kernel(hNode, nodeParams);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return get_kernel(hNode, nodeParams);
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                       const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return set("cuGraphKernelNodeSetParams", hNode, [&](Call& call) {
    require(nodeParams);
    return kernel_action(call, *nodeParams);
  });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                    const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return set("cuGraphKernelNodeSetParams", hNode, [&](Call& call) {
    require(nodeParams);
    return kernel_action(call, with_context(*nodeParams));
  });
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  return entry("cuGraphMemcpyNodeGetParams", [&](Call& call) {
    require(nodeParams);
    *nodeParams = action_of<CopyAction>(*node_at(call, hNode)).given;
  });
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  return set("cuGraphMemcpyNodeSetParams", hNode, [&](Call& call) -> Action {
    require(nodeParams);
    std::optional<CopyAction> action = checked_copy(call, *nodeParams);
    require(action.has_value());
    return std::move(*action);
  });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return entry("cuGraphMemsetNodeGetParams", [&](Call& call) {
    require(nodeParams);
    *nodeParams = action_of<FillAction>(*node_at(call, hNode)).given;
  });
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  return set("cuGraphMemsetNodeSetParams", hNode, [&](Call& call) -> Action {
    require(nodeParams);
    const std::optional<FillAction> action = checked_fill(call, *nodeParams);
    require(action.has_value());
    return *action;
  });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  return entry("cuGraphHostNodeGetParams", [&](Call& call) {
    require(nodeParams);
    const HostAction& host = action_of<HostAction>(*node_at(call, hNode));
    *nodeParams = {host.function, host.data};
  });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return set("cuGraphHostNodeSetParams", hNode, [&](Call&) { return host_action(nodeParams); });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  return entry("cuGraphChildGraphNodeGetGraph", [&](Call& call) {
    require(phGraph);
    *phGraph = action_of<std::shared_ptr<ChildAction>>(*node_at(call, hNode))->graph->handle;
  });
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return entry("cuGraphEventRecordNodeGetEvent", [&](Call& call) {
    require(event_out);
    *event_out = action_of<RecordAction>(*node_at(call, hNode)).event->handle;
  });
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return set("cuGraphEventRecordNodeSetEvent", hNode, [&](Call& call) {
    return RecordAction{call.driver.events.at(event, CUDA_ERROR_INVALID_VALUE)};
  });
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  return entry("cuGraphEventWaitNodeGetEvent", [&](Call& call) {
    require(event_out);
    *event_out = action_of<WaitAction>(*node_at(call, hNode)).event->handle;
  });
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
  return set("cuGraphEventWaitNodeSetEvent", hNode, [&](Call& call) {
    return WaitAction{call.driver.events.at(event, CUDA_ERROR_INVALID_VALUE)};
  });
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  return set("cuGraphNodeSetParams", hNode, [&](Call& call) {
    require(nodeParams && nodeParams->type != CU_GRAPH_NODE_TYPE_GRAPH);
    return any_action(call, *nodeParams);
  });
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       CUkernelNodeAttrValue* value_out) {
  return entry("cuGraphKernelNodeGetAttribute", [&](Call& call) {
    require(value_out);
    const KernelAction& kernel = action_of<KernelAction>(*node_at(call, hNode));
    *value_out = {};
    switch (attr) {
      case CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE:
        value_out->cooperative = kernel.cooperative;
        return;
      case CU_KERNEL_NODE_ATTRIBUTE_PRIORITY: value_out->priority = kernel.priority; return;
      default: fail();
    }
  });
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                       const CUkernelNodeAttrValue* value) {
  return entry("cuGraphKernelNodeSetAttribute", [&](Call& call) {
    require(value);
    KernelAction& kernel = action_of<KernelAction>(*node_at(call, hNode));
    switch (attr) {
      case CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE: {
        require(kernel.module->module != nullptr);
        KernelAction changed = kernel;
        changed.cooperative = value->cooperative != 0;
        const Shape shape{changed.grid, changed.block, changed.dynamic_shared, changed.cooperative};
        check_shape(call.driver.limits, *changed.function, shape);
        kernel.cooperative = changed.cooperative;
        return;
      }
      case CU_KERNEL_NODE_ATTRIBUTE_PRIORITY: kernel.priority = value->priority; return;
      default: fail();
    }
  });
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  return entry("cuGraphKernelNodeCopyAttributes", [&](Call& call) {
    KernelAction& to = action_of<KernelAction>(*node_at(call, dst));
    const KernelAction& from = action_of<KernelAction>(*node_at(call, src));
    to.cooperative = from.cooperative;
    to.priority = from.priority;
  });
}
