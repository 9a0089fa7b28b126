/* Matrix tiles (AMX) on processors that have AVX-512 but no tiles: their instructions fault, and the
 * handler of that signal does what they would (Intel 64 and IA-32 Architectures Software Developer's
 * Manual, volume 2). Compiled with a sanitizer, it checks the memory that tiles touch. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

typedef union {
  uint8_t bytes[16][64];
  int8_t signs[16][64];
  uint32_t words[16][16];
  int32_t sums[16][16];
  float floats[16][16];
} tile;

/* What LDTILECFG reads. */
typedef struct {
  uint8_t palette, start, reserved[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} shapes;

static __thread struct {
  int shaped;
  shapes shapes;
  tile tiles[8];
} state;

static struct sigaction before;

static float of_bf16(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void multiply_bf16(int to, int left, int right) {
  for (int m = 0; m < state.shapes.rows[to]; m++) {
    float even[16] = {0}, odd[16] = {0};
    for (int k = 0; k < state.shapes.bytes[left] / 4; k++) {
      uint32_t x = state.tiles[left].words[m][k];
      float low = of_bf16(x << 16), high = of_bf16(x & 0xffff0000u);
      for (int n = 0; n < 16; n++) {
        uint32_t w = state.tiles[right].words[k][n];
        even[n] += low * of_bf16(w << 16), odd[n] += high * of_bf16(w & 0xffff0000u);
      }
    }
    for (int n = 0; n < state.shapes.bytes[to] / 4; n++)
      state.tiles[to].floats[m][n] += even[n] + odd[n];
  }
}

static void multiply_bytes(int to, int left, int right) {
  for (int m = 0; m < state.shapes.rows[to]; m++)
    for (int k = 0; k < state.shapes.bytes[left]; k++)
      for (int n = 0; n < state.shapes.bytes[to] / 4; n++)
        state.tiles[to].sums[m][n] +=
            state.tiles[left].bytes[m][k] * state.tiles[right].signs[k / 4][4 * n + k % 4];
}

static int begin(const shapes *wanted) {
  if (wanted->palette != 1) return 0;
  for (int i = 0; i < 8; i++)
    if (wanted->rows[i] > 16 || wanted->bytes[i] > 64 || wanted->bytes[i] % 4) return 0;
  memset(&state, 0, sizeof state);
  memcpy(&state.shapes, wanted, sizeof state.shapes);
  return state.shaped = 1;
}

/* Whether the shapes of three tiles fit. */
static int fit(int to, int left, int right) {
  const shapes *s = &state.shapes;
  return s->rows[to] == s->rows[left] && s->bytes[left] == 4 * s->rows[right] &&
         s->bytes[to] == s->bytes[right] && to != left && to != right && left != right;
}

/* The instruction at `at`, if it is one of a tile: where the next one begins, else null. */
static const uint8_t *step(const uint8_t *at, const greg_t *registers) {
  static const int numbers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};
  enum { NONE, X66, XF3, XF2 };
  if (at[0] != 0xc4 || (at[1] & 31) != 2 || (at[2] & 0x84) != 0) return NULL;
  int high_index = at[1] & 0x40 ? 0 : 8, high_base = at[1] & 0x20 ? 0 : 8;
  int prefix = at[2] & 3, third = ~(at[2] >> 3) & 7, operation = at[3];
  int mode = at[4] >> 6, first = at[4] >> 3 & 7, second = at[4] & 7;
  const uint8_t *next = at + 5;
  char *place = NULL;
  int64_t stride = 0;
  if (mode != 3) {
    int base = second | high_base;
    if (second == 4) {
      int index = (*next >> 3 & 7) | high_index;
      stride = index == 4 ? 0 : (int64_t)registers[numbers[index]] << (*next >> 6);
      base = (*next & 7) | high_base;
      next++;
    }
    int32_t away = 0;
    int bytes = mode == 1 ? 1 : mode == 2 || (base & 7) == 5 ? 4 : 0;
    memcpy(&away, next, (size_t)bytes);
    if (bytes == 1) away = (int8_t)away;
    next += bytes;
    if (mode != 0 || (base & 7) != 5) place = (char *)registers[numbers[base]];
    else if (second != 4) place = (char *)next;
    place += away;
  }
  if (operation == 0x49 && prefix == NONE && mode != 3)
    return begin((const shapes *)(place + stride)) ? next : NULL;
  if (!state.shaped) return NULL;
  int rows = state.shapes.rows[first], bytes = state.shapes.bytes[first];
  tile *tiles = state.tiles;
  if (operation == 0x49 && prefix == NONE && first == 0) {
    state.shaped = 0;
  } else if (operation == 0x49 && prefix == XF2 && mode == 3) {
    memset(&tiles[first], 0, sizeof *tiles);
  } else if (operation == 0x4b && (prefix == XF2 || prefix == X66) && mode != 3) {
    memset(&tiles[first], 0, sizeof *tiles);
    for (int i = 0; i < rows; i++) memcpy(tiles[first].bytes[i], place + i * stride, (size_t)bytes);
  } else if (operation == 0x4b && prefix == XF3 && mode != 3) {
    for (int i = 0; i < rows; i++) memcpy(place + i * stride, tiles[first].bytes[i], (size_t)bytes);
  } else if (operation == 0x5c && prefix == XF3 && mode == 3 && fit(first, second, third)) {
    multiply_bf16(first, second, third);
  } else if (operation == 0x5e && prefix == X66 && mode == 3 && fit(first, second, third)) {
    multiply_bytes(first, second, third);
  } else {
    return NULL;
  }
  return next;
}

static void handle(int signal, siginfo_t *info, void *context) {
  (void)signal, (void)info;
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  const uint8_t *at = (const uint8_t *)registers[REG_RIP], *next = step(at, registers);
  if (next == NULL) sigaction(SIGILL, &before, NULL); /* who came first is told, right away */
  while (next != NULL) at = next, next = step(at, registers);
  registers[REG_RIP] = (greg_t)at;
}

/* From now on, this process does without tiles. */
int emulate_tiles(void) {
  struct sigaction wanted = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_NODEFER};
  return sigaction(SIGILL, &wanted, &before);
}
