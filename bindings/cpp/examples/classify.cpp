// Classifies a picture: classify BUILD PICTURE.ppm
//
// The picture is a binary PPM of the size that the model takes; pixels become numbers from 0 to 1.
#include <hagane.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

static std::vector<float> read_picture(const char *path, int64_t height, int64_t width) {
  std::ifstream file(path, std::ios::binary);
  std::string kind;
  int64_t w = 0, h = 0, most = 0;
  file >> kind >> w >> h >> most;
  file.get();
  if (kind != "P6" || w != width || h != height || most != 255)
    throw std::runtime_error("expected a PPM of " + std::to_string(width) + " x " + std::to_string(height));
  std::vector<unsigned char> pixels(static_cast<std::size_t>(3 * w * h));
  file.read(reinterpret_cast<char *>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
  std::vector<float> planes(pixels.size());
  for (std::size_t i = 0; i < pixels.size(); i++)
    planes[i % 3 * (pixels.size() / 3) + i / 3] = static_cast<float>(pixels[i]) / 255;
  return planes;
}

int main(int count, char **arguments) try {
  if (count != 3) return std::puts("usage: classify BUILD PICTURE.ppm"), 2;
  hagane::model model(arguments[1]);
  const hagane_info in = model.inputs().at(0);
  const int64_t height = in.least[2], width = in.least[3];
  const auto picture = read_picture(arguments[2], height, width);
  const auto results = model.run({{in.name, {1, 3, height, width}, picture}});
  const auto scores = results.at(0).values<float>();
  std::printf("%td\n", std::max_element(scores.begin(), scores.end()) - scores.begin());
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
