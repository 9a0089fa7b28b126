#include <hagane.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs the model once, on zeros of the smallest sizes. */
int main(int count, char **arguments) {
  hagane_model *model;
  if (hagane_open(count > 1 ? arguments[1] : "DIR", NULL, &model) != HAGANE_OK) {
    fprintf(stderr, "%s\n", hagane_message());
    return 1;
  }
  size_t n_in = hagane_inputs(model), n_out = hagane_outputs(model);
  hagane_tensor *in = calloc(n_in + 1, sizeof *in), *out = calloc(n_out + 1, sizeof *out);
  for (size_t i = 0; i < n_in; i++) {
    hagane_info info;
    hagane_input(model, i, &info);
    in[i].name = info.name, in[i].type = info.type, in[i].rank = info.rank;
    in[i].bytes = 8; /* no element has more bytes */
    for (int axis = 0; axis < info.rank; axis++) {
      in[i].shape[axis] = info.least[axis];
      in[i].bytes *= (size_t)info.least[axis];
    }
    in[i].data = calloc(1, in[i].bytes + 1);
  }
  for (size_t i = 0; i < n_out; i++) {
    hagane_info info;
    hagane_output(model, i, &info);
    out[i].name = info.name; /* data is NULL: hagane allocates */
  }
  if (hagane_run(model, in, n_in, out, n_out) != HAGANE_OK) {
    fprintf(stderr, "%s\n", hagane_message());
    return 1;
  }
  for (size_t i = 0; i < n_out; i++) printf("%s: %zu bytes\n", out[i].name, out[i].bytes);
  hagane_release(model, out, n_out);
  for (size_t i = 0; i < n_in; i++) free(in[i].data);
  free(in), free(out);
  hagane_close(model);
  return 0;
}
