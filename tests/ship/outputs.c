/* Memory of a large output is used again once it is released, and not before.
 *
 *     outputs BUILD ROWS
 */
#include <hagane.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hagane_model *model;
static float *x;

static hagane_tensor run(int64_t rows) {
  hagane_tensor in, out;
  memset(&in, 0, sizeof in), memset(&out, 0, sizeof out);
  in.name = "x", in.type = 1, in.rank = 2, in.shape[0] = rows, in.shape[1] = 33;
  in.data = x, in.bytes = (size_t)rows * 33 * sizeof(float);
  out.name = "y";
  if (hagane_run(model, &in, 1, &out, 1) != HAGANE_OK) puts(hagane_message()), exit(1);
  return out;
}

int main(int argc, char **argv) {
  int64_t rows = argc > 2 ? atoll(argv[2]) : 1;
  x = calloc((size_t)rows * 33, sizeof(float));
  if (hagane_open(argv[1], NULL, &model) != HAGANE_OK) return puts(hagane_message()), 1;
  hagane_tensor a = run(rows), b = run(rows);
  void *first = a.data, *second = b.data;
  if (first == second) return puts("both outputs lie at one place"), 1;
  memset(a.data, 1, a.bytes);
  hagane_release(model, &a, 1), hagane_release(model, &b, 1);
  hagane_tensor c = run(rows - 1), d = run(rows);
  int again = c.data == second && d.data == first;
  float *y = d.data;
  for (size_t i = 0; i < d.bytes / sizeof *y; i++)
    if (memcmp(y + i, (float *)c.data + i % (c.bytes / sizeof *y), sizeof *y) != 0) return puts("other results"), 1;
  hagane_release(model, &d, 1);
  hagane_close(model); /* with one that is kept, and one that is not released */
  free(x);
  return printf("%d\n", again) < 0;
}
