// The promises of the binding for C++, beside its example: bindings BUILD GUESTS DAMAGED…
#include <hagane.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

static void expect(bool condition, const std::string &what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

static void fails(int32_t code, const std::string &text, const std::function<void()> &action) {
  try {
    action();
  } catch (const hagane::error &error) {
    expect(error.code() == code && std::string(error.what()).find(text) != std::string::npos,
           "expected '" + text + "', got '" + error.what() + "'");
    return;
  } catch (const std::invalid_argument &error) {
    expect(code == 0 && std::string(error.what()).find(text) != std::string::npos, error.what());
    return;
  }
  expect(false, "expected an error with '" + text + "'");
}

static const std::vector<uint8_t> flags{1, 0};
static const std::vector<hagane::float16> halves{{0x3c00}, {0xc000}};
static const std::vector<uint64_t> largest{UINT64_MAX};
static const std::vector<int64_t> ids{0, 9, 4};
static const std::vector<float> zeros(15);

static std::vector<hagane::input> guests(const hagane::input &x, const std::vector<int64_t> &of = ids) {
  return {x, {"ids", {static_cast<int64_t>(of.size())}, of},
          {"flag", {2}, reinterpret_cast<const bool *>(flags.data()), 2},
          {"half", {2}, halves}, {"größe😀", {1}, largest}};
}

int main(int count, char **arguments) {
  const hagane::model model(arguments[2]);
  const std::vector<float> numbers{1, 2, 3, NAN, 5, 6};
  const auto found = model.run(guests({"x", {2, 3}, numbers}));
  const auto y = found[0].values<float>();
  expect(y.size() == 4 && std::isfinite(y[0]) && std::isnan(y[2]), "y");
  expect(!found[2].data<bool>()[0] && found[2].data<bool>()[1], "truth values");
  expect(found[3].data<hagane::float16>()[0].bits == 0xbc00, "halves");
  expect(found[4].values<uint64_t>() == largest, "the largest number");
  expect(model.run(guests({"x", {0, 3}, std::vector<float>()}))[0].shape() == std::vector<int64_t>{0, 2}, "no rows");
  fails(0, "elements of another type", [&] { found[0].values<int32_t>(); });

  const auto refused = [&](int32_t code, const char *text, const std::vector<hagane::input> &feed) {
    fails(code, text, [&] { model.run(feed); });
  };
  refused(HAGANE_SHAPE, "input 'x': axis 0 is 5, expected 0 to 4", guests({"x", {5, 3}, zeros}));
  refused(HAGANE_SHAPE, "input 'x': axis 1 is 4, expected 3", guests({"x", {2, 4}, zeros}));
  refused(HAGANE_SHAPE, "input 'x': axis 0 is -1", guests({"x", {-1, 3}, zeros}));
  refused(HAGANE_SHAPE, "input 'x': expected 2 axes, got 1", guests({"x", {3}, zeros}));
  refused(HAGANE_MEMORY, "expected memory of 48 bytes, got 4", guests({"x", {4, 3}, zeros.data(), 1}));
  const std::vector<double> wide(3);
  refused(HAGANE_TYPE, "input 'x': expected float32, got float64", guests({"x", {1, 3}, wide}));
  auto more = guests({"x", {1, 3}, zeros});
  more.emplace_back("z", std::vector<int64_t>{1}, zeros);
  refused(HAGANE_INVALID_ARGUMENT, "there is no input 'z'; the model has: x, ids", more);
  more.erase(more.begin() + 4, more.end());
  refused(HAGANE_INVALID_ARGUMENT, "input 'größe😀' is missing", more);
  refused(HAGANE_INVALID_ARGUMENT, "'look up'", guests({"x", {1, 3}, zeros}, {10}));
  fails(0, "too many axes", [] { hagane::input("x", std::vector<int64_t>(17, 1), zeros); });
  fails(HAGANE_INVALID_ARGUMENT, "there is no output 'z'",
        [&] { model.run(guests({"x", {1, 3}, zeros}), {"z"}); });
  for (int i = 3; i < count; i++) {
    try {
      const hagane::model damaged(arguments[i]);
      expect(false, arguments[i]);
    } catch (const hagane::error &error) {
      expect(std::string(error.what()).find(arguments[i]) != std::string::npos, error.what());
    }
  }

  hagane::model shared(arguments[1]);
  const std::vector<float> pixels(144, 0.5f);
  const auto once = [&pixels](const hagane::model &of) {
    return of.run({{"x", {1, 3, 6, 8}, pixels}})[0].values<float>();
  };
  const auto expected = once(shared);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; k++)
    threads.emplace_back([&, own = shared] {
      for (int i = 0; i < 20; i++) expect(once(own) == expected, "threads");
    });
  for (std::thread &each : threads) each.join();
  const hagane::model moved = std::move(shared);
  fails(HAGANE_INVALID_ARGUMENT, "model, inputs or outputs is NULL", [&] { once(shared); });
  expect(once(moved) == expected, "a moved model");
  std::puts("fine");
}
