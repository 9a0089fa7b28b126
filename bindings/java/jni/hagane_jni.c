/* The native methods of hagane.Model:
 *
 *     cc -shared -fPIC -I $JAVA_HOME/include -I $JAVA_HOME/include/linux -I BUILD hagane_jni.c -ldl \
 *       -o libhagane_jni.so
 */
#include <dlfcn.h>
#include <hagane.h>
#include <jni.h>
#include <stdlib.h>
#include <string.h>

enum { AXES = 16 };

typedef struct {
  hagane_model *model;
  int32_t (*open)(const char *, const hagane_options *, hagane_model **);
  void (*close)(hagane_model *);
  size_t (*count[2])(const hagane_model *);
  int32_t (*describe[2])(const hagane_model *, size_t, hagane_info *);
  int32_t (*run)(hagane_model *, const hagane_tensor *, size_t, hagane_tensor *, size_t);
  void (*release)(hagane_model *, hagane_tensor *, size_t);
  const char *(*message)(void);
} opened;

/* A text of UTF-8 as bytes: JNI's own texts have another form for some letters. */
static jbyteArray bytes_of(JNIEnv *env, const char *text) {
  jsize length = (jsize)strlen(text);
  jbyteArray made = (*env)->NewByteArray(env, length);
  if (made != NULL) (*env)->SetByteArrayRegion(env, made, 0, length, (const jbyte *)text);
  return made;
}

/* A copy of bytes that end with a zero; NULL if there is no memory. */
static char *text_of(JNIEnv *env, jbyteArray bytes) {
  jsize length = (*env)->GetArrayLength(env, bytes);
  char *text = malloc((size_t)length + 1);
  if (text == NULL) return NULL;
  (*env)->GetByteArrayRegion(env, bytes, 0, length, (jbyte *)text);
  text[length] = 0;
  return text;
}

static void fail(JNIEnv *env, int32_t code, const char *text) {
  jclass kind = (*env)->FindClass(env, "hagane/HaganeException");
  if (kind == NULL) return;
  jmethodID make = (*env)->GetMethodID(env, kind, "<init>", "(I[B)V");
  jbyteArray message = bytes_of(env, text);
  if (make == NULL || message == NULL) return;
  jobject error = (*env)->NewObject(env, kind, make, (jint)code, message);
  if (error != NULL) (*env)->Throw(env, (jthrowable)error);
}

/* Find a function; data and functions have pointers of one size here. */
static int find(void *library, const char *name, void *place) {
  void *found = dlsym(library, name);
  memcpy(place, &found, sizeof found);
  return found != NULL;
}

JNIEXPORT jlong JNICALL Java_hagane_Model_open(JNIEnv *env, jclass self, jbyteArray path, jbyteArray folder) {
  (void)self;
  opened *made = calloc(1, sizeof *made);
  char *text = text_of(env, path), *where = text_of(env, folder);
  if (made == NULL || text == NULL || where == NULL) {
    free(text), free(where), free(made);
    fail(env, HAGANE_MEMORY, "there is no memory for a model");
    return 0;
  }
  void *library = dlopen(text, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fail(env, HAGANE_DAMAGED, dlerror());
  } else if (!find(library, "hagane_open", &made->open) || !find(library, "hagane_close", &made->close) ||
             !find(library, "hagane_inputs", &made->count[0]) ||
             !find(library, "hagane_outputs", &made->count[1]) ||
             !find(library, "hagane_input", &made->describe[0]) ||
             !find(library, "hagane_output", &made->describe[1]) || !find(library, "hagane_run", &made->run) ||
             !find(library, "hagane_release", &made->release) ||
             !find(library, "hagane_message", &made->message)) {
    fail(env, HAGANE_DAMAGED, "the library is no build's");
  } else {
    int32_t code = made->open(where, NULL, &made->model);
    if (code != HAGANE_OK) fail(env, code, made->message());
  }
  free(text), free(where);
  if (made->model != NULL) return (jlong)(intptr_t)made;
  free(made);
  return 0;
}

static opened *of(jlong handle) { return (opened *)(intptr_t)handle; }

JNIEXPORT void JNICALL Java_hagane_Model_close(JNIEnv *env, jclass self, jlong handle) {
  (void)env, (void)self;
  of(handle)->close(of(handle)->model);
  free(of(handle));
}

JNIEXPORT jobjectArray JNICALL Java_hagane_Model_names(JNIEnv *env, jclass self, jlong handle, jboolean outputs) {
  (void)self;
  opened *own = of(handle);
  size_t n = own->count[outputs != 0](own->model);
  jobjectArray made = (*env)->NewObjectArray(env, (jsize)n, (*env)->FindClass(env, "[B"), NULL);
  for (size_t i = 0; made != NULL && i < n; i++) {
    hagane_info info;
    own->describe[outputs != 0](own->model, i, &info);
    jbyteArray name = bytes_of(env, info.name);
    if (name == NULL) return NULL;
    (*env)->SetObjectArrayElement(env, made, (jsize)i, name);
    (*env)->DeleteLocalRef(env, name);
  }
  return made;
}

JNIEXPORT jlongArray JNICALL Java_hagane_Model_describe(JNIEnv *env, jclass self, jlong handle, jboolean outputs,
                                                        jint index) {
  (void)self;
  hagane_info info;
  of(handle)->describe[outputs != 0](of(handle)->model, (size_t)index, &info);
  jlong numbers[1 + 2 * AXES] = {info.type};
  for (int32_t i = 0; i < info.rank; i++) {
    numbers[1 + i] = info.least[i];
    numbers[1 + info.rank + i] = info.most[i];
  }
  jlongArray made = (*env)->NewLongArray(env, 1 + 2 * info.rank);
  if (made != NULL) (*env)->SetLongArrayRegion(env, made, 0, 1 + 2 * info.rank, numbers);
  return made;
}

/* The shape and a direct copy of one output. */
static int put_output(JNIEnv *env, jclass kind, jmethodID make, jobjectArray results, jsize at,
                      const hagane_tensor *from) {
  jlong shape[AXES];
  for (int32_t i = 0; i < from->rank; i++) shape[i] = from->shape[i];
  jlongArray sizes = (*env)->NewLongArray(env, from->rank);
  if (sizes == NULL) return 0;
  (*env)->SetLongArrayRegion(env, sizes, 0, from->rank, shape);
  if (from->bytes > INT32_MAX) return fail(env, HAGANE_MEMORY, "an output has 2 GiB or more"), 0;
  jobject data = (*env)->CallStaticObjectMethod(env, kind, make, (jint)from->bytes);
  if ((*env)->ExceptionCheck(env) || data == NULL) return 0;
  memcpy((*env)->GetDirectBufferAddress(env, data), from->data, from->bytes);
  (*env)->SetObjectArrayElement(env, results, at, sizes);
  (*env)->SetObjectArrayElement(env, results, at + 1, data);
  (*env)->DeleteLocalRef(env, data);
  (*env)->DeleteLocalRef(env, sizes);
  return 1;
}

JNIEXPORT jobjectArray JNICALL Java_hagane_Model_run(JNIEnv *env, jclass self, jlong handle, jobjectArray names,
                                                     jintArray types, jobjectArray shapes, jobjectArray data) {
  (void)self;
  opened *own = of(handle);
  jsize n = (*env)->GetArrayLength(env, names);
  size_t n_out = own->count[1](own->model);
  hagane_tensor *in = calloc((size_t)n + 1, sizeof *in), *out = calloc(n_out + 1, sizeof *out);
  jint *kinds = (*env)->GetIntArrayElements(env, types, NULL);
  jobjectArray results = NULL;
  int ready = in != NULL && out != NULL && kinds != NULL;
  for (jsize i = 0; ready && i < n; i++) {
    jbyteArray name = (*env)->GetObjectArrayElement(env, names, i);
    jlongArray shape = (*env)->GetObjectArrayElement(env, shapes, i);
    jobject buffer = (*env)->GetObjectArrayElement(env, data, i);
    jsize rank = (*env)->GetArrayLength(env, shape);
    char *copy = text_of(env, name);
    ready = copy != NULL && rank <= AXES; /* Model.java has looked at the latter */
    in[i].name = copy, in[i].type = kinds[i], in[i].rank = rank;
    jlong sizes[AXES];
    if (ready) (*env)->GetLongArrayRegion(env, shape, 0, rank, sizes);
    for (jsize k = 0; ready && k < rank; k++) in[i].shape[k] = sizes[k];
    in[i].data = (*env)->GetDirectBufferAddress(env, buffer);
    in[i].bytes = (size_t)(*env)->GetDirectBufferCapacity(env, buffer);
    (*env)->DeleteLocalRef(env, buffer);
    (*env)->DeleteLocalRef(env, shape);
    (*env)->DeleteLocalRef(env, name);
  }
  if (!ready && !(*env)->ExceptionCheck(env)) fail(env, HAGANE_MEMORY, "there is no memory for a run");
  for (size_t i = 0; ready && i < n_out; i++) {
    hagane_info info;
    own->describe[1](own->model, i, &info);
    out[i].name = info.name;
  }
  if (ready) {
    int32_t code = own->run(own->model, in, (size_t)n, out, n_out);
    if (code != HAGANE_OK) {
      fail(env, code, own->message());
    } else {
      jclass object = (*env)->FindClass(env, "java/lang/Object"), kind = (*env)->FindClass(env, "java/nio/ByteBuffer");
      jmethodID make = kind == NULL ? NULL : (*env)->GetStaticMethodID(env, kind, "allocateDirect", "(I)Ljava/nio/ByteBuffer;");
      if (object != NULL && make != NULL) results = (*env)->NewObjectArray(env, (jsize)(2 * n_out), object, NULL);
      for (size_t i = 0; results != NULL && i < n_out; i++)
        if (!put_output(env, kind, make, results, (jsize)(2 * i), &out[i])) results = NULL;
      own->release(own->model, out, n_out);
    }
  }
  if (kinds != NULL) (*env)->ReleaseIntArrayElements(env, types, kinds, JNI_ABORT);
  for (jsize i = 0; in != NULL && i < n; i++) free((char *)(intptr_t)in[i].name);
  free(in), free(out);
  return results;
}
