/* Menoh's functions: models, tables of variables, builders. */

static menoh_error_code refuse(menoh_error_code code, const char *kind, const char *name) {
  fail(NULL, HAGANE_INTERNAL, "menoh %s: %s", kind, name == NULL ? "NULL" : name);
  return code;
}

static menoh_error_code no_memory(void) { return refuse(menoh_error_code_std_error, "std error", "no memory left"); }

static menoh_error_code is_null(const char *argument) { return refuse(menoh_error_code_std_error, "std error: NULL", argument); }

/* hagane's codes in Menoh's; the message is there. */
static menoh_error_code code_of(int32_t code) {
  switch (code) {
    case HAGANE_OK: return menoh_error_code_success;
    case HAGANE_NOT_FOUND: return menoh_error_code_invalid_filename;
    case HAGANE_SHAPE: return menoh_error_code_dimension_mismatch;
    case HAGANE_TYPE: return menoh_error_code_invalid_dtype;
    case HAGANE_DAMAGED: return menoh_error_code_onnx_parse_error;
    default: return menoh_error_code_backend_error;
  }
}

MENOH_API const char *menoh_get_last_error_message(void) { return hagane_message(); }

MENOH_API menoh_error_code menoh_dtype_size(menoh_dtype dtype, int32_t *dst_size) {
  if (dst_size == NULL) return is_null("dst_size");
  if (!is_menoh_type(dtype)) {
    fail(NULL, HAGANE_TYPE, "menoh invalid dtype: %d", (int)dtype);
    return menoh_error_code_invalid_dtype;
  }
  *dst_size = menoh_types[dtype][1];
  return menoh_error_code_success;
}

/* ---- models ---- */

static menoh_model_data_handle new_data(void) {
  menoh_model_data_handle data = calloc(1, sizeof *data);
  if (data == NULL) return NULL;
  data->references = 1;
  pthread_mutex_init(&data->lock, NULL);
  return data;
}

static menoh_model_data_handle hold(menoh_model_data_handle data) {
  pthread_mutex_lock(&data->lock);
  data->references++;
  pthread_mutex_unlock(&data->lock);
  return data;
}

MENOH_API void menoh_delete_model_data(menoh_model_data_handle data) {
  if (data == NULL) return;
  pthread_mutex_lock(&data->lock);
  int32_t left = --data->references;
  pthread_mutex_unlock(&data->lock);
  if (left > 0) return;
  hagane_close(data->model);
  free(data->onnx.data), free(data->nodes.data), free(data->node.data), free(data->parameters.data);
  clear_names(&data->parameter_names), clear_names(&data->attribute_names);
  clear_names(&data->read), clear_names(&data->written);
  pthread_mutex_destroy(&data->lock);
  free(data);
}

static int is_there(const char *folder) {
  char path[4300];
  struct stat found;
  return (size_t)snprintf(path, sizeof path, "%s/manifest.json", folder) < sizeof path && stat(path, &found) == 0;
}

MENOH_API menoh_error_code menoh_make_model_data_from_onnx(const char *onnx_filename,
                                                           menoh_model_data_handle *dst_handle) {
  char folder[4096];
  if (onnx_filename == NULL || dst_handle == NULL) return is_null("onnx_filename or dst_handle");
  size_t length = strlen(onnx_filename);
  if (length + 8 > sizeof folder) return refuse(menoh_error_code_invalid_filename, "invalid filename", "too long");
  memcpy(folder, onnx_filename, length + 1);
  if (!is_there(folder)) {
    if (length > 5 && strcmp(folder + length - 5, ".onnx") == 0) length -= 5;
    strcpy(folder + length, ".hagane");
  }
  if (!is_there(folder)) {
    fail(NULL, HAGANE_NOT_FOUND, "menoh invalid filename: '%s' is no build and has none beside it; make one: hagane "
                                 "build %s -o %s", onnx_filename, onnx_filename, folder);
    return menoh_error_code_invalid_filename;
  }
  hagane_model *model;
  int32_t code = hagane_open(folder, NULL, &model);
  if (code != HAGANE_OK) return code_of(code);
  menoh_model_data_handle data = new_data();
  if (data == NULL) return hagane_close(model), no_memory();
  data->model = model;
  *dst_handle = data;
  return menoh_error_code_success;
}

MENOH_API menoh_error_code menoh_make_model_data_from_onnx_data_on_memory(const uint8_t *onnx_data, int32_t size,
                                                                          menoh_model_data_handle *dst_handle) {
  if (onnx_data == NULL || dst_handle == NULL) return is_null("onnx_data or dst_handle");
  if (size <= 0) return refuse(menoh_error_code_onnx_parse_error, "onnx parse error", "there are no bytes");
  menoh_model_data_handle data = new_data();
  if (data != NULL) put(&data->onnx, onnx_data, (size_t)size);
  if (data == NULL || data->onnx.failed) return menoh_delete_model_data(data), no_memory();
  *dst_handle = data;
  return menoh_error_code_success;
}

MENOH_API menoh_error_code menoh_make_model_data(menoh_model_data_handle *dst_handle) {
  if (dst_handle == NULL) return is_null("dst_handle");
  menoh_model_data_handle data = new_data();
  if (data == NULL) return no_memory();
  data->made = 1;
  *dst_handle = data;
  return menoh_error_code_success;
}

static int is_grown(menoh_model_data_handle data) { return data != NULL && data->made; }

static menoh_error_code not_grown(void) {
  return refuse(menoh_error_code_std_error, "std error", "nodes are added to models of menoh_make_model_data() alone");
}

MENOH_API menoh_error_code menoh_model_data_add_parameter(menoh_model_data_handle data, const char *name,
                                                          menoh_dtype dtype, int32_t dims_size, const int32_t *dims,
                                                          void *buffer_handle) {
  int32_t item;
  if (!is_grown(data)) return not_grown();
  if (name == NULL || buffer_handle == NULL || (dims == NULL && dims_size > 0)) return is_null("parameter");
  menoh_error_code code = menoh_dtype_size(dtype, &item);
  if (code != menoh_error_code_success) return code;
  if (has_name(&data->parameter_names, name))
    return refuse(menoh_error_code_same_named_parameter_already_exist, "same named parameter already exist", name);
  bytes tensor = {0};
  int64_t size = item;
  for (int32_t i = 0; i < dims_size; i++) {
    if (dims[i] < 0 || __builtin_mul_overflow(size, (int64_t)dims[i], &size))
      return free(tensor.data), refuse(menoh_error_code_dimension_mismatch, "dimension mismatch of parameter", name);
    put_integer(&tensor, 1, dims[i]);
  }
  put_integer(&tensor, 2, menoh_types[dtype][0]);
  put_text(&tensor, 8, name);
  put_bytes(&tensor, 9, buffer_handle, (size_t)size);
  put_message(&data->parameters, 5, &tensor);
  return add_name(&data->parameter_names, name) && !data->parameters.failed ? menoh_error_code_success : no_memory();
}

MENOH_API menoh_error_code menoh_model_data_add_new_node(menoh_model_data_handle data, const char *op_type) {
  if (!is_grown(data)) return not_grown();
  if (op_type == NULL) return is_null("op_type");
  end_node(data);
  data->n_nodes++;
  data->flattens = strcmp(op_type, "Gemm") == 0;
  put_text(&data->node, 4, op_type);
  return data->node.failed ? no_memory() : menoh_error_code_success;
}

static menoh_error_code put_name(menoh_model_data_handle data, int field, const char *name, name_set *names) {
  if (!is_grown(data)) return not_grown();
  if (name == NULL) return is_null("name");
  if (data->n_nodes == 0) return refuse(menoh_error_code_std_error, "std error", "there is no node yet");
  put_text(&data->node, field, name);
  return add_name(names, name) && !data->node.failed ? menoh_error_code_success : no_memory();
}

MENOH_API menoh_error_code menoh_model_data_add_input_name_to_current_node(menoh_model_data_handle data,
                                                                           const char *name) {
  if (!is_grown(data) || name == NULL || data->n_nodes == 0 || !data->flattens)
    return put_name(data, 1, name, data == NULL ? NULL : &data->read);
  char matrix[64];
  snprintf(matrix, sizeof matrix, "menoh matrix of node %d", data->n_nodes);
  put_flatten(data, name, matrix);
  data->flattens = 0;
  put_text(&data->node, 1, matrix);
  return add_name(&data->read, name) && !data->node.failed && !data->nodes.failed ? menoh_error_code_success
                                                                                  : no_memory();
}

MENOH_API menoh_error_code menoh_model_data_add_output_name_to_current_node(menoh_model_data_handle data,
                                                                            const char *name) {
  if (is_grown(data) && name != NULL && has_name(&data->written, name))
    return refuse(menoh_error_code_same_named_variable_already_exist, "same named variable already exist", name);
  return put_name(data, 2, name, data == NULL ? NULL : &data->written);
}

/* AttributeProto: 2 f, 3 i, 7 floats, 8 ints, 20 type. */
static menoh_error_code put_attribute(menoh_model_data_handle data, const char *name, int type, int32_t size,
                                      const int32_t *integers, const float *floats) {
  if (!is_grown(data)) return not_grown();
  if (name == NULL || (size > 0 && integers == NULL && floats == NULL)) return is_null("attribute");
  if (data->n_nodes == 0) return refuse(menoh_error_code_std_error, "std error", "there is no node yet");
  if (has_name(&data->attribute_names, name))
    return refuse(menoh_error_code_same_named_attribute_already_exist, "same named attribute already exist", name);
  bytes attribute = {0};
  put_text(&attribute, 1, name);
  for (int32_t i = 0; i < size && integers != NULL; i++) put_integer(&attribute, type == 2 ? 3 : 8, integers[i]);
  for (int32_t i = 0; i < size && floats != NULL; i++) {
    put_number(&attribute, (uint64_t)(type == 1 ? 2 : 7) << 3 | 5);
    put(&attribute, &floats[i], 4);
  }
  put_integer(&attribute, 20, type);
  put_message(&data->node, 5, &attribute);
  return add_name(&data->attribute_names, name) && !data->node.failed ? menoh_error_code_success : no_memory();
}

MENOH_API menoh_error_code menoh_model_data_add_attribute_int_to_current_node(menoh_model_data_handle data,
                                                                              const char *name, int32_t value) {
  return put_attribute(data, name, 2, 1, &value, NULL);
}

MENOH_API menoh_error_code menoh_model_data_add_attribute_float_to_current_node(menoh_model_data_handle data,
                                                                                const char *name, float value) {
  return put_attribute(data, name, 1, 1, NULL, &value);
}

MENOH_API menoh_error_code menoh_model_data_add_attribute_ints_to_current_node(menoh_model_data_handle data,
                                                                               const char *name, int32_t size,
                                                                               const int32_t *value) {
  return put_attribute(data, name, 7, size, value, NULL);
}

MENOH_API menoh_error_code menoh_model_data_add_attribute_floats_to_current_node(menoh_model_data_handle data,
                                                                                 const char *name, int32_t size,
                                                                                 const float *value) {
  return put_attribute(data, name, 6, size, NULL, value);
}

/* ---- tables of variables ---- */

typedef struct {
  hagane_tensor *items; /* names are ours */
  int32_t (*dims)[HAGANE_AXES];
  size_t count;
} variables;

static int add_variable(variables *into, const char *name, int32_t type, int32_t rank, const int64_t *shape) {
  hagane_tensor *items = realloc(into->items, sizeof *items * (into->count + 1));
  if (items == NULL) return 0;
  into->items = items;
  void *dims = realloc(into->dims, sizeof *into->dims * (into->count + 1));
  if (dims == NULL) return 0;
  into->dims = dims;
  hagane_tensor *item = &items[into->count];
  memset(item, 0, sizeof *item);
  item->type = type, item->rank = rank;
  for (int32_t i = 0; i < rank; i++) {
    item->shape[i] = shape[i];
    into->dims[into->count][i] = (int32_t)shape[i];
  }
  item->name = strdup(name);
  return item->name != NULL && ++into->count;
}

static void clear_variables(variables *all) {
  for (size_t i = 0; i < all->count; i++) free((char *)all->items[i].name);
  free(all->items), free(all->dims);
  memset(all, 0, sizeof *all);
}

/* Copy variables but those of some names. */
static int copy_others(variables *into, const variables *from, const name_set *but) {
  for (size_t i = 0; i < from->count; i++)
    if ((but == NULL || !has_name(but, from->items[i].name)) &&
        !add_variable(into, from->items[i].name, from->items[i].type, from->items[i].rank, from->items[i].shape))
      return 0;
  return 1;
}

static int copy_variables(variables *into, const variables *from) { return copy_others(into, from, NULL); }

static ptrdiff_t find_variable(const variables *all, const char *name) {
  for (size_t i = 0; i < all->count; i++)
    if (strcmp(all->items[i].name, name) == 0) return (ptrdiff_t)i;
  return -1;
}

struct menoh_variable_profile_table_builder {
  variables inputs;
  name_set outputs;
};

struct menoh_variable_profile_table {
  variables inputs, outputs;
};

MENOH_API menoh_error_code
menoh_make_variable_profile_table_builder(menoh_variable_profile_table_builder_handle *dst_handle) {
  if (dst_handle == NULL) return is_null("dst_handle");
  *dst_handle = calloc(1, sizeof **dst_handle);
  return *dst_handle == NULL ? no_memory() : menoh_error_code_success;
}

MENOH_API void menoh_delete_variable_profile_table_builder(menoh_variable_profile_table_builder_handle builder) {
  if (builder == NULL) return;
  clear_variables(&builder->inputs), clear_names(&builder->outputs);
  free(builder);
}

MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_input_profile(
    menoh_variable_profile_table_builder_handle builder, const char *name, menoh_dtype dtype, int32_t dims_size,
    const int32_t *dims) {
  int64_t shape[HAGANE_AXES];
  int32_t item;
  if (builder == NULL || name == NULL || (dims == NULL && dims_size > 0)) return is_null("builder, name or dims");
  menoh_error_code code = menoh_dtype_size(dtype, &item);
  if (code != menoh_error_code_success) return code;
  if (dims_size < 0 || dims_size > HAGANE_AXES)
    return refuse(menoh_error_code_unsupported_input_dims, "unsupported input dims", name);
  if (find_variable(&builder->inputs, name) >= 0)
    return refuse(menoh_error_code_same_named_variable_already_exist, "same named variable already exist", name);
  for (int32_t i = 0; i < dims_size; i++) shape[i] = dims[i];
  return add_variable(&builder->inputs, name, menoh_types[dtype][0], dims_size, shape) ? menoh_error_code_success
                                                                                       : no_memory();
}

MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_input_profile_dims_2(
    menoh_variable_profile_table_builder_handle builder, const char *name, menoh_dtype dtype, int32_t num,
    int32_t size) {
  const int32_t dims[] = {num, size};
  return menoh_variable_profile_table_builder_add_input_profile(builder, name, dtype, 2, dims);
}

MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_input_profile_dims_4(
    menoh_variable_profile_table_builder_handle builder, const char *name, menoh_dtype dtype, int32_t num,
    int32_t channel, int32_t height, int32_t width) {
  const int32_t dims[] = {num, channel, height, width};
  return menoh_variable_profile_table_builder_add_input_profile(builder, name, dtype, 4, dims);
}

MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_output_name(
    menoh_variable_profile_table_builder_handle builder, const char *name) {
  if (builder == NULL || name == NULL) return is_null("builder or name");
  if (has_name(&builder->outputs, name))
    return refuse(menoh_error_code_same_named_variable_already_exist, "same named variable already exist", name);
  return add_name(&builder->outputs, name) ? menoh_error_code_success : no_memory();
}

MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_output_profile(
    menoh_variable_profile_table_builder_handle builder, const char *name, menoh_dtype dtype) {
  (void)dtype;
  return menoh_variable_profile_table_builder_add_output_name(builder, name);
}

/* Give variables memory, zeroed; that of which the caller has some is left out. */
static int give_memory(variables *all, void **own) {
  for (size_t i = 0; i < all->count; i++) {
    int64_t size = bytes_of_shape(all->items[i].type, all->items[i].rank, all->items[i].shape);
    if (size < 0) return 0;
    all->items[i].bytes = (size_t)size;
    if (all->items[i].data == NULL) all->items[i].data = own[i] = calloc(1, (size_t)size + 1);
    if (all->items[i].data == NULL) return 0;
  }
  return 1;
}

/* Find the sizes of outputs by a run on zeros. */
static menoh_error_code infer_outputs(hagane_model *model, variables *inputs, const name_set *names,
                                      variables *outputs) {
  void **memory = calloc(inputs->count + 1, sizeof *memory);
  hagane_tensor *results = calloc(names->count + 1, sizeof *results);
  menoh_error_code code = menoh_error_code_success;
  if (memory == NULL || results == NULL || !give_memory(inputs, memory)) code = no_memory();
  for (size_t i = 0; i < names->count && code == menoh_error_code_success; i++) results[i].name = names->names[i];
  if (code == menoh_error_code_success)
    code = code_of(hagane_run(model, inputs->items, inputs->count, results, names->count));
  for (size_t i = 0; i < names->count && code == menoh_error_code_success; i++) {
    if (menoh_type_of(results[i].type) < 0)
      code = refuse(menoh_error_code_invalid_dtype, "invalid dtype of output", names->names[i]);
    else if (!add_variable(outputs, names->names[i], results[i].type, results[i].rank, results[i].shape))
      code = no_memory();
  }
  if (results != NULL) hagane_release(model, results, names->count);
  for (size_t i = 0; i < inputs->count; i++) {
    inputs->items[i].data = NULL;
    if (memory != NULL) free(memory[i]);
  }
  free(memory), free(results);
  return code;
}

/* Compare names with those of a model; a graph of memory has no list of them until it is compiled. */
static menoh_error_code check_names(menoh_model_data_handle data, const variables *inputs, const name_set *outputs) {
  hagane_info info;
  for (size_t i = 0; i < inputs->count; i++) {
    int known = data->made && has_name(&data->read, inputs->items[i].name);
    for (size_t k = 0; data->model != NULL && k < hagane_inputs(data->model); k++)
      known = known || (hagane_input(data->model, k, &info) == HAGANE_OK && !strcmp(info.name, inputs->items[i].name));
    if (!known) return refuse(menoh_error_code_input_not_found_error, "input not found error", inputs->items[i].name);
  }
  for (size_t i = 0; i < outputs->count; i++) {
    int known = data->made && has_name(&data->written, outputs->names[i]);
    for (size_t k = 0; data->model != NULL && k < hagane_outputs(data->model); k++)
      known = known || (hagane_output(data->model, k, &info) == HAGANE_OK && !strcmp(info.name, outputs->names[i]));
    if (!known) return refuse(menoh_error_code_output_not_found_error, "output not found error", outputs->names[i]);
  }
  for (size_t k = 0; data->model != NULL && k < hagane_inputs(data->model); k++)
    if (hagane_input(data->model, k, &info) == HAGANE_OK && find_variable(inputs, info.name) < 0)
      return refuse(menoh_error_code_variable_not_found, "variable not found", info.name);
  for (size_t i = 0; data->made && i < data->read.count; i++) {
    const char *name = data->read.names[i];
    if (*name != 0 && !has_name(&data->written, name) && !has_name(&data->parameter_names, name) &&
        find_variable(inputs, name) < 0)
      return refuse(menoh_error_code_variable_not_found, "variable not found", name);
  }
  return menoh_error_code_success;
}

MENOH_API menoh_error_code
menoh_build_variable_profile_table(const menoh_variable_profile_table_builder_handle builder,
                                   const menoh_model_data_handle data,
                                   menoh_variable_profile_table_handle *dst_handle) {
  if (builder == NULL || data == NULL || dst_handle == NULL) return is_null("builder, model_data or dst_handle");
  menoh_error_code code = menoh_error_code_success;
  if (data->made || data->model != NULL) code = check_names(data, &builder->inputs, &builder->outputs);
  if (code == menoh_error_code_success && (data->made || data->onnx.size > 0)) {
    code = compile_memory(data, builder->inputs.items, builder->inputs.count, &builder->outputs);
    if (code == menoh_error_code_success) code = check_names(data, &builder->inputs, &builder->outputs);
  }
  if (code != menoh_error_code_success) return code;
  menoh_variable_profile_table_handle table = calloc(1, sizeof *table);
  if (table == NULL || !copy_others(&table->inputs, &builder->inputs, &data->parameter_names))
    code = no_memory();
  else
    code = infer_outputs(data->model, &table->inputs, &builder->outputs, &table->outputs);
  if (code != menoh_error_code_success) return menoh_delete_variable_profile_table(table), code;
  *dst_handle = table;
  return code;
}

MENOH_API void menoh_delete_variable_profile_table(menoh_variable_profile_table_handle table) {
  if (table == NULL) return;
  clear_variables(&table->inputs), clear_variables(&table->outputs);
  free(table);
}

/* A variable among outputs, then inputs. */
static menoh_error_code find_either(const variables *outputs, const variables *inputs, const char *name,
                                    const variables **in, size_t *at) {
  if (name == NULL) return is_null("variable_name");
  ptrdiff_t found = find_variable(outputs, name);
  *in = outputs;
  if (found < 0) *in = inputs, found = find_variable(inputs, name);
  if (found < 0) return refuse(menoh_error_code_variable_not_found, "variable not found", name);
  *at = (size_t)found;
  return menoh_error_code_success;
}

static menoh_error_code dims_at(const variables *in, size_t at, int32_t index, int32_t *dst_size) {
  if (index < 0 || index >= in->items[at].rank)
    return refuse(menoh_error_code_index_out_of_range, "index out of range: dims of", in->items[at].name);
  *dst_size = in->dims[at][index];
  return menoh_error_code_success;
}

#define VARIABLE_OF(owner, result)                                                                \
  const variables *in;                                                                            \
  size_t at;                                                                                      \
  if ((owner) == NULL || (result) == NULL) return is_null("handle or destination");               \
  menoh_error_code code = find_either(&(owner)->outputs, &(owner)->inputs, name, &in, &at);       \
  if (code != menoh_error_code_success) return code

MENOH_API menoh_error_code menoh_variable_profile_table_get_dtype(const menoh_variable_profile_table_handle table,
                                                                  const char *name, menoh_dtype *dst) {
  VARIABLE_OF(table, dst);
  *dst = menoh_type_of(in->items[at].type);
  return code;
}

MENOH_API menoh_error_code menoh_variable_profile_table_get_dims_size(
    const menoh_variable_profile_table_handle table, const char *name, int32_t *dst) {
  VARIABLE_OF(table, dst);
  *dst = in->items[at].rank;
  return code;
}

MENOH_API menoh_error_code menoh_variable_profile_table_get_dims_at(const menoh_variable_profile_table_handle table,
                                                                    const char *name, int32_t index, int32_t *dst) {
  VARIABLE_OF(table, dst);
  return dims_at(in, at, index, dst);
}

MENOH_API menoh_error_code menoh_variable_profile_table_get_dims(const menoh_variable_profile_table_handle table,
                                                                 const char *name, int32_t *dst,
                                                                 const int32_t **dims) {
  VARIABLE_OF(table, dst);
  if (dims == NULL) return is_null("dims");
  *dst = in->items[at].rank, *dims = in->dims[at];
  return code;
}

MENOH_API menoh_error_code menoh_model_data_optimize(menoh_model_data_handle data,
                                                     const menoh_variable_profile_table_handle table) {
  return data == NULL || table == NULL ? is_null("model_data or table") : menoh_error_code_success;
}
