// Executable graphs: made, launched, changed.

#include <algorithm>
#include <cstring>

#include "tests/cuda_emulator/driver/copies.h"
#include "tests/cuda_emulator/driver/driver.h"

using namespace emulator::driver;

namespace emulator::driver {

std::shared_ptr<const Body> body_of(const Graph& graph) {
  auto body = std::make_shared<Body>();
  std::map<CUgraphNode, size_t> index;
  for (size_t i = 0; i < graph.nodes.size(); ++i) index[graph.nodes[i]->handle] = i;
  for (const std::shared_ptr<Node>& node : graph.nodes) {
    Step step{node->handle, node->type, node->action, {}, true, nullptr};
    for (CUgraphNode before : node->dependencies) step.after.push_back(index.at(before));
    if (const auto* child = std::get_if<std::shared_ptr<ChildAction>>(&node->action)) {
      step.child = body_of(*(*child)->graph);
      step.action = EmptyAction{};
    }
    body->steps.push_back(std::move(step));
  }
  return body;
}

std::shared_ptr<Graph> graph_of(Driver& driver, const Body& body) {
  auto graph = std::make_shared<Graph>();
  driver.graphs.add(graph);
  graph->nested = true;
  for (const Step& step : body.steps) {
    Action action = step.enabled ? step.action : Action(EmptyAction{});
    if (step.child && step.enabled) {
      auto child = std::make_shared<ChildAction>();
      child->graph = graph_of(driver, *step.child);
      action = std::move(child);
    }
    add_node(driver, *graph, std::move(action), {});
  }
  for (size_t i = 0; i < body.steps.size(); ++i) {
    for (const size_t before : body.steps[i].after)
      graph->nodes[i]->dependencies.push_back(graph->nodes[before]->handle);
  }
  return graph;
}

namespace {

std::shared_ptr<GraphExec> exec_at(Call& call, CUgraphExec handle) {
  return call.driver.executables.at(handle, CUDA_ERROR_INVALID_VALUE);
}

constexpr unsigned long long kFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUgraphExec instantiate(Call& call, CUgraph handle, unsigned long long flags) {
  const std::shared_ptr<Graph> graph = graph_at(call, handle);
  require(!(flags & ~kFlags));
  require(!(flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH), CUDA_ERROR_NOT_SUPPORTED);
  for (const std::shared_ptr<Capture>& capture : call.driver.captures)
    require(capture->graph != graph);
  auto exec = std::make_shared<GraphExec>();
  exec->body = body_of(*graph);
  exec->flags = flags;
  return call.driver.executables.add(std::move(exec));
}

// Modules may be unloaded and events destroyed while a graph still names them.
void check_alive(const Body& body) {
  for (const Step& step : body.steps) {
    if (!step.enabled) continue;
    if (const auto* kernel = std::get_if<KernelAction>(&step.action))
      require(kernel->module->module != nullptr, CUDA_ERROR_INVALID_HANDLE);
    if (step.child) check_alive(*step.child);
  }
}

// Events that the graph waits for come before all of it, and those that it records after all.
void tie_events(const Body& body, const std::shared_ptr<Work>& work, bool records) {
  for (const Step& step : body.steps) {
    if (!step.enabled) continue;
    const auto* record = std::get_if<RecordAction>(&step.action);
    const auto* wait = std::get_if<WaitAction>(&step.action);
    if (records && record) {
      record->event->work = work;
      record->event->captured = false;
    }
    if (!records && wait && wait->event->work) work->after.push_back(wait->event->work);
    if (step.child) tie_events(*step.child, work, records);
  }
}

void launch(Call& call, GraphExec& exec, const std::shared_ptr<Stream>& stream) {
  const std::shared_ptr<const Body> body = exec.body;
  check_alive(*body);
  if (stream->capture) {
    auto child = std::make_shared<ChildAction>();
    child->graph = graph_of(call.driver, *body);
    call.submit(stream, std::move(child));
    return;
  }
  if (stream->legacy) call.implicit_in_capture(*stream->context);
  const std::shared_ptr<Work> work = call.marker(stream);
  if (exec.last && !exec.last->done) work->after.push_back(exec.last);
  tie_events(*body, work, false);
  const uint64_t seed = call.driver.seed ? call.driver.seed : call.driver.next_id++;
  work->run = [body, seed](CUresult error) { return perform(*body, seed, error); };
  call.driver.worker.submit(stream, work);
  tie_events(*body, work, true);
  exec.last = work;
}

// Replaces the step of that node by what `change` makes of it.
template <class Change>
CUresult change_step(const char* name, CUgraphExec handle, CUgraphNode node, Change&& change) {
  return entry(name, [&](Call& call) {
    const std::shared_ptr<GraphExec> exec = exec_at(call, handle);
    node_at(call, node);
    auto body = std::make_shared<Body>(*exec->body);
    const auto step = std::find_if(body->steps.begin(), body->steps.end(),
                                   [&](const Step& s) { return s.origin == node; });
    require(step != body->steps.end());
    change(call, *step);
    exec->body = std::move(body);
  });
}

// What an executable graph does not let change of a node.
CUgraphExecUpdateResult forbidden(const Action& before, const Action& after) {
  if (const auto* old = std::get_if<KernelAction>(&before)) {
    const auto& kernel = std::get<KernelAction>(after);
    if (old->module->context != kernel.module->context)
      return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    if (old->cooperative != kernel.cooperative)
      return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  }
  if (const auto* old = std::get_if<CopyAction>(&before)) {
    const auto& copy = std::get<CopyAction>(after);
    if (old->to.host != copy.to.host || old->from.host != copy.from.host)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (const auto* old = std::get_if<FillAction>(&before)) {
    const auto &a = old->given, &b = std::get<FillAction>(after).given;
    const bool same = a.pitch == b.pitch && a.elementSize == b.elementSize && a.width == b.width &&
                      a.height == b.height;
    if ((a.height > 1 || b.height > 1) && !same)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

bool one_dimensional(const CopyAction& copy) { return copy.height == 1 && copy.depth == 1; }

void replace(Step& step, Action action) {
  require(type_of(action) == step.type);
  require(forbidden(step.action, action) == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  step.action = std::move(action);
}

struct Update {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  CUgraphNode node = nullptr, from = nullptr;
};

// The body with the actions of a graph of the same shape: its nodes in the order they were added.
Update update(Body& body, const Graph& graph) {
  const std::shared_ptr<const Body> fresh = body_of(graph);
  if (fresh->steps.size() != body.steps.size())
    return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr, nullptr};
  for (size_t i = 0; i < body.steps.size(); ++i) {
    Step& step = body.steps[i];
    const Step& other = fresh->steps[i];
    if (step.type != other.type)
      return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, other.origin, nullptr};
    std::vector<size_t> before = step.after, after = other.after;
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    if (before != after) {
      CUgraphNode from = nullptr;
      for (const size_t j : after) {
        if (!std::binary_search(before.begin(), before.end(), j)) from = fresh->steps[j].origin;
      }
      return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, other.origin,
              before.size() == after.size() ? from : nullptr};
    }
    if (step.child) {
      auto child = std::make_shared<Body>(*step.child);
      const Graph& nested = *std::get<std::shared_ptr<ChildAction>>(graph.nodes[i]->action)->graph;
      const Update inner = update(*child, nested);
      if (inner.result != CU_GRAPH_EXEC_UPDATE_SUCCESS) return inner;
      step.child = std::move(child);
      continue;
    }
    const CUgraphExecUpdateResult refused = forbidden(step.action, other.action);
    if (refused != CU_GRAPH_EXEC_UPDATE_SUCCESS) return {refused, other.origin, nullptr};
    step.action = other.action;
  }
  return {};
}

CUresult exec_update(CUgraphExec handle, CUgraph graph, Update* outcome) {
  return entry("cuGraphExecUpdate", [&](Call& call) {
    outcome->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    const std::shared_ptr<GraphExec> exec = exec_at(call, handle);
    auto body = std::make_shared<Body>(*exec->body);
    *outcome = update(*body, *graph_at(call, graph));
    require(outcome->result == CU_GRAPH_EXEC_UPDATE_SUCCESS, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    exec->body = std::move(body);
  });
}

CUresult set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params) {
  return change_step("cuGraphExecKernelNodeSetParams", exec, node, [&](Call& call, Step& step) {
    require(params && step.type == CU_GRAPH_NODE_TYPE_KERNEL);
    Action action = kernel_action(call, *params);
    // Whether it is cooperative is an attribute of the node, and stays.
    std::get<KernelAction>(action).cooperative = std::get<KernelAction>(step.action).cooperative;
    replace(step, std::move(action));
  });
}

}  // namespace
}  // namespace emulator::driver

CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph,
                                     unsigned long long flags) {
  return entry("cuGraphInstantiateWithFlags", [&](Call& call) {
    require(phGraphExec && !(flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
    *phGraphExec = instantiate(call, hGraph, flags);
  });
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  return entry("cuGraphInstantiateWithParams", [&](Call& call) {
    require(instantiateParams);
    instantiateParams->hErrNode_out = nullptr;
    instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
    require(phGraphExec);
    if (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
      call.stream(instantiateParams->hUploadStream);
    *phGraphExec = instantiate(call, hGraph, instantiateParams->flags);
    instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  });
}

namespace {

CUresult instantiate_with_log(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                              size_t size) {
  return entry("cuGraphInstantiate", [&](Call& call) {
    require(exec);
    if (error_node) *error_node = nullptr;
    if (log && size) *log = 0;
    *exec = instantiate(call, graph, 0);
  });
}

}  // namespace

CUresult cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                            char* logBuffer, size_t bufferSize) {
  return instantiate_with_log(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                               char* logBuffer, size_t bufferSize) {
  return instantiate_with_log(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t* flags) {
  return entry("cuGraphExecGetFlags", [&](Call& call) {
    require(flags);
    *flags = exec_at(call, hGraphExec)->flags;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  return entry("cuGraphExecDestroy", [&](Call& call) {
    exec_at(call, hGraphExec);
    call.driver.executables.remove(hGraphExec);
  });
}

CUresult cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  return entry("cuGraphUpload", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.stream(hStream);
    require(!stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    exec_at(call, hGraphExec);
  });
}

CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  return entry("cuGraphLaunch", [&](Call& call) {
    const std::shared_ptr<Stream> stream = call.stream(hStream);
    launch(call, *exec_at(call, hGraphExec), stream);
  });
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return set_kernel(hGraphExec, hNode, nodeParams);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  if (!nodeParams) return set_kernel(hGraphExec, hNode, nullptr);
  const CUDA_KERNEL_NODE_PARAMS params = with_context(*nodeParams);
  return set_kernel(hGraphExec, hNode, &params);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  return change_step("cuGraphExecMemcpyNodeSetParams", hGraphExec, hNode,
                     [&](Call& call, Step& step) {
                       require(step.type == CU_GRAPH_NODE_TYPE_MEMCPY);
                       Action action = copy_action(call, copyParams, ctx);
                       require(one_dimensional(std::get<CopyAction>(step.action)) &&
                               one_dimensional(std::get<CopyAction>(action)));
                       replace(step, std::move(action));
                     });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS* memsetParams,
                                        CUcontext ctx) {
  return change_step("cuGraphExecMemsetNodeSetParams", hGraphExec, hNode,
                     [&](Call& call, Step& step) {
                       require(step.type == CU_GRAPH_NODE_TYPE_MEMSET);
                       replace(step, fill_action(call, memsetParams, ctx));
                     });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS* nodeParams) {
  return change_step("cuGraphExecHostNodeSetParams", hGraphExec, hNode,
                     [&](Call&, Step& step) { replace(step, host_action(nodeParams)); });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            CUgraph childGraph) {
  return change_step("cuGraphExecChildGraphNodeSetParams", hGraphExec, hNode,
                     [&](Call& call, Step& step) {
                       require(step.child != nullptr);
                       auto child = std::make_shared<Body>(*step.child);
                       const Update outcome = update(*child, *graph_at(call, childGraph));
                       require(outcome.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
                       step.child = std::move(child);
                     });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            CUevent event) {
  return change_step(
      "cuGraphExecEventRecordNodeSetEvent", hGraphExec, hNode, [&](Call& call, Step& step) {
        replace(step, RecordAction{call.driver.events.at(event, CUDA_ERROR_INVALID_VALUE)});
      });
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                          CUevent event) {
  return change_step(
      "cuGraphExecEventWaitNodeSetEvent", hGraphExec, hNode, [&](Call& call, Step& step) {
        replace(step, WaitAction{call.driver.events.at(event, CUDA_ERROR_INVALID_VALUE)});
      });
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  CUgraphNodeParams* nodeParams) {
  return change_step("cuGraphExecNodeSetParams", hGraphExec, hNode, [&](Call& call, Step& step) {
    require(nodeParams && !step.child && nodeParams->type == step.type);
    replace(step, any_action(call, *nodeParams));
  });
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
  return change_step("cuGraphNodeSetEnabled", hGraphExec, hNode, [&](Call&, Step& step) {
    require(step.type == CU_GRAPH_NODE_TYPE_KERNEL || step.type == CU_GRAPH_NODE_TYPE_MEMCPY ||
            step.type == CU_GRAPH_NODE_TYPE_MEMSET);
    step.enabled = isEnabled != 0;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled) {
  return change_step("cuGraphNodeGetEnabled", hGraphExec, hNode, [&](Call&, Step& step) {
    require(isEnabled);
    *isEnabled = step.enabled;
  });
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo) {
  Update outcome;
  const CUresult result = exec_update(hGraphExec, hGraph, &outcome);
  if (!resultInfo) return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
  *resultInfo = {outcome.result, outcome.node, outcome.from};
  return result;
}

CUresult cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                           CUgraphExecUpdateResult* updateResult_out) {
  Update outcome;
  const CUresult result = exec_update(hGraphExec, hGraph, &outcome);
  if (hErrorNode_out) *hErrorNode_out = outcome.node;
  if (updateResult_out) *updateResult_out = outcome.result;
  return result;
}
