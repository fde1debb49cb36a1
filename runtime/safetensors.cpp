#include "runtime/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "dsl/error.h"
#include "runtime/file.h"
#include "runtime/half.h"

namespace krait {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kLengthBytes = 8;
// The format's own limit; also keeps a lying length from asking for much memory.
constexpr std::uint64_t kMaxHeader = 100'000'000;

struct FileDType {
  DType dtype;
  const char* name;
};
constexpr FileDType kDTypes[] = {{DType::f64, "F64"},
                                 {DType::f32, "F32"},
                                 {DType::f16, "F16"},
                                 {DType::bf16, "BF16"},
                                 {DType::i32, "I32"}};

const char* file_name(DType dtype) {
  for (const FileDType& known : kDTypes) {
    if (known.dtype == dtype) return known.name;
  }
  throw InternalError("a dtype without a name in safetensors");
}

/// A short form of a value for messages: headers may hold anything, of any length.
std::string excerpt(const json& value) {
  std::string all = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr std::size_t kLongest = 60;
  if (all.size() > kLongest) all = all.substr(0, kLongest) + "...";
  return all;
}

/// Parses the header; JSON libraries take the last of two equal keys, a file must not have two.
json parse_header(const std::string& text, const std::string& file) {
  std::vector<std::set<std::string>> open;
  const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
        // Header, tensor or metadata; deeper nesting means nothing and could cost much.
        KRAIT_REQUIRE(depth < 3, file, ": header nests ", depth, " objects deep; allowed: 2");
        open.emplace_back();
        break;
      case json::parse_event_t::array_start:
        KRAIT_REQUIRE(depth < 4, file, ": header nests ", depth, " levels deep; allowed: 3");
        break;
      case json::parse_event_t::object_end: open.pop_back(); break;
      case json::parse_event_t::key:
        KRAIT_REQUIRE(open.back().insert(parsed.get<std::string>()).second, file, ": header has ",
                      excerpt(parsed), " twice; allowed: names that differ");
        break;
      default: break;
    }
    return true;
  };
  try {
    json header = json::parse(text, watch);
    KRAIT_REQUIRE(header.is_object(), file, ": header is ", excerpt(header),
                  "; allowed: a JSON object");
    return header;
  } catch (const json::exception& error) {
    throw UsageError(krait::text(file, ": header is not JSON: ", error.what(),
                                 "; allowed: a JSON object of ", text.size(), " bytes"));
  }
}

std::uint64_t natural(const json& value, const std::string& field) {
  KRAIT_REQUIRE(value.is_number_unsigned(), field, " is ", excerpt(value),
                "; allowed: a whole number from 0");
  return value.get<std::uint64_t>();
}

struct Entry {
  std::string name;
  StoredTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

DType parse_dtype(const json& value, const std::string& field) {
  std::string names;
  for (const FileDType& known : kDTypes) {
    if (value.is_string() && value.get_ref<const std::string&>() == known.name) return known.dtype;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw UsageError(field, excerpt(value), names);
}

/// Bytes of a tensor, or nothing where the number does not fit.
std::optional<std::uint64_t> byte_count(const std::vector<std::int64_t>& shape, DType dtype) {
  std::uint64_t bytes = size_in_bytes(dtype);
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(size), &bytes)) return {};
  }
  return bytes;
}

Entry parse_entry(const std::string& name, const json& value, const std::string& file) {
  const std::string where = text(file, ": tensor \"", name, "\"");
  KRAIT_REQUIRE(value.is_object(), where, " is ", excerpt(value),
                "; allowed: an object of dtype, shape and data_offsets");
  for (const auto& [key, unused] : value.items()) {
    KRAIT_REQUIRE(key == "dtype" || key == "shape" || key == "data_offsets", where, " has field ",
                  excerpt(key), "; allowed: dtype, shape, data_offsets");
  }
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    KRAIT_REQUIRE(value.contains(key), where, " has no ", key,
                  "; allowed: dtype, shape and data_offsets, all three");
  }
  Entry entry;
  entry.name = name;
  entry.tensor.dtype = parse_dtype(value["dtype"], where + " dtype");
  const json& shape = value["shape"];
  KRAIT_REQUIRE(shape.is_array(), where, " shape is ", excerpt(shape), "; allowed: an array");
  for (const json& size : shape) {
    const std::uint64_t n = natural(size, where + " shape");
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    KRAIT_REQUIRE(n <= kMost, where, " shape has ", n, "; allowed: at most ", kMost);
    entry.tensor.shape.push_back(static_cast<std::int64_t>(n));
  }
  const json& offsets = value["data_offsets"];
  KRAIT_REQUIRE(offsets.is_array() && offsets.size() == 2, where, " data_offsets is ",
                excerpt(offsets), "; allowed: [begin, end]");
  entry.begin = natural(offsets[0], where + " data_offsets");
  entry.end = natural(offsets[1], where + " data_offsets");
  KRAIT_REQUIRE(entry.begin <= entry.end, where, " data_offsets is ", excerpt(offsets),
                "; allowed: an end that is not before the begin");
  const std::optional<std::uint64_t> bytes = byte_count(entry.tensor.shape, entry.tensor.dtype);
  KRAIT_REQUIRE(bytes.has_value(), where, " shape is ", excerpt(shape),
                "; allowed: sizes whose product fits 64 bits");
  KRAIT_REQUIRE(*bytes == entry.end - entry.begin, where, " data_offsets is ", excerpt(offsets),
                "; allowed: ", *bytes, " bytes, as shape ", excerpt(shape), " of ",
                file_name(entry.tensor.dtype), " takes");
  return entry;
}

std::map<std::string, std::string> parse_metadata(const json& value, const std::string& file) {
  KRAIT_REQUIRE(value.is_object(), file, ": __metadata__ is ", excerpt(value),
                "; allowed: an object of strings");
  std::map<std::string, std::string> metadata;
  for (const auto& [key, entry] : value.items()) {
    KRAIT_REQUIRE(entry.is_string(), file, ": __metadata__ \"", key, "\" is ", excerpt(entry),
                  "; allowed: a string");
    metadata[key] = entry.get<std::string>();
  }
  return metadata;
}

/// Each tensor must begin where the one before it ends, and the last one end with the file.
void check_layout(std::vector<Entry>& entries, std::uint64_t data_bytes, const std::string& file) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    const std::string where = text(file, ": tensor \"", entry.name, "\" data_offsets");
    KRAIT_REQUIRE(entry.end <= data_bytes, where, " ends at ", entry.end, "; allowed: at most ",
                  data_bytes, ", the bytes that the file has behind its header");
    KRAIT_REQUIRE(entry.begin == end, where, " begins at ", entry.begin, "; allowed: ", end,
                  ", where the tensor before it ends");
    end = entry.end;
  }
  KRAIT_REQUIRE(end == data_bytes, file, ": data has ", data_bytes, " bytes; allowed: ", end,
                ", where the last tensor ends");
}

template <typename Element, typename Convert>
void widen(const StoredTensor& tensor, Tensor64& result, const Convert& convert) {
  for (std::size_t i = 0; i < result.data.size(); ++i) {
    Element element;
    std::memcpy(&element, tensor.bytes.data() + i * sizeof(Element), sizeof(Element));
    result.data[i] = convert(element);
  }
}

template <typename Element, typename Convert>
void narrow(const Tensor64& tensor, StoredTensor& result, const Convert& convert) {
  for (std::size_t i = 0; i < tensor.data.size(); ++i) {
    const Element element = convert(tensor.data[i]);
    std::memcpy(result.bytes.data() + i * sizeof(Element), &element, sizeof(Element));
  }
}

}  // namespace

Tensor64 to_tensor64(const StoredTensor& tensor) {
  Tensor64 result(tensor.shape);
  KRAIT_ASSERT(tensor.bytes.size() == result.data.size() * size_in_bytes(tensor.dtype),
               tensor.bytes.size(), " bytes");
  switch (tensor.dtype) {
    case DType::f64: widen<double>(tensor, result, [](double x) { return x; }); break;
    case DType::f32: widen<float>(tensor, result, [](float x) { return x; }); break;
    case DType::i32: widen<std::int32_t>(tensor, result, [](std::int32_t x) { return x; }); break;
    case DType::bf16: widen<std::uint16_t>(tensor, result, bf16_to_float); break;
    case DType::f16: widen<std::uint16_t>(tensor, result, f16_to_float); break;
  }
  return result;
}

StoredTensor to_stored(const Tensor64& tensor, DType dtype, const std::string& field) {
  StoredTensor result{dtype, tensor.shape, {}};
  result.bytes.resize(tensor.data.size() * size_in_bytes(dtype));
  switch (dtype) {
    case DType::f64: narrow<double>(tensor, result, [](double x) { return x; }); break;
    case DType::f32:
      narrow<float>(tensor, result, [](double x) { return static_cast<float>(x); });
      break;
    case DType::bf16: narrow<std::uint16_t>(tensor, result, double_to_bf16); break;
    case DType::f16: narrow<std::uint16_t>(tensor, result, double_to_f16); break;
    case DType::i32:
      narrow<std::int32_t>(tensor, result, [&](double x) {
        KRAIT_REQUIRE(x == std::nearbyint(x) && std::abs(x) <= 2147483647.0, field, " has ", x,
                      "; allowed: whole numbers of 32 bits");
        return static_cast<std::int32_t>(x);
      });
      break;
  }
  return result;
}

SafeTensors parse_safetensors(std::span<const std::byte> bytes, const std::string& file) {
  KRAIT_REQUIRE(bytes.size() >= kLengthBytes, file, ": file has ", bytes.size(),
                " bytes; allowed: at least 8, the length of a header");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const std::uint64_t most = std::min<std::uint64_t>(bytes.size() - kLengthBytes, kMaxHeader);
  KRAIT_REQUIRE(length <= most, file, ": header length is ", length, "; allowed: at most ", most,
                " here");
  const std::string header_text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  const json header = parse_header(header_text, file);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);

  SafeTensors result;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      result.metadata = parse_metadata(value, file);
    } else {
      entries.push_back(parse_entry(name, value, file));
    }
  }
  check_layout(entries, data.size(), file);
  for (Entry& entry : entries) {
    const auto part = data.subspan(entry.begin, entry.end - entry.begin);
    entry.tensor.bytes.assign(part.begin(), part.end());
    result.tensors.emplace(std::move(entry.name), std::move(entry.tensor));
  }
  return result;
}

SafeTensors load_safetensors(const std::string& path) {
  return parse_safetensors(read_file(path), path);
}

void save_safetensors(const std::string& path, const SafeTensors& content) {
  json header = json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  // Wide elements first keeps every tensor aligned without holes.
  std::vector<std::pair<const std::string*, const StoredTensor*>> order;
  for (const auto& [name, tensor] : content.tensors) order.emplace_back(&name, &tensor);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return size_in_bytes(a.second->dtype) > size_in_bytes(b.second->dtype);
  });
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : order) {
    for (const std::int64_t size : tensor->shape) {
      KRAIT_REQUIRE(size >= 0, path, ": tensor \"", *name, "\" shape has ", size,
                    "; allowed: sizes from 0");
    }
    const std::optional<std::uint64_t> bytes = byte_count(tensor->shape, tensor->dtype);
    KRAIT_REQUIRE(bytes == tensor->bytes.size(), path, ": tensor \"", *name, "\" has ",
                  tensor->bytes.size(), " bytes; allowed: what its shape takes");
    KRAIT_REQUIRE(*name != "__metadata__", path, ": tensor is called ", *name,
                  "; allowed: any other name");
    header[*name] = {{"dtype", file_name(tensor->dtype)},
                     {"shape", tensor->shape},
                     {"data_offsets", {offset, offset + *bytes}}};
    offset += *bytes;
  }
  std::string head = header.dump(-1, ' ', false, json::error_handler_t::replace);
  head.append((8 - head.size() % 8) % 8, ' ');
  const std::uint64_t length = head.size();
  std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(&length, 1)),
                                                std::as_bytes(std::span(head))};
  for (const auto& [name, tensor] : order) parts.emplace_back(tensor->bytes);
  write_file_atomically(path, parts);
}

}  // namespace krait
