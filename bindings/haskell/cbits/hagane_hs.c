/* Calls whose message comes with their code: a thread of Haskell may go on in another thread of the system, whose
 * hagane_message() is another one.
 */
#include <hagane.h>
#include <stdlib.h>
#include <string.h>

static int32_t told(int32_t code, char **message) {
  *message = code == HAGANE_OK ? NULL : strdup(hagane_message());
  return code;
}

int32_t hagane_hs_open(const char *folder, int32_t threads, hagane_model **model, char **message) {
  hagane_options options = {.size = sizeof options, .threads = threads};
  return told(hagane_open(folder, &options, model), message);
}

int32_t hagane_hs_input(const hagane_model *model, size_t index, hagane_info *info, char **message) {
  return told(hagane_input(model, index, info), message);
}

int32_t hagane_hs_output(const hagane_model *model, size_t index, hagane_info *info, char **message) {
  return told(hagane_output(model, index, info), message);
}

int32_t hagane_hs_run(hagane_model *model, const hagane_tensor *inputs, size_t input_count, hagane_tensor *outputs,
                      size_t output_count, char **message) {
  return told(hagane_run(model, inputs, input_count, outputs, output_count), message);
}
