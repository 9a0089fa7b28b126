/* Menoh's functions, as its examples use them: on the build of `images` in models.py, and on a graph that is
 * made node by node. */
#define MENOH_NO_WARNINGS
#include <menoh/menoh.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(what)                                                                      \
  do {                                                                                    \
    if (!(what)) {                                                                        \
      fprintf(stderr, "line %d: %s; %s\n", __LINE__, #what, menoh_get_last_error_message()); \
      exit(1);                                                                            \
    }                                                                                     \
  } while (0)
#define FINE(what) EXPECT((what) == menoh_error_code_success)
#define SAYS(text) EXPECT(strstr(menoh_get_last_error_message(), text) != NULL)

static void of_a_file(const char *path) {
  menoh_model_data_handle data;
  EXPECT(menoh_make_model_data_from_onnx("none.onnx", &data) == menoh_error_code_invalid_filename);
  SAYS("hagane build none.onnx -o none.hagane");
  FINE(menoh_make_model_data_from_onnx(path, &data));
  menoh_variable_profile_table_builder_handle builder;
  FINE(menoh_make_variable_profile_table_builder(&builder));
  menoh_variable_profile_table_handle table;
  const int32_t dims[] = {2, 3, 12, 10};
  FINE(menoh_variable_profile_table_builder_add_output_name(builder, "y"));
  EXPECT(menoh_build_variable_profile_table(builder, data, &table) == menoh_error_code_variable_not_found);
  FINE(menoh_variable_profile_table_builder_add_input_profile(builder, "x", menoh_dtype_float, 4, dims));
  EXPECT(menoh_variable_profile_table_builder_add_input_profile(builder, "x", menoh_dtype_float, 4, dims) ==
         menoh_error_code_same_named_variable_already_exist);
  EXPECT(menoh_variable_profile_table_builder_add_input_profile(builder, "z", 9, 4, dims) ==
         menoh_error_code_invalid_dtype);
  FINE(menoh_build_variable_profile_table(builder, data, &table));
  int32_t size, at;
  const int32_t *found;
  FINE(menoh_variable_profile_table_get_dims(table, "y", &size, &found));
  EXPECT(size == 2 && found[0] == 2 && found[1] == 7);
  FINE(menoh_variable_profile_table_get_dims_at(table, "x", 3, &at));
  EXPECT(at == 10);
  EXPECT(menoh_variable_profile_table_get_dims_at(table, "x", 4, &at) == menoh_error_code_index_out_of_range);
  EXPECT(menoh_variable_profile_table_get_dims_size(table, "q", &at) == menoh_error_code_variable_not_found);
  FINE(menoh_model_data_optimize(data, table));
  menoh_model_builder_handle model_builder;
  FINE(menoh_make_model_builder(table, &model_builder));
  static float input[2 * 3 * 12 * 10];
  for (int i = 0; i < 720; i++) input[i] = (float)(i % 13) / 13;
  FINE(menoh_model_builder_attach_external_buffer(model_builder, "x", input));
  EXPECT(menoh_model_builder_attach_external_buffer(model_builder, "x", input) ==
         menoh_error_code_same_named_variable_already_exist);
  menoh_model_handle model;
  EXPECT(menoh_build_model(model_builder, data, "cuda", "", &model) == menoh_error_code_invalid_backend_name);
  EXPECT(menoh_build_model(model_builder, data, "mkldnn", "{", &model) == menoh_error_code_json_parse_error);
  FINE(menoh_build_model(model_builder, data, "mkldnn", "", &model));
  menoh_delete_model_data(data);
  menoh_delete_model_builder(model_builder);
  menoh_delete_variable_profile_table(table);
  void *buffer;
  float *output;
  FINE(menoh_model_get_variable_buffer_handle(model, "x", &buffer));
  EXPECT(buffer == input);
  FINE(menoh_model_get_variable_buffer_handle(model, "y", &buffer));
  output = buffer;
  menoh_dtype dtype;
  FINE(menoh_model_get_variable_dtype(model, "y", &dtype));
  EXPECT(dtype == menoh_dtype_float32);
  for (int i = 0; i < 2; i++) FINE(menoh_model_run(model));
  for (int i = 0; i < 14; i++) printf("%.9g ", output[i]);
  menoh_delete_model(model);
  menoh_delete_variable_profile_table_builder(builder);
}

/* y = relu(x w^T + b), and its sums before the rectification. */
static void node_by_node(int may_compile) {
  menoh_model_data_handle data;
  FINE(menoh_make_model_data(&data));
  EXPECT(menoh_model_data_add_input_name_to_current_node(data, "x") != menoh_error_code_success);
  float w[] = {1, 2, 3, 4, 5, 6}, b[] = {10, -100};
  const int32_t w_dims[] = {2, 3}, b_dims[] = {2}, x_dims[] = {2, 3};
  FINE(menoh_model_data_add_parameter(data, "w", menoh_dtype_float, 2, w_dims, w));
  EXPECT(menoh_model_data_add_parameter(data, "w", menoh_dtype_float, 2, w_dims, w) ==
         menoh_error_code_same_named_parameter_already_exist);
  FINE(menoh_model_data_add_parameter(data, "b", menoh_dtype_float, 1, b_dims, b));
  FINE(menoh_model_data_add_new_node(data, "Gemm"));
  FINE(menoh_model_data_add_input_name_to_current_node(data, "x"));
  FINE(menoh_model_data_add_input_name_to_current_node(data, "w"));
  FINE(menoh_model_data_add_input_name_to_current_node(data, "b"));
  FINE(menoh_model_data_add_attribute_int_to_current_node(data, "transB", 1));
  EXPECT(menoh_model_data_add_attribute_int_to_current_node(data, "transB", 1) ==
         menoh_error_code_same_named_attribute_already_exist);
  FINE(menoh_model_data_add_attribute_float_to_current_node(data, "alpha", 1.0f));
  FINE(menoh_model_data_add_output_name_to_current_node(data, "s"));
  FINE(menoh_model_data_add_new_node(data, "Relu"));
  FINE(menoh_model_data_add_input_name_to_current_node(data, "s"));
  FINE(menoh_model_data_add_output_name_to_current_node(data, "y"));
  menoh_variable_profile_table_builder_handle builder;
  menoh_variable_profile_table_handle table;
  FINE(menoh_make_variable_profile_table_builder(&builder));
  FINE(menoh_variable_profile_table_builder_add_input_profile_dims_2(builder, "x", menoh_dtype_float, x_dims[0],
                                                                     x_dims[1]));
  FINE(menoh_variable_profile_table_builder_add_output_profile(builder, "y", menoh_dtype_float));
  FINE(menoh_variable_profile_table_builder_add_output_name(builder, "s"));
  menoh_error_code code = menoh_build_variable_profile_table(builder, data, &table);
  if (!may_compile) {
    EXPECT(code == menoh_error_code_backend_error);
    SAYS("hagane, which is not on PATH");
  } else {
    EXPECT(code == menoh_error_code_success);
    menoh_model_builder_handle model_builder;
    menoh_model_handle model;
    FINE(menoh_make_model_builder(table, &model_builder));
    FINE(menoh_build_model(model_builder, data, "mkldnn_with_generic_fallback", "{}", &model));
    void *x, *y, *s;
    FINE(menoh_model_get_variable_buffer_handle(model, "x", &x));
    FINE(menoh_model_get_variable_buffer_handle(model, "y", &y));
    FINE(menoh_model_get_variable_buffer_handle(model, "s", &s));
    for (int i = 0; i < 6; i++) ((float *)x)[i] = (float)i;
    FINE(menoh_model_run(model));
    const float want[] = {18, -83, 36, -38};
    for (int i = 0; i < 4; i++) EXPECT(((float *)s)[i] == want[i] && ((float *)y)[i] == (want[i] > 0 ? want[i] : 0));
    menoh_delete_model(model);
    menoh_delete_model_builder(model_builder);
    menoh_delete_variable_profile_table(table);
  }
  menoh_delete_variable_profile_table_builder(builder);
  menoh_delete_model_data(data);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  of_a_file(arguments[1]);
  node_by_node(strcmp(arguments[2], "compile") == 0);
  return 0;
}
