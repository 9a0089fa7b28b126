/* The checksum of files of a build, as `sum.py` has it; it guards against damage, not against forgery.
 *
 * Words of 64 bits, little-endian and filled up with zeros, in blocks of 512. Each word is multiplied by
 * an odd key of its place, and the products of a block are summed; sums are joined in order. A change of
 * one word is found for certain, others but for one chance in about 2^64.
 */
#define SUM_WORDS 512
static uint64_t sum_keys[SUM_WORDS];
static pthread_once_t sum_once = PTHREAD_ONCE_INIT;

static void make_sum_keys(void) {
  for (uint64_t i = 0; i < SUM_WORDS; i++) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    sum_keys[i] = (z ^ (z >> 31)) | 1;
  }
}

static uint64_t sum_of(const char *data, size_t bytes) {
  pthread_once(&sum_once, make_sum_keys);
  uint64_t sum = bytes;
  for (size_t at = 0; at < bytes; at += SUM_WORDS * 8) {
    size_t left = bytes - at, words = left / 8 < SUM_WORDS ? left / 8 : SUM_WORDS;
    uint64_t parts[4] = {0}, word;
    size_t i = 0;
    for (; i + 4 <= words; i += 4)
      for (int k = 0; k < 4; k++) {
        memcpy(&word, data + at + 8 * (i + k), 8);
        parts[k] += word * sum_keys[i + k];
      }
    for (; i < words; i++) {
      memcpy(&word, data + at + 8 * i, 8);
      parts[0] += word * sum_keys[i];
    }
    if (words < SUM_WORDS && left % 8 != 0) {
      word = 0;
      memcpy(&word, data + at + 8 * words, left % 8);
      parts[0] += word * sum_keys[words];
    }
    sum = (sum ^ (parts[0] + parts[1] + parts[2] + parts[3])) * 0xff51afd7ed558ccdu;
    sum ^= sum >> 32;
  }
  return sum;
}
