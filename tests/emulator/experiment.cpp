#include "tests/emulator/experiment.h"

#include <sstream>

namespace emulator_test {
namespace {

void replace_once(std::string* text, const Edit& edit) {
  const size_t at = text->find(edit.from);
  if (at == std::string::npos || text->find(edit.from, at + 1) != std::string::npos) {
    throw std::runtime_error("not there exactly once in " + edit.file + ": " + edit.from);
  }
  text->replace(at, edit.from.size(), edit.to);
}

void apply(const Edit& edit, Sources* sources, bool to_ptx, std::string* ptx) {
  if (to_ptx != (edit.file == "ptx")) return;
  if (to_ptx) return replace_once(ptx, edit);
  for (Header& text : *sources) {
    if (text.name == edit.file) return replace_once(&text.text, edit);
  }
  throw std::runtime_error("no text is named " + edit.file);
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all{{"sm_75", 7, 5},    {"sm_80", 8, 0},
                                             {"sm_86", 8, 6},    {"sm_90a", 9, 0},
                                             {"sm_100a", 10, 0}, {"sm_120a", 12, 0}};
  return all;
}

const Architecture& architecture(const std::string& name) {
  for (const Architecture& part : architectures()) {
    if (part.name == name) return part;
  }
  throw std::runtime_error("no architecture is named " + name);
}

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = [] {
    std::vector<Experiment> list;
    for (auto part :
         {block_experiments, arithmetic_experiments, control_experiments, worked_experiments}) {
      for (Experiment& one : part()) list.push_back(std::move(one));
    }
    return list;
  }();
  return all;
}

const Experiment& experiment(const std::string& name) {
  for (const Experiment& one : experiments()) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("no experiment is named " + name);
}

std::function<Sources(const Architecture&)> kernel_file(const std::string& name) {
  return [name](const Architecture&) {
    return Sources{{name, source_file("tests/emulator/kernels/" + name)}};
  };
}

std::string compiled(const Experiment& experiment, const Architecture& part,
                     const std::vector<Edit>& edits) {
  Sources sources = experiment.sources(part);
  for (const Edit& edit : edits) apply(edit, &sources, false, nullptr);
  std::vector<std::string> options = experiment.options;
  options.push_back("-lineinfo");
  const std::vector<Header> headers(sources.begin() + 1, sources.end());
  std::string ptx = compile(sources.front().text, part.name, options, headers);
  for (const Edit& edit : edits) apply(edit, nullptr, true, &ptx);
  return ptx;
}

Outcome perform(const Experiment& experiment, const Architecture& part, int size, uint64_t seed,
                const std::vector<Edit>& edits) {
  const std::string ptx = compiled(experiment, part, edits);
  Device device(part.major, part.minor);
  device.seed(seed);
  std::mt19937 random{unsigned(seed)};
  Run run{device, part, ptx, random, size};
  Outcome outcome;
  try {
    outcome.error = experiment.error(run);
    outcome.wrong = !(outcome.error <= experiment.tolerance);
  } catch (const Faulted& fault) {
    outcome.reported = true;
    outcome.code = fault.code;
    outcome.report = fault.report;
  }
  return outcome;
}

std::string Outcome::what() const {
  std::ostringstream text;
  if (reported) {
    text << "code " << int(code) << "\n" << report;
  } else {
    text << "error " << error;
  }
  return text.str();
}

}  // namespace emulator_test
