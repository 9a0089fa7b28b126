/* Every name of the interface, with the type, place and number that programs rely on: this file need only compile. */
#include <hagane.h>
#include <stddef.h>

#define IS(what) _Static_assert(what, #what)
#define AT(type, field, place) IS(offsetof(type, field) == (place))

IS(HAGANE_OK == 0 && HAGANE_INVALID_ARGUMENT == 1 && HAGANE_NOT_FOUND == 2 && HAGANE_DAMAGED == 3);
IS(HAGANE_SHAPE == 4 && HAGANE_TYPE == 5 && HAGANE_CPU == 6 && HAGANE_MEMORY == 7 && HAGANE_VERSION == 8);
IS(HAGANE_CANCELLED == 9 && HAGANE_INTERNAL == 10);

#if UINTPTR_MAX == UINT64_MAX
AT(hagane_tensor, name, 0); AT(hagane_tensor, type, 8); AT(hagane_tensor, rank, 12);
AT(hagane_tensor, shape, 16); AT(hagane_tensor, data, 144); AT(hagane_tensor, bytes, 152);
IS(sizeof(hagane_tensor) == 160);
AT(hagane_info, name, 0); AT(hagane_info, type, 8); AT(hagane_info, rank, 12);
AT(hagane_info, least, 16); AT(hagane_info, most, 144);
IS(sizeof(hagane_info) == 272);
AT(hagane_options, size, 0); AT(hagane_options, threads, 8); AT(hagane_options, context, 16);
AT(hagane_options, allocate, 24); AT(hagane_options, release, 32); AT(hagane_options, log, 40);
AT(hagane_options, parallel, 48); AT(hagane_options, cancel, 56);
IS(sizeof(hagane_options) == 64);
#endif

static void *allocate(void *context, size_t bytes, size_t alignment) {
  return (void)context, (void)bytes, (void)alignment, NULL;
}
static void release(void *context, void *memory) { (void)context, (void)memory; }
static void note(void *context, int32_t level, const char *text) { (void)context, (void)level, (void)text; }
static void spread(void *context, void (*task)(void *, int32_t), void *argument, int32_t tasks) {
  for (int32_t i = 0; i < tasks; i++) task(argument, i);
  (void)context;
}
static const volatile int32_t cancel = 0;

const hagane_options options = {sizeof(hagane_options), 1, NULL, allocate, release, note, spread, &cancel};

int32_t (*const open_folder)(const char *, const hagane_options *, hagane_model **) = hagane_open;
int32_t (*const open_memory)(const void *, size_t, const void *, size_t, const hagane_options *, hagane_model **) =
    hagane_open_memory;
void (*const close_model)(hagane_model *) = hagane_close;
size_t (*const inputs)(const hagane_model *) = hagane_inputs;
size_t (*const outputs)(const hagane_model *) = hagane_outputs;
int32_t (*const input)(const hagane_model *, size_t, hagane_info *) = hagane_input;
int32_t (*const output)(const hagane_model *, size_t, hagane_info *) = hagane_output;
int32_t (*const run)(hagane_model *, const hagane_tensor *, size_t, hagane_tensor *, size_t) = hagane_run;
void (*const release_outputs)(hagane_model *, hagane_tensor *, size_t) = hagane_release;
const char *(*const message)(void) = hagane_message;
const char *(*const version)(void) = hagane_version;

int main(void) { return options.size != sizeof(hagane_options) || version()[0] != '1'; }
