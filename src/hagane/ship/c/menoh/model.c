/* Menoh's functions: models that run. */

struct menoh_model_builder {
  variables inputs, outputs;
  name_set attached;
  void **memory; /* one for each name */
};

struct menoh_model {
  menoh_model_data_handle data;
  variables inputs, outputs;
  void **own_inputs, **own_outputs;
};

MENOH_API menoh_error_code menoh_make_model_builder(const menoh_variable_profile_table_handle table,
                                                    menoh_model_builder_handle *dst_handle) {
  if (table == NULL || dst_handle == NULL) return is_null("table or dst_handle");
  menoh_model_builder_handle made = calloc(1, sizeof *made);
  if (made == NULL || !copy_variables(&made->inputs, &table->inputs) || !copy_variables(&made->outputs, &table->outputs))
    return menoh_delete_model_builder(made), no_memory();
  *dst_handle = made;
  return menoh_error_code_success;
}

MENOH_API void menoh_delete_model_builder(menoh_model_builder_handle builder) {
  if (builder == NULL) return;
  clear_variables(&builder->inputs), clear_variables(&builder->outputs), clear_names(&builder->attached);
  free(builder->memory);
  free(builder);
}

MENOH_API menoh_error_code menoh_model_builder_attach_external_buffer(menoh_model_builder_handle builder,
                                                                      const char *name, void *buffer_handle) {
  if (builder == NULL || name == NULL || buffer_handle == NULL) return is_null("builder, name or buffer");
  if (has_name(&builder->attached, name))
    return refuse(menoh_error_code_same_named_variable_already_exist, "same named variable already exist", name);
  void **memory = realloc(builder->memory, sizeof *memory * (builder->attached.count + 1));
  if (memory == NULL) return no_memory();
  builder->memory = memory;
  memory[builder->attached.count] = buffer_handle;
  return add_name(&builder->attached, name) ? menoh_error_code_success : no_memory();
}

static void attach(const struct menoh_model_builder *builder, variables *all) {
  for (size_t i = 0; i < builder->attached.count; i++) {
    ptrdiff_t at = find_variable(all, builder->attached.names[i]);
    if (at >= 0) all->items[at].data = builder->memory[i];
  }
}

static menoh_error_code check_backend(const char *name, const char *config) {
  static const char *const known[] = {"mkldnn", "mkldnn_with_generic_fallback", "composite_backend", "hagane"};
  int found = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) found = found || strcmp(name, known[i]) == 0;
  if (!found) return refuse(menoh_error_code_invalid_backend_name, "invalid backend name", name);
  span text = {config, config + strlen(config)};
  if (text.at == text.end) return menoh_error_code_success;
  int whole = skip_value(&text, 0);
  skip_space(&text);
  return whole && text.at == text.end
             ? menoh_error_code_success
             : refuse(menoh_error_code_json_parse_error, "json parse error: backend config", config);
}

MENOH_API menoh_error_code menoh_build_model(const menoh_model_builder_handle builder,
                                             const menoh_model_data_handle data, const char *backend_name,
                                             const char *backend_config, menoh_model_handle *dst_model_handle) {
  if (builder == NULL || data == NULL || backend_name == NULL || dst_model_handle == NULL)
    return is_null("builder, model_data, backend_name or dst_model_handle");
  menoh_error_code code = check_backend(backend_name, backend_config == NULL ? "" : backend_config);
  if (code != menoh_error_code_success) return code;
  if (data->model == NULL)
    return refuse(menoh_error_code_backend_error, "backend error", "the model is of no table of variables");
  menoh_model_handle made = calloc(1, sizeof *made);
  if (made == NULL) return no_memory();
  made->data = hold(data);
  int done = copy_variables(&made->inputs, &builder->inputs) && copy_variables(&made->outputs, &builder->outputs);
  made->own_inputs = calloc(builder->inputs.count + 1, sizeof(void *));
  made->own_outputs = calloc(builder->outputs.count + 1, sizeof(void *));
  done = done && made->own_inputs != NULL && made->own_outputs != NULL;
  if (done) attach(builder, &made->inputs), attach(builder, &made->outputs);
  if (!done || !give_memory(&made->inputs, made->own_inputs) || !give_memory(&made->outputs, made->own_outputs))
    return menoh_delete_model(made), no_memory();
  *dst_model_handle = made;
  return menoh_error_code_success;
}

MENOH_API void menoh_delete_model(menoh_model_handle model) {
  if (model == NULL) return;
  for (size_t i = 0; model->own_inputs != NULL && i < model->inputs.count; i++) free(model->own_inputs[i]);
  for (size_t i = 0; model->own_outputs != NULL && i < model->outputs.count; i++) free(model->own_outputs[i]);
  free(model->own_inputs), free(model->own_outputs);
  clear_variables(&model->inputs), clear_variables(&model->outputs);
  menoh_delete_model_data(model->data);
  free(model);
}

MENOH_API menoh_error_code menoh_model_get_variable_buffer_handle(const menoh_model_handle model, const char *name,
                                                                  void **dst) {
  VARIABLE_OF(model, dst);
  *dst = in->items[at].data;
  return code;
}

MENOH_API menoh_error_code menoh_model_get_variable_dtype(const menoh_model_handle model, const char *name,
                                                          menoh_dtype *dst) {
  VARIABLE_OF(model, dst);
  *dst = menoh_type_of(in->items[at].type);
  return code;
}

MENOH_API menoh_error_code menoh_model_get_variable_dims_size(const menoh_model_handle model, const char *name,
                                                              int32_t *dst) {
  VARIABLE_OF(model, dst);
  *dst = in->items[at].rank;
  return code;
}

MENOH_API menoh_error_code menoh_model_get_variable_dims_at(const menoh_model_handle model, const char *name,
                                                            int32_t index, int32_t *dst) {
  VARIABLE_OF(model, dst);
  return dims_at(in, at, index, dst);
}

MENOH_API menoh_error_code menoh_model_get_variable_dims(const menoh_model_handle model, const char *name,
                                                         int32_t *dst, const int32_t **dims) {
  VARIABLE_OF(model, dst);
  if (dims == NULL) return is_null("dims");
  *dst = in->items[at].rank, *dims = in->dims[at];
  return code;
}

MENOH_API menoh_error_code menoh_model_run(menoh_model_handle model) {
  if (model == NULL) return is_null("model");
  /* A run sets the size of its result; the memory stays as large as it is. */
  return code_of(hagane_run(model->data->model, model->inputs.items, model->inputs.count, model->outputs.items,
                            model->outputs.count));
}

/* This library has no model of its own. */
__attribute__((visibility("hidden"))) const hgb_built hagane_built = {PLAN_FORMAT, "menoh", NULL, 0, NULL, "", 0};
