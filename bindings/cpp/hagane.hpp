/// Models that `hagane build` compiled, in C++17: one header over hagane.h.
#ifndef HAGANE_HPP
#define HAGANE_HPP

#include <hagane.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hagane {

/// A call that failed: its code, and hagane's message.
class error : public std::runtime_error {
public:
  explicit error(int32_t code) : std::runtime_error(hagane_message()), code_(code) {}
  int32_t code() const noexcept { return code_; }

private:
  int32_t code_;
};

inline void check(int32_t code) {
  if (code != HAGANE_OK) throw error(code);
}

/// The bits of a 16-bit float, and of a bfloat16.
struct float16 {
  uint16_t bits;
};
struct bfloat16 {
  uint16_t bits;
};

/// The element type of a C++ type, as ONNX numbers them.
template <class T> struct element;
#define HAGANE_ELEMENT(type, number)                                                              \
  template <> struct element<type> {                                                              \
    static constexpr int32_t value = number;                                                      \
  }
HAGANE_ELEMENT(float, 1);
HAGANE_ELEMENT(uint8_t, 2);
HAGANE_ELEMENT(int8_t, 3);
HAGANE_ELEMENT(uint16_t, 4);
HAGANE_ELEMENT(int16_t, 5);
HAGANE_ELEMENT(int32_t, 6);
HAGANE_ELEMENT(int64_t, 7);
HAGANE_ELEMENT(bool, 9);
HAGANE_ELEMENT(float16, 10);
HAGANE_ELEMENT(double, 11);
HAGANE_ELEMENT(uint32_t, 12);
HAGANE_ELEMENT(uint64_t, 13);
HAGANE_ELEMENT(bfloat16, 16);
#undef HAGANE_ELEMENT

/// An input: memory of the caller, read while a run goes on.
struct input {
  template <class T>
  input(const char *name, const std::vector<int64_t> &shape, const T *data, std::size_t count) {
    if (shape.size() > HAGANE_AXES) throw std::invalid_argument("too many axes");
    tensor.name = name;
    tensor.type = element<T>::value;
    tensor.rank = static_cast<int32_t>(shape.size());
    for (std::size_t i = 0; i < shape.size(); i++) tensor.shape[i] = shape[i];
    tensor.data = const_cast<T *>(data);
    tensor.bytes = count * sizeof(T);
  }
  template <class T>
  input(const char *name, const std::vector<int64_t> &shape, const std::vector<T> &data)
      : input(name, shape, data.data(), data.size()) {}

  hagane_tensor tensor{};
};

/// An output; its memory goes with it.
class output {
public:
  output(std::shared_ptr<hagane_model> model, const hagane_tensor &tensor)
      : model_(std::move(model)), tensor_(tensor) {}
  output(output &&other) noexcept : model_(std::move(other.model_)), tensor_(other.tensor_) {
    other.tensor_.data = nullptr;
  }
  output &operator=(output &&other) noexcept {
    std::swap(model_, other.model_);
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  output(const output &) = delete;
  output &operator=(const output &) = delete;
  ~output() {
    if (model_) hagane_release(model_.get(), &tensor_, 1);
  }

  std::vector<int64_t> shape() const { return {tensor_.shape, tensor_.shape + tensor_.rank}; }
  int32_t type() const noexcept { return tensor_.type; }
  std::size_t bytes() const noexcept { return tensor_.bytes; }

  /// The elements; throws std::invalid_argument if they are of another type.
  template <class T> const T *data() const {
    if (tensor_.type != element<T>::value) throw std::invalid_argument("output has elements of another type");
    return static_cast<const T *>(tensor_.data);
  }
  template <class T> std::vector<T> values() const {
    const T *first = data<T>();
    return {first, first + tensor_.bytes / sizeof(T)};
  }

private:
  std::shared_ptr<hagane_model> model_;
  hagane_tensor tensor_;
};

/// A build that is open. Copies share it, and any number of threads may run it.
class model {
public:
  explicit model(const std::string &folder, int32_t threads = 0) {
    hagane_options options{};
    options.size = sizeof options;
    options.threads = threads;
    open(folder, &options);
  }
  model(const std::string &folder, const hagane_options &options) { open(folder, &options); }

  std::vector<hagane_info> inputs() const {
    std::vector<hagane_info> found(hagane_inputs(handle_.get()));
    for (std::size_t i = 0; i < found.size(); i++) check(hagane_input(handle_.get(), i, &found[i]));
    return found;
  }
  std::vector<hagane_info> outputs() const {
    std::vector<hagane_info> found(hagane_outputs(handle_.get()));
    for (std::size_t i = 0; i < found.size(); i++) check(hagane_output(handle_.get(), i, &found[i]));
    return found;
  }

  /// Run the model; outputs come in the model's order, or in that of `names`.
  std::vector<output> run(const std::vector<input> &given, const std::vector<std::string> &names = {}) const {
    std::vector<hagane_tensor> in, out;
    for (const input &each : given) in.push_back(each.tensor);
    for (const std::string &name : names) out.push_back(wanted(name.c_str()));
    if (names.empty())
      for (const hagane_info &info : outputs()) out.push_back(wanted(info.name));
    check(hagane_run(handle_.get(), in.data(), in.size(), out.data(), out.size()));
    std::vector<output> results;
    for (const hagane_tensor &tensor : out) results.emplace_back(handle_, tensor);
    return results;
  }

private:
  static hagane_tensor wanted(const char *name) {
    hagane_tensor tensor{};
    tensor.name = name;
    return tensor;
  }
  void open(const std::string &folder, const hagane_options *options) {
    hagane_model *made = nullptr;
    check(hagane_open(folder.c_str(), options, &made));
    handle_.reset(made, hagane_close);
  }

  std::shared_ptr<hagane_model> handle_;
};

} // namespace hagane

#endif
