/* Runs a model very often, of many sizes, opened anew now and then; memory stays as it was after a warm-up.
 *
 *     flat BUILD RUNS
 */
#include <hagane.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long resident_kib(void) {
  char line[256];
  long found = -1;
  FILE *file = fopen("/proc/self/status", "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmRSS: %ld", &found) == 1) break;
  fclose(file);
  return found;
}

static int stop(const char *what) {
  fprintf(stderr, "%s: %s\n", what, hagane_message());
  return 1;
}

int main(int argc, char **argv) {
  static float x[8 * 33], own[8 * 64];
  long runs = argc > 2 ? atol(argv[2]) : 0, before = 0;
  hagane_model *model = NULL;
  for (long i = 0; i < runs; i++) {
    if (i % 50000 == 0) {
      hagane_close(model);
      if (hagane_open(argv[1], NULL, &model) != HAGANE_OK) return stop("open");
    }
    if (i == runs / 10) before = resident_kib();
    int64_t rows = 1 + i % 8;
    hagane_tensor in, out;
    memset(&in, 0, sizeof in), memset(&out, 0, sizeof out);
    in.name = "x", in.type = 1, in.rank = 2, in.shape[0] = rows, in.shape[1] = 33;
    in.data = x, in.bytes = (size_t)rows * 33 * sizeof(float);
    out.name = "y";
    if (i % 3 == 0) out.data = own, out.bytes = sizeof own;
    in.shape[0] += i % 1000 == 7 ? 100 : 0; /* now and then a run that is refused */
    int32_t code = hagane_run(model, &in, 1, &out, 1);
    if (code != (i % 1000 == 7 ? HAGANE_SHAPE : HAGANE_OK)) return stop("run");
    hagane_release(model, &out, 1);
  }
  long after = resident_kib();
  hagane_close(model);
  printf("%ld KiB before, %ld KiB after\n", before, after);
  return after > before + 512;
}
