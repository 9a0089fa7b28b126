/* A graph made node by node, whose input is a parameter too, and has four axes before a Gemm. */
#include <menoh/menoh.h>
#include <stdio.h>

#define CHECK(call)                                        \
  if ((call) != menoh_error_code_success) {                \
    fprintf(stderr, "%s\n", menoh_get_last_error_message()); \
    return 1;                                              \
  }

int main(void) {
  float input[12], weight[18], bias[3] = {1, 2, 3};
  const int32_t dims[4] = {2, 1, 2, 3}, sizes[2] = {3, 6}, three[1] = {3};
  for (int i = 0; i < 12; i++) input[i] = (float)(i % 5) - 2;
  for (int i = 0; i < 18; i++) weight[i] = (float)(i % 7) - 3;
  menoh_model_data_handle data;
  CHECK(menoh_make_model_data(&data))
  CHECK(menoh_model_data_add_parameter(data, "input", menoh_dtype_float, 4, dims, input))
  CHECK(menoh_model_data_add_parameter(data, "weight", menoh_dtype_float, 2, sizes, weight))
  CHECK(menoh_model_data_add_parameter(data, "bias", menoh_dtype_float, 1, three, bias))
  CHECK(menoh_model_data_add_new_node(data, "Gemm"))
  CHECK(menoh_model_data_add_attribute_int_to_current_node(data, "transB", 1))
  CHECK(menoh_model_data_add_input_name_to_current_node(data, "input"))
  CHECK(menoh_model_data_add_input_name_to_current_node(data, "weight"))
  CHECK(menoh_model_data_add_input_name_to_current_node(data, "bias"))
  CHECK(menoh_model_data_add_output_name_to_current_node(data, "product"))
  CHECK(menoh_model_data_add_new_node(data, "Relu"))
  CHECK(menoh_model_data_add_input_name_to_current_node(data, "product"))
  CHECK(menoh_model_data_add_output_name_to_current_node(data, "output"))
  menoh_variable_profile_table_builder_handle profiles;
  CHECK(menoh_make_variable_profile_table_builder(&profiles))
  CHECK(menoh_variable_profile_table_builder_add_input_profile(profiles, "input", menoh_dtype_float, 4, dims))
  CHECK(menoh_variable_profile_table_builder_add_input_profile(profiles, "weight", menoh_dtype_float, 2, sizes))
  CHECK(menoh_variable_profile_table_builder_add_output_name(profiles, "product"))
  CHECK(menoh_variable_profile_table_builder_add_output_name(profiles, "output"))
  menoh_variable_profile_table_handle table;
  CHECK(menoh_build_variable_profile_table(profiles, data, &table))
  menoh_model_builder_handle builder;
  CHECK(menoh_make_model_builder(table, &builder))
  menoh_model_handle model;
  CHECK(menoh_build_model(builder, data, "mkldnn_with_generic_fallback", "", &model))
  CHECK(menoh_model_run(model))
  float *found[2];
  CHECK(menoh_model_get_variable_buffer_handle(model, "product", (void **)&found[0]))
  CHECK(menoh_model_get_variable_buffer_handle(model, "output", (void **)&found[1]))
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 6; i++) printf("%g ", found[k][i]);
  menoh_delete_model(model);
  menoh_delete_model_builder(builder);
  menoh_delete_variable_profile_table(table);
  menoh_delete_variable_profile_table_builder(profiles);
  menoh_delete_model_data(data);
  return 0;
}
