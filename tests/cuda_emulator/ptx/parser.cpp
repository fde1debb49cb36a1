// The directives of a module.

#include <algorithm>
#include <array>

#include "tests/cuda_emulator/ptx/body.h"
#include "tests/cuda_emulator/ptx/constant.h"
#include "tests/cuda_emulator/ptx/locations.h"
#include "tests/cuda_emulator/ptx/reader.h"
#include "tests/cuda_emulator/ptx/variables.h"

namespace emulator::ptx {

namespace {

constexpr uint64_t kMostRegisters = uint64_t{1} << 20;  // of all functions
constexpr uint64_t kMostThreads = 0x7fffffff;           // in a directive

enum class Linking : uint8_t { none, external, visible, weak, common };

bool same_parameters(const std::vector<Variable>& a, const std::vector<Variable>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Variable& x, const Variable& y) {
                      return x.type == y.type && x.bytes == y.bytes && x.alignment == y.alignment;
                    });
}

class ModuleReader {
 public:
  explicit ModuleReader(std::string_view text) : reader_(text) {}

  Module read() {
    header();
    while (!reader_.at(Token::Kind::end)) directive();
    locations_.check(module_);
    return std::move(module_);
  }

 private:
  void header() {
    if (!reader_.accept_dotted("version")) reader_.unexpected(".version");
    version();
    if (!reader_.accept_dotted("target")) reader_.unexpected(".target");
    target();
    if (!reader_.accept_dotted("address_size")) reader_.unexpected(".address_size");
    if (read_literal(reader_, 32, 64, "the size of addresses") != 64) {
      reader_.fail("only addresses of 64 bits are handled");
    }
  }

  // Two numbers with a dot between them, which the lexer sees as one.
  void version() {
    if (!reader_.at(Token::Kind::number)) reader_.unexpected("a version");
    const std::string_view text = reader_.token().text;
    const size_t dot = text.find('.');
    if (dot != 1 || text.size() != 3 || text[2] < '0' || text[2] > '9') {
      reader_.fail_ahead("a malformed version");
    }
    module_.version_major = text[0] - '0';
    module_.version_minor = text[2] - '0';
    if (module_.version_major < 6) reader_.fail_ahead("versions before 6.0 are not handled");
    reader_.take();
  }

  void target() {
    const int line = reader_.line();
    const std::string_view name = reader_.word("a target");
    std::string_view number = name.substr(0, 3) == "sm_" ? name.substr(3) : std::string_view();
    if (!number.empty() && (number.back() == 'a' || number.back() == 'f')) number.remove_suffix(1);
    const bool digits =
        std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits || number.size() < 2 || number.size() > 3 || number[0] == '0') {
      throw Error(line, "unknown target " + quoted(name));
    }
    module_.target = name;
    while (reader_.accept(',')) {
      const std::string_view option = reader_.word("an option of the target");
      if (option != "debug") reader_.fail("unknown option " + quoted(option) + " of the target");
      module_.debug = true;
    }
  }

  void directive() {
    if (!reader_.at(Token::Kind::dotted)) reader_.unexpected("a directive");
    const Linking linking = this->linking();
    const Token name = reader_.token();
    if (name.kind != Token::Kind::dotted) reader_.unexpected("a directive");
    reader_.take();
    if (name.text == "entry") return function(linking, true);
    if (name.text == "func") return function(linking, false);
    if (name.text == "global") return variables(linking, Space::global);
    if (name.text == "const") return variables(linking, Space::constant);
    if (name.text == "shared") return variables(linking, Space::shared);
    if (linking != Linking::none) {
      throw Error(name.line, "expected a function or a variable before " +
                                 quoted("." + std::string(name.text)));
    }
    if (name.text == "file") return locations_.read_file(reader_, module_);
    if (name.text == "loc") return locations_.read_location(reader_);
    if (name.text == "section") return section();
    if (name.text == "pragma") return pragma();
    throw Error(name.line, "unknown directive " + quoted("." + std::string(name.text)));
  }

  Linking linking() {
    static constexpr std::array<std::pair<const char*, Linking>, 4> kNames = {
        {{"extern", Linking::external},
         {"visible", Linking::visible},
         {"weak", Linking::weak},
         {"common", Linking::common}}};
    for (const auto& [name, linking] : kNames) {
      if (reader_.accept_dotted(name)) return linking;
    }
    return Linking::none;
  }

  // Debug information.
  void section() {
    if (reader_.at(Token::Kind::dotted) || reader_.at(Token::Kind::word)) {
      reader_.take();
    } else {
      reader_.unexpected("the name of a section");
    }
    reader_.skip_braces();
  }

  void pragma() {
    do {
      if (!reader_.at(Token::Kind::string)) reader_.unexpected("a string");
      reader_.take();
    } while (reader_.accept(','));
    reader_.expect(';');
  }

  void variables(Linking linking, Space space) {
    VariableReader variables(reader_);
    const Declared declared = variables.declared();
    if (linking == Linking::common && space != Space::global) {
      reader_.fail(".common is only for variables in .global");
    }
    if (declared.managed && space != Space::global) {
      reader_.fail("only variables in .global can be managed");
    }
    do {
      std::string_view name;
      Variable variable = variables.declarator(declared, space, name);
      variable.external = linking == Linking::external;
      variable.visible = linking != Linking::none && !variable.external;
      const int line = reader_.line();
      variables.initial(variable, symbols_, module_);
      if (variable.bytes == 0 && !variable.external) throw Error(line, "an array of unknown size");
      add(std::move(variable), name);
    } while (reader_.accept(','));
    reader_.expect(';');
  }

  // An external declaration may come again, and the definition behind it.
  void add(Variable variable, std::string_view name) {
    const Symbol first = symbols_.find(name);
    if (first.kind == Symbol::Kind::none) {
      symbols_.add(name, {Symbol::Kind::variable, static_cast<uint32_t>(module_.variables.size()),
                          variable.line});
      module_.variables.push_back(std::move(variable));
      return;
    }
    if (first.kind != Symbol::Kind::variable) {
      fail_declared_twice(name, variable.line, first.line);
    }
    Variable& known = module_.variables[first.index];
    if (!known.external) fail_declared_twice(name, variable.line, first.line);
    if (known.space != variable.space || known.type != variable.type ||
        (known.bytes != variable.bytes && known.bytes != 0 && variable.bytes != 0)) {
      throw Error(variable.line,
                  quoted(name) + " is declared otherwise in line " + std::to_string(first.line));
    }
    known = std::move(variable);
  }

  void function(Linking linking, bool entry) {
    Function out;
    VariableReader variables(reader_);
    out.entry = entry;
    if (linking == Linking::common) reader_.fail(".common is only for variables in .global");
    out.visible = linking == Linking::visible || linking == Linking::weak;
    if (reader_.at_dotted("attribute")) attribute();
    if (!entry && reader_.at('(')) out.results = variables.parameters(1, false, false);
    out.line = reader_.line();
    const std::string_view name = reader_.word("the name of a function");
    if (name == "_" || name == "WARP_SZ") reader_.fail(quoted(name) + " cannot be declared");
    out.name = name;
    out.parameters = variables.parameters(kMostParameters, false, entry);
    performance_directives(out);
    if (out.max_threads[0] && out.required_threads[0]) {
      throw Error(out.line, ".maxntid and .reqntid exclude each other");
    }
    if (out.required_cluster[0] && out.max_cluster_rank) {
      throw Error(out.line, ".reqnctapercluster and .maxclusterrank exclude each other");
    }
    Function& known = declare(std::move(out), name);
    if (reader_.at('{')) {
      body(known, linking);
    } else {
      reader_.expect(';');
    }
    locations_.clear();
  }

  void attribute() {
    reader_.take();
    reader_.expect('(');
    if (!reader_.accept_dotted("unified")) reader_.unexpected(".unified");
    reader_.expect('(');
    read_integer(reader_, "an identity");
    reader_.expect(',');
    read_integer(reader_, "an identity");
    reader_.expect(')');
    reader_.expect(')');
  }

  void body(Function& function, Linking linking) {
    if (linking == Linking::external) reader_.fail("an external function has no body here");
    if (function.defined) {
      throw Error(function.line, quoted(function.name) + " has a body already");
    }
    function.defined = true;
    BodyReader(reader_, locations_, symbols_, module_, function).read(registers_left_);
    registers_left_ -= function.registers.size();
  }

  // What is declared already must be declared alike; gives the function of that name.
  Function& declare(Function function, std::string_view name) {
    const Symbol first = symbols_.find(name);
    if (first.kind == Symbol::Kind::none) {
      symbols_.add(name, {Symbol::Kind::function, static_cast<uint32_t>(module_.functions.size()),
                          function.line});
      return module_.functions.emplace_back(std::move(function));
    }
    if (first.kind != Symbol::Kind::function) {
      fail_declared_twice(name, function.line, first.line);
    }
    Function& known = module_.functions[first.index];
    if (known.entry != function.entry || !same_parameters(known.results, function.results) ||
        !same_parameters(known.parameters, function.parameters)) {
      throw Error(function.line,
                  quoted(name) + " is declared otherwise in line " + std::to_string(first.line));
    }
    if (known.defined) {
      if (reader_.at('{')) fail_declared_twice(name, function.line, first.line);
      return known;
    }
    function.no_return |= known.no_return;
    function.visible |= known.visible;
    known = std::move(function);
    return known;
  }

  void performance_directives(Function& out) {
    while (reader_.at(Token::Kind::dotted)) {
      const Token name = reader_.take();
      if (name.text == "noreturn" && !out.entry) {
        out.no_return = true;
      } else if (name.text == "pragma") {
        pragma();
      } else if (name.text == "loc") {
        locations_.read_location(reader_);
      } else if (name.text == "abi_preserve" || name.text == "abi_preserve_control") {
        read_literal(reader_, 0, 65536, "a number of registers");
      } else if (!out.entry || !entry_directive(name.text, out)) {
        throw Error(name.line,
                    "unknown directive " + quoted("." + std::string(name.text)) + " of a function");
      }
    }
  }

  bool entry_directive(std::string_view name, Function& out) {
    if (name == "maxntid") {
      dimensions(out.max_threads);
    } else if (name == "reqntid") {
      dimensions(out.required_threads);
    } else if (name == "reqnctapercluster") {
      dimensions(out.required_cluster);
    } else if (name == "minnctapersm") {
      out.min_blocks = count("a number of blocks");
    } else if (name == "maxnctapersm") {
      count("a number of blocks");  // the older name of a limit that changes nothing here
    } else if (name == "maxnreg") {
      out.max_registers = count("a number of registers");
    } else if (name == "maxclusterrank") {
      out.max_cluster_rank = count("a number of blocks");
    } else if (name == "explicitcluster") {
      out.explicit_cluster = true;
    } else if (name == "blocksareclusters") {
      out.blocks_are_clusters = true;
    } else {
      return false;
    }
    return true;
  }

  uint32_t count(const char* what) {
    return static_cast<uint32_t>(read_count(reader_, 1, kMostThreads, what));
  }

  // One to three numbers; those left out are 1.
  void dimensions(uint32_t (&out)[3]) {
    out[0] = count("a number of threads");
    out[1] = reader_.accept(',') ? count("a number of threads") : 1;
    out[2] = out[1] && reader_.accept(',') ? count("a number of threads") : 1;
  }

  Reader reader_;
  Module module_;
  Symbols symbols_;
  Locations locations_;
  uint64_t registers_left_ = kMostRegisters;
};

}  // namespace

const Function* Module::function(std::string_view name) const {
  const auto found = std::find_if(functions.begin(), functions.end(),
                                  [&](const Function& f) { return f.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

const Variable* Module::variable(std::string_view name) const {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const Variable& v) { return v.name == name; });
  return found == variables.end() ? nullptr : &*found;
}

Module parse(std::string_view text) { return ModuleReader(text).read(); }

}  // namespace emulator::ptx
