#include "tests/emulator/worked.h"

#include <algorithm>

namespace emulator_test {
namespace {

Header text_of(const std::string& name) { return {name, source_file("tests/kernels/" + name)}; }

std::string number(int value) { return std::to_string(value); }

// The kernel as it stands with its configuration before it and, after it, how much shared memory it
// wants.
Sources sources_of(const std::string& configuration, const std::string& file,
                   const std::vector<std::string>& headers) {
  Sources all{{"main.cu", "#define CFG " + configuration + "\n#include \"" + file +
                              "\"\n__device__ int shared_bytes = K::SMEM;\n"},
              text_of(file)};
  for (const std::string& header : headers) all.push_back(text_of(header));
  return all;
}

unsigned shared_bytes(Device& device) {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  int value = 0;
  require_success(call<CUresult (*)(CUdeviceptr*, size_t*, CUmodule, const char*)>(
                      "cuModuleGetGlobal_v2")(&address, &bytes, device.module(), "shared_bytes"),
                  "cuModuleGetGlobal");
  require_success(
      call<CUresult (*)(void*, CUdeviceptr, size_t)>("cuMemcpyDtoH_v2")(&value, address, 4),
      "cuMemcpyDtoH");
  return unsigned(value);
}

struct Loaded {
  CUfunction function;
  unsigned shared;
};

Loaded load(Run& run, const std::string& ptx, const char* kernel) {
  const CUfunction function = run.device.load(ptx, kernel);
  const unsigned shared = shared_bytes(run.device);
  run.device.allow_shared(function, shared);
  return {function, shared};
}

struct ForwardArguments {
  CUdeviceptr x, b, c, dt, a, bias, d, start, end, y, states;
  int tokens;
};

struct BackwardArguments {
  CUdeviceptr x, b, c, dy, states, gradients, dt, a, bias, d, d_end, gradients_out, d_start, dx,
      ddt, db, dc, part, db_heads, dc_heads;
  int tokens, splits;
};

// Buffers of a backward case.
struct BackwardBuffers {
  explicit BackwardBuffers(const BackwardCase& c)
      : x(Buffer::of(c.x)),
        dy(Buffer::of(c.dy)),
        states(Buffer::of(c.saved)),
        dt(Buffer::of(c.dt)),
        a(Buffer::of(c.a)),
        bias(Buffer::of(c.bias)),
        d(Buffer::of(c.d)),
        d_end(Buffer::of(c.d_end)),
        d_start(c.d_start.size() * 4),
        dx(c.dx.size() * 2),
        ddt(c.ddt.size() * 4) {}

  BackwardArguments arguments(const WorkedShape& s) const {
    BackwardArguments p{};
    p.x = x.address();
    p.b = p.x + size_t(s.heads) * s.p * 2;
    p.c = p.b + size_t(s.groups) * s.n * 2;
    p.dy = dy.address();
    p.states = states.address();
    p.dt = dt.address();
    p.a = a.address();
    p.bias = bias.address();
    p.d = d.address();
    p.d_end = d_end.address();
    p.d_start = d_start.address();
    p.dx = dx.address();
    p.ddt = ddt.address();
    p.tokens = s.tokens;
    p.splits = 1;
    return p;
  }

  Buffer x, dy, states, dt, a, bias, d, d_end, d_start, dx, ddt;
};

// Sums over batch and chunks of what blocks leave for a head: dA, d(dt_bias), dD.
void add_up(const std::vector<float>& part, const BackwardCase& c, BackwardErrors* errors) {
  const int heads = WorkedShape::heads;
  std::vector<double> sums[3];
  for (int k = 0; k < 3; ++k) {
    sums[k].resize(heads);
    for (size_t i = 0; i < part.size() / 3; ++i) sums[k][i % heads] += part[i * 3 + k];
  }
  errors->da = relative_l2(sums[0], c.da);
  errors->dbias = relative_l2(sums[1], c.dbias);
  errors->dd = relative_l2(sums[2], c.dd);
}

// Sums over the heads of a group.
std::vector<double> over_heads(const std::vector<uint16_t>& values, const WorkedShape& s) {
  const int each = s.heads / s.groups;
  std::vector<double> sums(values.size() / each);
  for (size_t i = 0; i < values.size(); ++i) {
    sums[i / s.n / each * s.n + i % s.n] += from_bfloat(values[i]);
  }
  return sums;
}

double worst(std::initializer_list<double> values) {
  double all = 0;
  for (double value : values) {
    if (!(value <= all)) all = value;  // NaN too
  }
  return all;
}

}  // namespace

std::string ForwardConfiguration::text() const {
  std::string all;
  for (int value : {q, p, n, warps, stages, heads, buffers, save}) all += number(value) + ",";
  return all + "false";
}

Sources forward_sources(const ForwardConfiguration& configuration) {
  return sources_of(configuration.text(), "fwd.cu", {"fwd.h", "proto.h"});
}

Sources backward_sources(const BackwardConfiguration& configuration) {
  return sources_of(configuration.type, configuration.source, {"bwdc.h", "bwd.h", "proto.h"});
}

std::vector<std::string> worked_options() {
  return {"-DHH=" + number(WorkedShape::heads), "-DGG=" + number(WorkedShape::groups),
          "-DTSX=" + number(WorkedShape::stride)};
}

double ForwardErrors::worst() const { return emulator_test::worst({y, end, saved}); }

double BackwardErrors::gradients() const { return worst({dx, db, dc, ddt, d_start}); }

ForwardErrors run_forward(Run& run, const ForwardConfiguration& k) {
  const ForwardCase& c = forward_case({run.size, k.p, k.n});
  const WorkedShape& s = c.shape;
  const int chunks = (s.tokens + k.q - 1) / k.q;
  const int saves = k.save ? (chunks + k.save - 1) / k.save : 0;
  const Buffer x = Buffer::of(c.x), dt = Buffer::of(c.dt), a = Buffer::of(c.a),
               bias = Buffer::of(c.bias), d = Buffer::of(c.d), start = Buffer::of(c.start),
               end(s.states() * 4), y(s.values() * 2), states(saves * s.states() * 2);
  const Loaded kernel = load(run, run.ptx, "fwd");
  const CUdeviceptr b = x.address() + size_t(s.heads) * s.p * 2;
  run.launch(kernel.function, {unsigned(s.batch * s.heads / k.heads)}, {unsigned(k.warps * 32)},
             kernel.shared,
             ForwardArguments{x.address(), b, b + size_t(s.groups) * s.n * 2, dt.address(),
                              a.address(), bias.address(), d.address(), start.address(),
                              end.address(), y.address(), states.address(), s.tokens});
  ForwardErrors errors{relative_l2(from_bfloat(y.read<uint16_t>()), c.y),
                       relative_l2(end.read<float>(), c.end), 0};
  if (saves == 0) return errors;
  const std::vector<double> got = from_bfloat(states.read<uint16_t>());
  std::vector<double> wanted;
  const size_t each = size_t(s.heads) * s.p * s.n;
  for (int batch = 0; batch < s.batch; ++batch) {
    for (int save = 0; save < saves; ++save) {
      const std::vector<double>& at = c.states[save * k.save * k.q / 64];
      wanted.insert(wanted.end(), at.begin() + batch * each, at.begin() + (batch + 1) * each);
    }
  }
  errors.saved = relative_l2(got, wanted);
  return errors;
}

BackwardErrors run_backward(Run& run, const std::string& reverse, const BackwardConfiguration& k) {
  const BackwardCase& c = backward_case({run.size, k.p, k.n}, k.q * k.remake);
  const WorkedShape& s = c.shape;
  const int chunks = (s.tokens + k.q - 1) / k.q;
  const BackwardBuffers buffers(c);
  const Buffer gradients(c.saved.size() * 2), db(c.db.size() * 4), dc(c.dc.size() * 4),
      part(size_t(s.batch) * chunks * s.heads * 3 * 4);
  BackwardArguments p = buffers.arguments(s);
  p.gradients_out = gradients.address();
  const Loaded first = load(run, reverse, "bwd"), second = load(run, run.ptx, "bwd");
  run.launch(first.function, {unsigned(s.batch * s.heads)}, {128}, first.shared, p);
  p.gradients = gradients.address();
  p.db = db.address();
  p.dc = dc.address();
  p.part = part.address();
  run.launch(second.function, {unsigned(s.batch * chunks * s.groups)}, {unsigned(k.warps * 32)},
             second.shared, p);
  BackwardErrors errors{};
  errors.dx = relative_l2(from_bfloat(buffers.dx.read<uint16_t>()), c.dx);
  errors.db = relative_l2(db.read<float>(), c.db);
  errors.dc = relative_l2(dc.read<float>(), c.dc);
  errors.ddt = relative_l2(buffers.ddt.read<float>(), c.ddt);
  errors.d_start = relative_l2(buffers.d_start.read<float>(), c.d_start);
  add_up(part.read<float>(), c, &errors);
  return errors;
}

BackwardErrors run_backward_serial(Run& run, const BackwardConfiguration& k) {
  const BackwardCase& c = backward_case({run.size, k.p, k.n}, k.q);
  const WorkedShape& s = c.shape;
  const int chunks = (s.tokens + k.q - 1) / k.q;
  const BackwardBuffers buffers(c);
  const size_t heads = size_t(s.batch) * s.tokens * s.heads * s.n;
  const Buffer db(heads * 2), dc(heads * 2), part(size_t(s.batch) * chunks * s.heads * 3 * 4);
  BackwardArguments p = buffers.arguments(s);
  p.db_heads = db.address();
  p.dc_heads = dc.address();
  p.part = part.address();
  const Loaded kernel = load(run, run.ptx, "bwd");
  run.launch(kernel.function, {unsigned(s.batch * s.heads)}, {unsigned(k.warps * 32)},
             kernel.shared, p);
  BackwardErrors errors{};
  errors.dx = relative_l2(from_bfloat(buffers.dx.read<uint16_t>()), c.dx);
  errors.db = relative_l2(over_heads(db.read<uint16_t>(), s), c.db);
  errors.dc = relative_l2(over_heads(dc.read<uint16_t>(), s), c.dc);
  errors.ddt = relative_l2(buffers.ddt.read<float>(), c.ddt);
  errors.d_start = relative_l2(buffers.d_start.read<float>(), c.d_start);
  add_up(part.read<float>(), c, &errors);
  return errors;
}

}  // namespace emulator_test
