/* Manifests and weights that are damaged by chance, and inputs drawn by chance: each is refused, none crashes. */
#include <hagane.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(const char *folder, const char *name, size_t *bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  char *data = aligned_alloc(64, 1 << 20);
  *bytes = fread(data, 1, 1 << 20, file);
  fclose(file);
  return data;
}

static uint32_t drawn = 7;

static int64_t draw(int64_t below) {
  drawn = drawn * 1664525 + 1013904223;
  return (int64_t)(drawn >> 8) % below;
}

/* Runs inputs of any description, in memory of no byte more; return whether some were taken and all others refused. */
static int run_inputs(hagane_model *model) {
  static const int64_t sizes[] = {0, 1, 2, 8, 9, 33, 34, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 33};
  static const char *names[] = {"x", "x", "x", "x", "y", "", NULL};
  int taken = 0, refused = 0;
  for (int i = 0; i < 4000; i++) {
    hagane_tensor in = {0}, out = {.name = names[draw(2) ? 4 : draw(7)]};
    in.name = names[draw(7)];
    in.type = draw(2) ? 1 : (int32_t)draw(30) - 4;
    in.rank = draw(3) ? 2 : (int32_t)draw(40) - 4;
    for (int k = 0; k < HAGANE_AXES; k++) in.shape[k] = sizes[draw(11)];
    if (draw(2)) in.shape[0] = 1 + draw(8), in.shape[1] = 33;
    in.bytes = draw(3) ? (size_t)(4 * 33 * (in.shape[0] > 0 && in.shape[0] < 9 ? in.shape[0] : 1)) : (size_t)draw(1200);
    unsigned char *data = malloc(in.bytes == 0 ? 1 : in.bytes);
    for (size_t k = 0; k < in.bytes; k++) data[k] = (unsigned char)draw(256);
    in.data = draw(20) ? data : NULL;
    if (draw(4) == 0) out.bytes = (size_t)draw(1200), out.data = malloc(out.bytes == 0 ? 1 : out.bytes);
    void *own = out.data;
    int32_t code = hagane_run(model, &in, (size_t)(draw(9) != 0), &out, (size_t)(draw(9) != 0));
    int fits = in.data != NULL && in.type == 1 && in.rank == 2 && in.shape[1] == 33 && in.shape[0] >= 1 &&
               in.shape[0] <= 8 && in.bytes >= (size_t)(4 * 33 * in.shape[0]);
    if (code == HAGANE_OK && !fits) return 0;
    code == HAGANE_OK ? taken++ : refused++;
    if (own == NULL) hagane_release(model, &out, 1);
    free(own), free(data);
  }
  return taken > 100 && refused > 100;
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  size_t m, w, codes[16] = {0};
  char *manifest = read_all(arguments[1], "manifest.json", &m);
  char *weights = read_all(arguments[1], arguments[2], &w);
  hagane_model *model;
  if (hagane_open_memory(manifest, m, weights, w, NULL, &model) != HAGANE_OK) return 3;
  if (!run_inputs(model)) return 8;
  hagane_close(model);
  char *moved = memmove(weights + 1, weights, w); /* at no multiple of 64 */
  if (hagane_open_memory(manifest, m, moved, w, NULL, &model) != HAGANE_OK) return 4;
  hagane_close(model);
  memmove(weights, weights + 1, w);
  uint32_t random = 1;
  for (int i = 0; i < 4000; i++) {
    char *copy = malloc(m); /* of no byte more, for sanitizers */
    size_t length = m;
    memcpy(copy, manifest, m);
    for (int k = 0; k < 1 + i % 4; k++) {
      random = random * 1664525 + 1013904223;
      size_t at = (random >> 8) % m;
      if (i % 3 == 0) copy[at] ^= (char)(1 << (random & 7));
      else if (i % 3 == 1) copy[at] = "{}[]\",:0\\"[random % 9];
      else length = at;
    }
    char *whole = malloc(length + 1);
    memcpy(whole, copy, length);
    whole = realloc(whole, length == 0 ? 1 : length);
    int32_t code = hagane_open_memory(whole, length, weights, w, NULL, &model);
    codes[code]++;
    if (code == HAGANE_OK && (length != m || memcmp(copy, manifest, m) != 0)) return 5;
    hagane_close(model);
    free(copy), free(whole);
    if (i % 40 != 0) continue;
    size_t at = (random >> 8) % w;
    weights[at] ^= 4;
    if (hagane_open_memory(manifest, m, weights, w, NULL, &model) != HAGANE_DAMAGED) return 6;
    weights[at] ^= 4;
    if (hagane_open_memory(manifest, m, weights, w - 1, NULL, &model) != HAGANE_DAMAGED) return 7;
  }
  printf("%d\n", codes[HAGANE_DAMAGED] > 0 && codes[HAGANE_VERSION] > 0);
  free(manifest), free(weights);
  return 0;
}
