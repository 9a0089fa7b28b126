/* Whether this processor has the instructions that a build uses. */

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t read_xcr0(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

/* Linux hands out the registers of matrix tiles on request. */
static int may_use_tiles(void) { return syscall(158, 0x1023, 18) == 0; }

static int has_feature(const char *name) {
  /* leaf, subleaf, register (eax to edx), bit, and the registers that the system must save */
  static const struct {
    const char *name;
    uint32_t leaf, subleaf, which, bit;
    uint64_t saved;
  } known[] = {
      {"fma", 1, 0, 2, 12, 0x6},           {"f16c", 1, 0, 2, 29, 0x6},
      {"avx2", 7, 0, 1, 5, 0x6},           {"avx512f", 7, 0, 1, 16, 0xe6},
      {"avx512dq", 7, 0, 1, 17, 0xe6},     {"avx512bw", 7, 0, 1, 30, 0xe6},
      {"avx512vl", 7, 0, 1, 31, 0xe6},     {"avx512_vnni", 7, 0, 2, 11, 0xe6},
      {"avx512_bf16", 7, 1, 0, 5, 0xe6},   {"amx_bf16", 7, 0, 3, 22, 0x600e6},
      {"amx_tile", 7, 0, 3, 24, 0x600e6},  {"amx_int8", 7, 0, 3, 25, 0x600e6},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(name, known[i].name) != 0) continue;
    uint32_t r[4];
    if (!__get_cpuid_count(1, 0, &r[0], &r[1], &r[2], &r[3]) || !(r[2] >> 27 & 1)) return 0;
    if ((read_xcr0() & known[i].saved) != known[i].saved) return 0;
    if (!__get_cpuid_count(known[i].leaf, known[i].subleaf, &r[0], &r[1], &r[2], &r[3])) return 0;
    if (!(r[known[i].which] >> known[i].bit & 1)) return 0;
    return strncmp(name, "amx_", 4) != 0 || may_use_tiles();
  }
  return 0;
}
#define MACHINE "x86_64"
#elif defined(__aarch64__)
static int has_feature(const char *name) { return strcmp(name, "asimd") == 0; }
#define MACHINE "aarch64"
#else
static int has_feature(const char *name) { return (void)name, 0; }
#define MACHINE "other"
#endif

/* The target of a manifest: "x86_64" or another machine, and features after a plus sign each. */
static int32_t check_processor(span manifest, const char *where) {
  char machine[32], target[128];
  if (!find_text(manifest, "machine", machine, sizeof machine) ||
      !find_text(manifest, "target", target, sizeof target))
    return fail(NULL, HAGANE_DAMAGED, "%s: the manifest names no target", where);
  if (strcmp(machine, MACHINE) != 0)
    return fail(NULL, HAGANE_CPU, "%s: built for %s, and this process is one of " MACHINE, where, target);
  span needs;
  if (!find_key(manifest, "needs", &needs) || *needs.at != '[')
    return fail(NULL, HAGANE_DAMAGED, "%s: the manifest does not list the instructions", where);
  for (const char *at = needs.at; at < needs.end; at++) {
    if (*at != '"') continue;
    const char *from = ++at;
    while (at < needs.end && *at != '"') at++;
    char name[32];
    size_t length = (size_t)(at - from);
    if (length >= sizeof name)
      return fail(NULL, HAGANE_DAMAGED, "%s: the manifest lists unknown instructions", where);
    memcpy(name, from, length);
    name[length] = 0;
    if (!has_feature(name))
      return fail(NULL, HAGANE_CPU,
                  "%s: built for %s, and this processor lacks %s; build the model with --target for it",
                  where, target, name);
  }
  return HAGANE_OK;
}
