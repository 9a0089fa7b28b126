/* Manifests whose structure is damaged: each is refused or opens as described, none crashes. */
#include <hagane.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_all(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) exit(3);
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  char *data = malloc(*bytes + 1);
  if (fread(data, 1, *bytes, file) != *bytes) exit(3);
  fclose(file);
  return data;
}

/* Describe what is open. */
static void describe(hagane_model *model) {
  hagane_info info;
  for (size_t i = 0; i < hagane_inputs(model); i++)
    if (hagane_input(model, i, &info) != HAGANE_OK || info.name == NULL) exit(4);
  for (size_t i = 0; i < hagane_outputs(model); i++)
    if (hagane_output(model, i, &info) != HAGANE_OK || info.name == NULL) exit(4);
}

/* A folder whose manifest may be written, its weights, and manifests with their lengths. */
int main(int count, char **arguments) {
  if (count != 4) return 2;
  char path[4096];
  size_t w, all, codes[16] = {0};
  char *weights = read_all(arguments[2], &w), *corpus = read_all(arguments[3], &all);
  snprintf(path, sizeof path, "%s/manifest.json", arguments[1]);
  size_t at = 0;
  for (int i = 0; at + 8 <= all; i++) {
    uint64_t length;
    memcpy(&length, corpus + at, 8);
    char *manifest = malloc(length); /* of no byte more, for sanitizers */
    memcpy(manifest, corpus + at + 8, length);
    at += 8 + length;
    hagane_model *model = NULL;
    int32_t code = hagane_open_memory(manifest, length, weights, w, NULL, &model);
    if ((code == HAGANE_OK) != (model != NULL)) return 5;
    if (code != HAGANE_OK && hagane_message()[0] == 0) return 6;
    describe(model);
    hagane_close(model);
    codes[code]++;
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(manifest, 1, length, file) != length) return 7;
    fclose(file);
    free(manifest);
    code = hagane_open(arguments[1], NULL, &model);
    if ((code == HAGANE_OK) != (model != NULL)) return 8;
    if (code != HAGANE_OK && hagane_message()[0] == 0) return 9;
    describe(model);
    hagane_close(model);
  }
  for (int code = 0; code <= HAGANE_INTERNAL; code++) printf("%zu ", codes[code]);
  free(weights), free(corpus);
  return 0;
}
