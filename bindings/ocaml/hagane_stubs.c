/* The C side of hagane.ml: handles, tensors as Bigarrays, errors as exceptions.
 *
 * A run releases the lock of OCaml's runtime; Bigarrays and copied names do not move meanwhile.
 */
#define CAML_NAME_SPACE
#include <caml/alloc.h>
#include <caml/bigarray.h>
#include <caml/callback.h>
#include <caml/custom.h>
#include <caml/fail.h>
#include <caml/memory.h>
#include <caml/mlvalues.h>
#include <caml/threads.h>
#include <hagane.h>
#include <stdlib.h>
#include <string.h>

/* A model, and how many threads run it; both change under the lock only. */
typedef struct {
  hagane_model *model;
  long running;
} handle;

#define HANDLE(value) ((handle *)Data_custom_val(value))

static void finalize(value item) { hagane_close(HANDLE(item)->model); }

static struct custom_operations operations = {
    "hagane.model",           finalize,
    custom_compare_default,   custom_hash_default,
    custom_serialize_default, custom_deserialize_default,
    custom_compare_ext_default, custom_fixed_length_default};

/* In the order of the type's constructors: ONNX's number, and the kind of Bigarray. */
static const struct {
  int32_t type;
  int kind, bytes;
} kinds[] = {{1, CAML_BA_FLOAT32, 4}, {11, CAML_BA_FLOAT64, 8}, {3, CAML_BA_SINT8, 1},
             {2, CAML_BA_UINT8, 1},   {5, CAML_BA_SINT16, 2},   {4, CAML_BA_UINT16, 2},
             {6, CAML_BA_INT32, 4},   {7, CAML_BA_INT64, 8},    {9, CAML_BA_UINT8, 1}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void fail_with(int32_t code, const char *text) {
  CAMLparam0();
  CAMLlocal1(message);
  value arguments[2];
  message = caml_copy_string(text);
  arguments[0] = Val_long(code);
  arguments[1] = message;
  caml_raise_with_args(*caml_named_value("hagane error"), 2, arguments);
  CAMLnoreturn;
}

static hagane_model *opened(value item) {
  hagane_model *model = HANDLE(item)->model;
  if (model == NULL) fail_with(HAGANE_INVALID_ARGUMENT, "the model is closed");
  return model;
}

CAMLprim value hagane_ml_open(value folder, value threads) {
  CAMLparam2(folder, threads);
  CAMLlocal1(made);
  hagane_options options = {.size = sizeof options, .threads = (int32_t)Long_val(threads)};
  made = caml_alloc_custom_mem(&operations, sizeof(handle), 1 << 20);
  memset(HANDLE(made), 0, sizeof(handle));
  char *path = caml_stat_strdup(String_val(folder));
  hagane_model *model = NULL;
  caml_release_runtime_system();
  int32_t code = hagane_open(path, &options, &model);
  caml_acquire_runtime_system();
  caml_stat_free(path);
  if (code != HAGANE_OK) fail_with(code, hagane_message());
  HANDLE(made)->model = model;
  CAMLreturn(made);
}

CAMLprim value hagane_ml_close(value item) {
  CAMLparam1(item);
  if (HANDLE(item)->running > 0) fail_with(HAGANE_INVALID_ARGUMENT, "the model is running");
  hagane_close(HANDLE(item)->model);
  HANDLE(item)->model = NULL;
  CAMLreturn(Val_unit);
}

static value sizes_of(const int64_t *sizes, int32_t rank) {
  CAMLparam0();
  CAMLlocal1(made);
  made = rank == 0 ? Atom(0) : caml_alloc(rank, 0);
  for (int32_t i = 0; i < rank; i++) {
    int64_t size = sizes[i] > Max_long ? Max_long : sizes[i];
    Store_field(made, i, Val_long(size));
  }
  CAMLreturn(made);
}

CAMLprim value hagane_ml_describe(value item, value of_inputs) {
  CAMLparam2(item, of_inputs);
  CAMLlocal3(made, one, field);
  hagane_model *model = opened(item);
  size_t count = Bool_val(of_inputs) ? hagane_inputs(model) : hagane_outputs(model);
  made = count == 0 ? Atom(0) : caml_alloc(count, 0);
  for (size_t i = 0; i < count; i++) {
    hagane_info info;
    int32_t code = Bool_val(of_inputs) ? hagane_input(model, i, &info) : hagane_output(model, i, &info);
    if (code != HAGANE_OK) fail_with(code, hagane_message());
    one = caml_alloc(4, 0);
    field = caml_copy_string(info.name);
    Store_field(one, 0, field);
    Store_field(one, 1, Val_long(info.type));
    field = sizes_of(info.least, info.rank);
    Store_field(one, 2, field);
    field = sizes_of(info.most, info.rank);
    Store_field(one, 3, field);
    Store_field(made, i, one);
  }
  CAMLreturn(made);
}

/* Describe an OCaml tensor; return whether it has no more axes than a tensor may have. */
static int describe_tensor(value given, hagane_tensor *tensor) {
  if (Tag_val(given) < KINDS) {
    struct caml_ba_array *array = Caml_ba_array_val(Field(given, 0));
    tensor->type = kinds[Tag_val(given)].type;
    tensor->rank = (int32_t)array->num_dims;
    tensor->data = array->data;
    tensor->bytes = kinds[Tag_val(given)].bytes;
    if (array->num_dims > HAGANE_AXES) return 0;
    for (int32_t i = 0; i < tensor->rank; i++) tensor->bytes *= tensor->shape[i] = array->dim[i];
    return 1;
  }
  value shape = Field(given, 1);
  struct caml_ba_array *array = Caml_ba_array_val(Field(given, 2));
  tensor->type = (int32_t)Long_val(Field(given, 0));
  tensor->data = array->data;
  tensor->bytes = caml_ba_byte_size(array);
  if (Wosize_val(shape) > HAGANE_AXES) return 0;
  tensor->rank = (int32_t)Wosize_val(shape);
  for (int32_t i = 0; i < tensor->rank; i++) tensor->shape[i] = Long_val(Field(shape, i));
  return 1;
}

static value tensor_of(const hagane_tensor *tensor) {
  CAMLparam0();
  CAMLlocal3(made, array, shape);
  intnat sizes[HAGANE_AXES];
  int tag = 0;
  while (tag < KINDS && kinds[tag].type != tensor->type) tag++;
  if (tag < KINDS) {
    for (int32_t i = 0; i < tensor->rank; i++) sizes[i] = (intnat)tensor->shape[i];
    array = caml_ba_alloc(kinds[tag].kind | CAML_BA_C_LAYOUT, tensor->rank, NULL, sizes);
    made = caml_alloc(1, tag);
    Store_field(made, 0, array);
  } else {
    sizes[0] = (intnat)tensor->bytes;
    array = caml_ba_alloc(CAML_BA_UINT8 | CAML_BA_C_LAYOUT, 1, NULL, sizes);
    shape = sizes_of(tensor->shape, tensor->rank);
    made = caml_alloc(3, tag);
    Store_field(made, 0, Val_long(tensor->type));
    Store_field(made, 1, shape);
    Store_field(made, 2, array);
  }
  if (tensor->bytes > 0) memcpy(Caml_ba_data_val(array), tensor->data, tensor->bytes);
  CAMLreturn(made);
}

static void free_tensors(hagane_tensor *tensors, size_t count) {
  for (size_t i = 0; i < count; i++) free((char *)tensors[i].name);
  free(tensors);
}

CAMLprim value hagane_ml_run(value item, value given, value wanted) {
  CAMLparam3(item, given, wanted);
  CAMLlocal2(made, one);
  hagane_model *model = opened(item);
  size_t ins = Wosize_val(given), outs = Wosize_val(wanted);
  hagane_tensor *tensors = calloc(ins + outs + 1, sizeof *tensors);
  int fits = tensors != NULL;
  for (size_t i = 0; fits && i < ins; i++) {
    if (!caml_string_is_c_safe(Field(Field(given, i), 0))) {
      free_tensors(tensors, ins + outs);
      fail_with(HAGANE_INVALID_ARGUMENT, "the name of an input has a zero byte");
    }
    tensors[i].name = strdup(String_val(Field(Field(given, i), 0)));
    fits = tensors[i].name != NULL && describe_tensor(Field(Field(given, i), 1), tensors + i);
  }
  for (size_t i = 0; fits && i < outs; i++) {
    tensors[ins + i].name = strdup(String_val(Field(wanted, i)));
    fits = tensors[ins + i].name != NULL;
  }
  if (!fits) {
    if (tensors != NULL) free_tensors(tensors, ins + outs);
    fail_with(HAGANE_MEMORY, "there is no memory, or a tensor has more than 16 axes");
  }
  HANDLE(item)->running++;
  caml_release_runtime_system();
  int32_t code = hagane_run(model, tensors, ins, tensors + ins, outs);
  caml_acquire_runtime_system();
  HANDLE(item)->running--;
  if (code != HAGANE_OK) {
    free_tensors(tensors, ins + outs);
    fail_with(code, hagane_message());
  }
  made = outs == 0 ? Atom(0) : caml_alloc(outs, 0);
  for (size_t i = 0; i < outs; i++) {
    one = tensor_of(tensors + ins + i);
    Store_field(made, i, one);
  }
  hagane_release(model, tensors + ins, outs);
  free_tensors(tensors, ins + outs);
  CAMLreturn(made);
}
