/* Manifests and weights that are damaged by chance: each is refused, none crashes. */
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

int main(int count, char **arguments) {
  if (count != 3) return 2;
  size_t m, w, codes[16] = {0};
  char *manifest = read_all(arguments[1], "manifest.json", &m);
  char *weights = read_all(arguments[1], arguments[2], &w);
  hagane_model *model;
  if (hagane_open_memory(manifest, m, weights, w, NULL, &model) != HAGANE_OK) return 3;
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
