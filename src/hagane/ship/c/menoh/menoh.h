/**
 * @file menoh.h
 * @brief The functions of Menoh 1.x over builds of hagane.
 *
 * Programs for Menoh compile and link unchanged (`-I DIR -L DIR -lmenoh`). Where Menoh read an ONNX file
 * `a/b.onnx`, the build `a/b.hagane` is opened, which `hagane build a/b.onnx -o a/b.hagane` makes. Functions
 * return one of the codes below; menoh_get_last_error_message() tells the reason.
 */
#ifndef MENOH_C_INTERFACE_H
#define MENOH_C_INTERFACE_H

#include <stdint.h>

#define MENOH_SUPPORTED_ONNX_OPSET_VERSION 9
#ifndef MENOH_ERROR_MESSAGE_MAX_LENGTH
#define MENOH_ERROR_MESSAGE_MAX_LENGTH 1024
#endif

#if defined(__GNUC__)
#define MENOH_API __attribute__((visibility("default")))
#else
#define MENOH_API
#endif
#if defined(__GNUC__) && !defined(MENOH_NO_WARNINGS)
#define MENOH_DEPRECATED_ATTRIBUTE(message) __attribute__((deprecated(message)))
#else
#define MENOH_DEPRECATED_ATTRIBUTE(message)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Element types. */
enum menoh_dtype_constant {
  menoh_dtype_float,
  menoh_dtype_float16,
  menoh_dtype_float32 = menoh_dtype_float,
  menoh_dtype_float64 = menoh_dtype_float16 + 1,
  menoh_dtype_int8,
  menoh_dtype_int16,
  menoh_dtype_int32,
  menoh_dtype_int64
};
typedef int32_t menoh_dtype;

/** Results of functions. */
enum menoh_error_code_constant {
  menoh_error_code_success,
  menoh_error_code_std_error,
  menoh_error_code_unknown_error,
  menoh_error_code_invalid_filename,
  menoh_error_code_unsupported_onnx_opset_version,
  menoh_error_code_onnx_parse_error,
  menoh_error_code_invalid_dtype,
  menoh_error_code_invalid_attribute_type,
  menoh_error_code_unsupported_operator_attribute,
  menoh_error_code_dimension_mismatch,
  menoh_error_code_variable_not_found,
  menoh_error_code_index_out_of_range,
  menoh_error_code_json_parse_error,
  menoh_error_code_invalid_backend_name,
  menoh_error_code_unsupported_operator,
  menoh_error_code_failed_to_configure_operator,
  menoh_error_code_backend_error,
  menoh_error_code_same_named_variable_already_exist,
  menoh_error_code_unsupported_input_dims,
  menoh_error_code_same_named_parameter_already_exist,
  menoh_error_code_same_named_attribute_already_exist,
  menoh_error_code_invalid_backend_config_error,
  menoh_error_code_input_not_found_error,
  menoh_error_code_output_not_found_error
};
typedef int32_t menoh_error_code;

typedef struct menoh_model_data *menoh_model_data_handle;
typedef struct menoh_variable_profile_table_builder *menoh_variable_profile_table_builder_handle;
typedef struct menoh_variable_profile_table *menoh_variable_profile_table_handle;
typedef struct menoh_model_builder *menoh_model_builder_handle;
typedef struct menoh_model *menoh_model_handle;

/** The message of this thread's last error. */
MENOH_API const char *menoh_get_last_error_message(void);
/** The bytes of an element. */
MENOH_API menoh_error_code menoh_dtype_size(menoh_dtype dtype, int32_t *dst_size);

/* Models: of a file, of the bytes of one, or made node by node. */

/** Open the build `a/b.hagane` of a model `a/b.onnx`, or the build that the path names itself. */
MENOH_API menoh_error_code menoh_make_model_data_from_onnx(const char *onnx_filename,
                                                           menoh_model_data_handle *dst_handle);
/** Take a model from memory; it is compiled, by `hagane` on PATH, once the sizes of inputs are known. */
MENOH_API menoh_error_code menoh_make_model_data_from_onnx_data_on_memory(const uint8_t *onnx_data, int32_t size,
                                                                          menoh_model_data_handle *dst_handle);
/** Make a model without nodes; it is compiled as one from memory. */
MENOH_API menoh_error_code menoh_make_model_data(menoh_model_data_handle *dst_handle);
/** Delete it; models that were built of it go on. */
MENOH_API void menoh_delete_model_data(menoh_model_data_handle model_data);
/** Add a constant; its elements are copied. */
MENOH_API menoh_error_code menoh_model_data_add_parameter(menoh_model_data_handle model_data,
                                                          const char *parameter_name, menoh_dtype dtype,
                                                          int32_t dims_size, const int32_t *dims,
                                                          void *buffer_handle);
/** Add a node; the functions below speak of the last one. */
MENOH_API menoh_error_code menoh_model_data_add_new_node(menoh_model_data_handle model_data, const char *op_type);
MENOH_API menoh_error_code menoh_model_data_add_input_name_to_current_node(menoh_model_data_handle model_data,
                                                                           const char *input_name);
MENOH_API menoh_error_code menoh_model_data_add_output_name_to_current_node(menoh_model_data_handle model_data,
                                                                            const char *output_name);
MENOH_API menoh_error_code menoh_model_data_add_attribute_int_to_current_node(menoh_model_data_handle model_data,
                                                                              const char *attribute_name,
                                                                              int32_t value);
MENOH_API menoh_error_code menoh_model_data_add_attribute_float_to_current_node(menoh_model_data_handle model_data,
                                                                                const char *attribute_name,
                                                                                float value);
MENOH_API menoh_error_code menoh_model_data_add_attribute_ints_to_current_node(menoh_model_data_handle model_data,
                                                                               const char *attribute_name,
                                                                               int32_t size, const int32_t *value);
MENOH_API menoh_error_code menoh_model_data_add_attribute_floats_to_current_node(
    menoh_model_data_handle model_data, const char *attribute_name, int32_t size, const float *value);

/* Sizes of inputs, and of the outputs that follow. */

MENOH_API menoh_error_code
menoh_make_variable_profile_table_builder(menoh_variable_profile_table_builder_handle *dst_handle);
MENOH_API void menoh_delete_variable_profile_table_builder(menoh_variable_profile_table_builder_handle builder);
/** Say type and sizes of an input. */
MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_input_profile(
    menoh_variable_profile_table_builder_handle builder, const char *name, menoh_dtype dtype, int32_t dims_size,
    const int32_t *dims);
MENOH_DEPRECATED_ATTRIBUTE("use menoh_variable_profile_table_builder_add_input_profile()")
MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_input_profile_dims_2(
    menoh_variable_profile_table_builder_handle builder, const char *name, menoh_dtype dtype, int32_t num,
    int32_t size);
MENOH_DEPRECATED_ATTRIBUTE("use menoh_variable_profile_table_builder_add_input_profile()")
MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_input_profile_dims_4(
    menoh_variable_profile_table_builder_handle builder, const char *name, menoh_dtype dtype, int32_t num,
    int32_t channel, int32_t height, int32_t width);
/** Ask for an output. */
MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_output_name(
    menoh_variable_profile_table_builder_handle builder, const char *name);
MENOH_DEPRECATED_ATTRIBUTE("use menoh_variable_profile_table_builder_add_output_name(); dtype is ignored")
MENOH_API menoh_error_code menoh_variable_profile_table_builder_add_output_profile(
    menoh_variable_profile_table_builder_handle builder, const char *name, menoh_dtype dtype);
/** Find types and sizes of the outputs. */
MENOH_API menoh_error_code
menoh_build_variable_profile_table(const menoh_variable_profile_table_builder_handle builder,
                                   const menoh_model_data_handle model_data,
                                   menoh_variable_profile_table_handle *dst_handle);
MENOH_API void menoh_delete_variable_profile_table(menoh_variable_profile_table_handle variable_profile_table);
MENOH_API menoh_error_code
menoh_variable_profile_table_get_dtype(const menoh_variable_profile_table_handle variable_profile_table,
                                       const char *variable_name, menoh_dtype *dst_dtype);
MENOH_API menoh_error_code
menoh_variable_profile_table_get_dims_size(const menoh_variable_profile_table_handle variable_profile_table,
                                           const char *variable_name, int32_t *dst_size);
MENOH_API menoh_error_code
menoh_variable_profile_table_get_dims_at(const menoh_variable_profile_table_handle variable_profile_table,
                                         const char *variable_name, int32_t index, int32_t *dst_size);
MENOH_API menoh_error_code
menoh_variable_profile_table_get_dims(const menoh_variable_profile_table_handle variable_profile_table,
                                      const char *variable_name, int32_t *dst_size, const int32_t **dims);
/** Do nothing: builds are as small as they can be. */
MENOH_API menoh_error_code
menoh_model_data_optimize(menoh_model_data_handle model_data,
                          const menoh_variable_profile_table_handle variable_profile_table);

/* Running. */

MENOH_API menoh_error_code
menoh_make_model_builder(const menoh_variable_profile_table_handle variable_profile_table,
                         menoh_model_builder_handle *dst_handle);
MENOH_API void menoh_delete_model_builder(menoh_model_builder_handle model_builder);
/** Have an input or output lie in memory of the caller. */
MENOH_API menoh_error_code menoh_model_builder_attach_external_buffer(menoh_model_builder_handle builder,
                                                                      const char *variable_name,
                                                                      void *buffer_handle);
/** Make a model; any of Menoh's backends may be named. */
MENOH_API menoh_error_code menoh_build_model(const menoh_model_builder_handle builder,
                                             const menoh_model_data_handle model_data, const char *backend_name,
                                             const char *backend_config, menoh_model_handle *dst_model_handle);
MENOH_API void menoh_delete_model(menoh_model_handle model);
/** Find the memory of an input or output. */
MENOH_API menoh_error_code menoh_model_get_variable_buffer_handle(const menoh_model_handle model,
                                                                  const char *variable_name, void **dst_data);
MENOH_API menoh_error_code menoh_model_get_variable_dtype(const menoh_model_handle model,
                                                          const char *variable_name, menoh_dtype *dst_dtype);
MENOH_API menoh_error_code menoh_model_get_variable_dims_size(const menoh_model_handle model,
                                                              const char *variable_name, int32_t *dst_size);
MENOH_API menoh_error_code menoh_model_get_variable_dims_at(const menoh_model_handle model,
                                                            const char *variable_name, int32_t index,
                                                            int32_t *dst_size);
MENOH_API menoh_error_code menoh_model_get_variable_dims(const menoh_model_handle model, const char *variable_name,
                                                         int32_t *dst_size, const int32_t **dims);
/** Run it: read the inputs' memory, write the outputs'. One thread at a time. */
MENOH_API menoh_error_code menoh_model_run(menoh_model_handle model);

#ifdef __cplusplus
}
#endif

#endif
