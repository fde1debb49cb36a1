#include "runtime/override.h"

#include <algorithm>
#include <vector>

#include "dsl/error.h"
#include "runtime/file.h"

namespace krait {

Overrides::Overrides(std::optional<std::filesystem::path> directory, WarningSink warn)
    : directory_(std::move(directory)), warn_(std::move(warn)) {
  std::error_code unknown;
  if (directory_ && !std::filesystem::is_directory(*directory_, unknown))
    throw UsageError("KRAIT_OVERRIDE_DIR", directory_->string(), "a folder of edited kernels");
}

Overrides::~Overrides() {
  if (!directory_ || names_.empty()) return;
  try {
    std::vector<std::string> unused;
    for (const auto& entry : std::filesystem::directory_iterator(*directory_))
      if (suffixes_.count(entry.path().extension().string()) != 0 &&
          replaced_.count(entry.path().string()) == 0)
        unused.push_back(entry.path().string());
    if (unused.empty()) return;
    std::sort(unused.begin(), unused.end());
    std::string all, kernels;
    for (const std::string& path : unused) all += (all.empty() ? "" : ", ") + path;
    for (const std::string& name : names_) kernels += (kernels.empty() ? "" : ", ") + name;
    warn_("KRAIT_OVERRIDE_DIR: no kernel was replaced by " + all + "; the kernels were " + kernels);
  } catch (...) {
    // A folder that cannot be listed any more, or no memory for the message: nothing to add.
  }
}

std::optional<Overrides::Edited> Overrides::find(const KernelSource& source) {
  if (!directory_ || source.file.empty()) return std::nullopt;
  const std::string suffix = source.backend == KernelSource::Backend::llvm ? ".ll" : ".cu";
  const std::filesystem::path path = *directory_ / (source.file + suffix);
  std::error_code unknown;
  const bool there = std::filesystem::exists(path, unknown);
  const std::scoped_lock lock(mutex_);
  suffixes_.insert(suffix);
  names_.insert(source.file);
  if (!there) return std::nullopt;
  Edited edited{path.string(), read_text(path.string())};
  const auto [before, first] = replaced_.try_emplace(edited.path, source.text);
  if (before->second != source.text)
    throw UsageError("KRAIT_OVERRIDE_DIR, file " + edited.path + ": kernels called " + source.file,
                     "two that differ", "one; layers of different names have different ones");
  warn_("kernel " + source.file + " runs edited, from " + edited.path +
        "; the kernel cache is left alone");
  return edited;
}

}  // namespace krait
