// Inputs of the worked kernels, drawn as emu_fwd.cpp and emu_bwd.cpp draw them, and the recurrences
// in float64.

#include <map>
#include <tuple>

#include "tests/emulator/worked.h"

namespace emulator_test {
namespace {

using Doubles = std::vector<double>;
constexpr int kEvery = 64;  // the shortest chunk

uint16_t to_bfloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// Token (b, t), with b counted over the batch.
struct Row {
  const uint16_t* x;
  double value(const WorkedShape& s, int head, int i) const {
    return from_bfloat(x[head * s.p + i]);
  }
  double b(const WorkedShape& s, int group, int i) const {
    return from_bfloat(x[s.heads * s.p + group * s.n + i]);
  }
  double c(const WorkedShape& s, int group, int i) const {
    return from_bfloat(x[s.heads * s.p + s.groups * s.n + group * s.n + i]);
  }
};

int group_of(const WorkedShape& s, int head) { return head / (s.heads / s.groups); }

template <class Case>
void draw_common(Case* c, std::mt19937& random, std::normal_distribution<float>& normal) {
  const WorkedShape& s = c->shape;
  c->dt.resize(size_t(s.batch) * s.tokens * s.heads);
  for (float& value : c->dt) value = float(normal(random) - 2);
}

void forward_heads(ForwardCase* c, std::mt19937& random, std::normal_distribution<float>& normal) {
  for (int h = 0; h < WorkedShape::heads; ++h) {
    const float a = float(-std::exp(normal(random)));
    c->a.push_back(h == 1 ? -30 : a);
    c->bias.push_back(float(normal(random) * .3f));
    c->d.push_back(h == 2 ? .37f : 1.f);
  }
}

// One head of one sequence.
void forward_head(ForwardCase* c, int b, int h) {
  const WorkedShape& s = c->shape;
  const size_t place = (size_t(b) * s.heads + h) * s.p * s.n;
  Doubles state(c->start.begin() + place, c->start.begin() + place + s.p * s.n);
  for (int t = 0; t < s.tokens; ++t) {
    const size_t token = size_t(b) * s.tokens + t;
    const Row row{&c->x[token * s.stride]};
    if (t % kEvery == 0) {
      std::copy(state.begin(), state.end(), c->states[t / kEvery].begin() + place);
    }
    const double raw = double(c->dt[token * s.heads + h]) + c->bias[h];
    const double dt = std::log1p(std::exp(raw)), decay = std::exp(dt * c->a[h]);
    Doubles bs, cs;
    for (int n = 0; n < s.n; ++n) {
      bs.push_back(row.b(s, group_of(s, h), n));
      cs.push_back(row.c(s, group_of(s, h), n));
    }
    for (int q = 0; q < s.p; ++q) {
      const double x = row.value(s, h, q);
      double y = c->d[h] * x;
      for (int n = 0; n < s.n; ++n) {
        double& value = state[q * s.n + n];
        value = decay * value + dt * x * bs[n];
        y += value * cs[n];
      }
      c->y[(token * s.heads + h) * s.p + q] = y;
    }
  }
  std::copy(state.begin(), state.end(), c->end.begin() + place);
}

ForwardCase make_forward(const WorkedShape& s) {
  ForwardCase c;
  c.shape = s;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  c.x.resize(size_t(s.batch) * s.tokens * s.stride);
  for (uint16_t& value : c.x) value = to_bfloat(float(normal(random)));
  draw_common(&c, random, normal);
  forward_heads(&c, random, normal);
  c.start.resize(s.states());
  for (float& value : c.start) value = float(normal(random));
  c.y.resize(s.values());
  c.end.resize(s.states());
  c.states.assign((s.tokens + kEvery - 1) / kEvery, Doubles(s.states()));
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) forward_head(&c, b, h);
  }
  return c;
}

// One head of one sequence on its way back.
class BackwardHead {
 public:
  BackwardHead(BackwardCase* c, int b, int h) : c_(*c), s_(c->shape), b_(b), h_(h) {
    g_ = group_of(s_, h);
    place_ = (size_t(b) * s_.heads + h) * s_.p * s_.n;
  }

  void run(const std::vector<float>& start) {
    states_.assign(s_.tokens + 1, Doubles(size_t(s_.p) * s_.n));
    std::copy_n(start.begin() + place_, states_[0].size(), states_[0].begin());
    for (int t = 0; t < s_.tokens; ++t) forth(t);
    gradient_.assign(c_.d_end.begin() + place_, c_.d_end.begin() + place_ + s_.p * s_.n);
    for (int t = s_.tokens - 1; t >= 0; --t) back(t);
    std::copy(gradient_.begin(), gradient_.end(), c_.d_start.begin() + place_);
  }

 private:
  size_t token(int t) const { return size_t(b_) * s_.tokens + t; }
  Row row(int t) const { return {&c_.x[token(t) * s_.stride]}; }
  double raw(int t) const { return double(c_.dt[token(t) * s_.heads + h_]) + c_.bias[h_]; }
  double dt(int t) const { return std::log1p(std::exp(raw(t))); }

  void forth(int t) {
    const double step = dt(t), decay = std::exp(step * c_.a[h_]);
    if (t % c_.every == 0) {
      const size_t saves = (s_.tokens + c_.every - 1) / c_.every;
      const size_t to = ((b_ * saves + t / c_.every) * s_.heads + h_) * s_.p * s_.n;
      for (size_t i = 0; i < states_[t].size(); ++i)
        c_.saved[to + i] = to_bfloat(float(states_[t][i]));
    }
    Doubles bs;
    for (int n = 0; n < s_.n; ++n) bs.push_back(row(t).b(s_, g_, n));
    for (int q = 0; q < s_.p; ++q) {
      const double x = row(t).value(s_, h_, q);
      for (int n = 0; n < s_.n; ++n) {
        states_[t + 1][q * s_.n + n] = decay * states_[t][q * s_.n + n] + step * x * bs[n];
      }
    }
  }

  void back(int t) {
    const double step = dt(t), decay = std::exp(step * c_.a[h_]);
    double* const db = &c_.db[(token(t) * s_.groups + g_) * s_.n];
    double* const dc = &c_.dc[(token(t) * s_.groups + g_) * s_.n];
    double d_decay = 0, d_step = 0;
    Doubles bs, cs;
    for (int n = 0; n < s_.n; ++n) {
      bs.push_back(row(t).b(s_, g_, n));
      cs.push_back(row(t).c(s_, g_, n));
    }
    for (int q = 0; q < s_.p; ++q) {
      const size_t at = (token(t) * s_.heads + h_) * s_.p + q;
      const double x = row(t).value(s_, h_, q), dy = from_bfloat(c_.dy[at]);
      double v = 0;
      for (int n = 0; n < s_.n; ++n) {
        double& gradient = gradient_[q * s_.n + n];
        gradient += dy * cs[n];
        dc[n] += states_[t + 1][q * s_.n + n] * dy;
        db[n] += step * gradient * x;
        v += gradient * bs[n];
        d_decay += gradient * decay * states_[t][q * s_.n + n];
        gradient *= decay;
      }
      c_.dx[at] = step * v + c_.d[h_] * dy;
      d_step += x * v;
      c_.dd[h_] += x * dy;
    }
    const double d_raw = (d_step + c_.a[h_] * d_decay) / (1 + std::exp(-raw(t)));
    c_.ddt[token(t) * s_.heads + h_] = d_raw;
    c_.dbias[h_] += d_raw;
    c_.da[h_] += step * d_decay;
  }

  BackwardCase& c_;
  const WorkedShape& s_;
  const int b_, h_;
  int g_;
  size_t place_;
  std::vector<Doubles> states_;
  Doubles gradient_;
};

void backward_heads(BackwardCase* c, std::mt19937& random,
                    std::normal_distribution<float>& normal) {
  for (int h = 0; h < WorkedShape::heads; ++h) {
    const float a = float(-std::exp(normal(random)));
    c->a.push_back(h % 4 == 1 ? -30 : h % 4 == 3 ? -.05f : a);
    c->bias.push_back(float(normal(random) * .3f));
    c->d.push_back(h == 2 ? .37f : 1.f);
  }
}

BackwardCase make_backward(const WorkedShape& s, int every) {
  BackwardCase c;
  c.shape = s;
  c.every = every;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  c.x.resize(size_t(s.batch) * s.tokens * s.stride);
  for (uint16_t& value : c.x) value = to_bfloat(float(normal(random)));
  c.dy.resize(s.values());
  for (uint16_t& value : c.dy) value = to_bfloat(float(normal(random)));
  draw_common(&c, random, normal);
  backward_heads(&c, random, normal);
  std::vector<float> start(s.states());
  for (float& value : start) value = float(normal(random));
  c.d_end.resize(s.states());
  for (float& value : c.d_end) value = float(normal(random));
  const size_t saves = (s.tokens + every - 1) / every;
  c.saved.resize(saves * s.states());
  c.dx.resize(s.values());
  c.ddt.resize(c.dt.size());
  c.db.resize(size_t(s.batch) * s.tokens * s.groups * s.n);
  c.dc = c.db;
  c.da.resize(s.heads);
  c.dbias = c.dd = c.da;
  c.d_start.resize(s.states());
  for (int b = 0; b < s.batch; ++b) {
    for (int h = 0; h < s.heads; ++h) BackwardHead(&c, b, h).run(start);
  }
  return c;
}

}  // namespace

double from_bfloat(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

std::vector<double> from_bfloat(const std::vector<uint16_t>& bits) {
  std::vector<double> values;
  for (uint16_t one : bits) values.push_back(from_bfloat(one));
  return values;
}

const ForwardCase& forward_case(const WorkedShape& shape) {
  static std::map<std::tuple<int, int, int>, ForwardCase> known;
  const auto [at, fresh] = known.try_emplace({shape.tokens, shape.p, shape.n});
  if (fresh) at->second = make_forward(shape);
  return at->second;
}

const BackwardCase& backward_case(const WorkedShape& shape, int every) {
  static std::map<std::tuple<int, int, int, int>, BackwardCase> known;
  const auto [at, fresh] = known.try_emplace({shape.tokens, shape.p, shape.n, every});
  if (fresh) at->second = make_backward(shape, every);
  return at->second;
}

}  // namespace emulator_test
