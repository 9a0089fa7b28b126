/**
 * @file hagane.h
 * @brief Runs models that `hagane build` compiled.
 *
 * A build is a folder with a library, packed weights and a manifest. The library needs the C library,
 * its mathematics and threads, and nothing else. This interface is version 1.0; a build of any model is
 * opened by the library of any other build of the same interface version.
 *
 * Functions return one of the codes of hagane_code. After any other than HAGANE_OK, hagane_message()
 * tells the reason and the place. Strings are UTF-8.
 */
#ifndef HAGANE_H
#define HAGANE_H

#include <stddef.h>
#include <stdint.h>

/** Stands before each function: it can be seen outside of the library. */
#if defined(__GNUC__)
#define HAGANE_API __attribute__((visibility("default")))
#else
#define HAGANE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** The version of this interface, as hagane_version() gives it. */
#define HAGANE_VERSION_TEXT "1.0"
/** The most axes of a tensor. */
#define HAGANE_AXES 16

/** Results of functions. */
enum hagane_code {
  HAGANE_OK,               /**< It is done. */
  HAGANE_INVALID_ARGUMENT, /**< A null pointer, a name that the model lacks or that is missing, data out of range. */
  HAGANE_NOT_FOUND,        /**< There is no such folder or file. */
  HAGANE_DAMAGED,          /**< The manifest, library or weights are damaged, or of another build. */
  HAGANE_SHAPE,            /**< A size outside the range that the model was built for. */
  HAGANE_TYPE,             /**< Another element type than the model's. */
  HAGANE_CPU,              /**< This processor lacks instructions that the build uses. */
  HAGANE_MEMORY,           /**< The caller's memory is too small, or there is none left. */
  HAGANE_VERSION,          /**< The build has another version of this interface. */
  HAGANE_CANCELLED,        /**< The caller cancelled the run. */
  HAGANE_INTERNAL          /**< An error of hagane's own. */
};

/** A model that is open. Any number of threads may run one at the same time. */
typedef struct hagane_model hagane_model;

/** A tensor in row-major order. */
typedef struct hagane_tensor {
  const char *name;           /**< The input's or output's name. */
  int32_t type;               /**< The element type, as TensorProto.DataType of ONNX has it: 1 is float. */
  int32_t rank;               /**< How many axes. */
  int64_t shape[HAGANE_AXES]; /**< The size of each. */
  void *data;                 /**< The elements; NULL for an output that hagane shall allocate. */
  size_t bytes;               /**< The size of the memory at `data`; of an output, afterwards, the size of the result. */
} hagane_tensor;

/** An input or output, and the range of sizes that the model was built for. */
typedef struct hagane_info {
  const char *name;           /**< Lives as long as the model. */
  int32_t type;               /**< The element type. */
  int32_t rank;               /**< How many axes. */
  int64_t least[HAGANE_AXES]; /**< The smallest size of each. */
  int64_t most[HAGANE_AXES];  /**< The largest; INT64_MAX where only a run tells. */
} hagane_info;

/** Settings of a model. Zero and NULL leave a thing to hagane. */
typedef struct hagane_options {
  size_t size;     /**< sizeof(hagane_options), so that later versions may add to it. */
  int32_t threads; /**< How many threads a run uses; 0: as many as the build was made for, or cores there are. */
  void *context;   /**< Handed to the functions below. */
  /** Returns memory of so many bytes at a multiple of `alignment`, a power of two; NULL if there is none. */
  void *(*allocate)(void *context, size_t bytes, size_t alignment);
  /** Takes back memory that `allocate` returned. Both are set, or neither. */
  void (*release)(void *context, void *memory);
  /** Is told of events: level 0 details, 1 notices, 2 warnings, 3 errors. */
  void (*log)(void *context, int32_t level, const char *text);
  /** Calls task(argument, i) for each i from 0 to tasks - 1, in any order, on any threads, and returns when
   *  all have returned. Is used in place of hagane's own threads. */
  void (*parallel)(void *context, void (*task)(void *, int32_t), void *argument, int32_t tasks);
  /** Once the number there is not 0, runs end with HAGANE_CANCELLED. */
  const volatile int32_t *cancel;
} hagane_options;

/**
 * @brief Open a build.
 * @param folder Path of the folder.
 * @param options Settings, or NULL. They are copied.
 * @param[out] model The model; NULL after an error.
 */
HAGANE_API int32_t hagane_open(const char *folder, const hagane_options *options, hagane_model **model);

/**
 * @brief Open the build of this library from memory.
 *
 * The weights are used where they are, and must stay there until hagane_close(), if they begin at a
 * multiple of 64; else they are copied. They are NULL for a build that embeds its weights.
 */
HAGANE_API int32_t hagane_open_memory(const void *manifest, size_t manifest_bytes, const void *weights,
                                      size_t weight_bytes, const hagane_options *options,
                                      hagane_model **model);

/** @brief Close a model, and release its memory. No run may go on. NULL is allowed. */
HAGANE_API void hagane_close(hagane_model *model);

/** @brief Return how many inputs the model has. */
HAGANE_API size_t hagane_inputs(const hagane_model *model);

/** @brief Return how many outputs the model has. */
HAGANE_API size_t hagane_outputs(const hagane_model *model);

/** @brief Describe an input, counted from 0. */
HAGANE_API int32_t hagane_input(const hagane_model *model, size_t index, hagane_info *info);

/** @brief Describe an output, counted from 0. */
HAGANE_API int32_t hagane_output(const hagane_model *model, size_t index, hagane_info *info);

/**
 * @brief Run the model.
 * @param model May be run by other threads at the same time.
 * @param inputs All inputs, in any order. The elements are only read.
 * @param input_count How many there are.
 * @param[in,out] outputs The outputs that are wanted, in any order. Type, rank, shape and bytes are set.
 *   Where `data` is NULL, hagane allocates; else `bytes` says how much memory lies there. Too little is
 *   HAGANE_MEMORY, and nothing is written to it.
 * @param output_count How many are wanted.
 */
HAGANE_API int32_t hagane_run(hagane_model *model, const hagane_tensor *inputs, size_t input_count,
                              hagane_tensor *outputs, size_t output_count);

/** @brief Release the outputs among these that hagane allocated; their data become NULL. */
HAGANE_API void hagane_release(hagane_model *model, hagane_tensor *outputs, size_t count);

/** @brief Return the message of this thread's last call that failed; valid until its next one. */
HAGANE_API const char *hagane_message(void);

/** @brief Return the version of this interface. */
HAGANE_API const char *hagane_version(void);

#ifdef __cplusplus
}
#endif

#endif
