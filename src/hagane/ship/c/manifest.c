/* Manifests: as much of JSON as they need. Texts are looked at where they are; nothing is allocated. */

#define JSON_DEPTH 16

typedef struct {
  const char *at, *end;
} span;

static void skip_space(span *s) {
  while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r')) s->at++;
}

static int skip_text(span *s) {
  for (s->at++; s->at < s->end; s->at++) {
    if (*s->at == '\\')
      s->at++;
    else if (*s->at == '"')
      return s->at++, 1;
    else if ((unsigned char)*s->at < ' ')
      return 0;
  }
  return 0;
}

/* Go past a value; 0 if there is none. */
static int skip_value(span *s, int depth) {
  skip_space(s);
  if (s->at >= s->end || depth > JSON_DEPTH) return 0;
  if (*s->at == '"') return skip_text(s);
  if (*s->at != '{' && *s->at != '[') {
    const char *from = s->at;
    while (s->at < s->end && strchr(",]} \n\t\r", *s->at) == NULL) s->at++;
    return s->at > from;
  }
  char close = *s->at == '{' ? '}' : ']';
  s->at++;
  skip_space(s);
  if (s->at < s->end && *s->at == close) return s->at++, 1;
  for (;;) {
    if (close == '}') {
      skip_space(s);
      if (s->at >= s->end || *s->at != '"' || !skip_text(s)) return 0;
      skip_space(s);
      if (s->at >= s->end || *s->at++ != ':') return 0;
    }
    if (!skip_value(s, depth + 1)) return 0;
    skip_space(s);
    if (s->at >= s->end) return 0;
    if (*s->at == close) return s->at++, 1;
    if (*s->at++ != ',') return 0;
  }
}

/* Find the value of a key of an object; its text, with quotes if it has them. 0 if there is none. */
static int find_key(span object, const char *key, span *value) {
  size_t length = strlen(key);
  skip_space(&object);
  if (object.at >= object.end || *object.at++ != '{') return 0;
  for (;;) {
    skip_space(&object);
    const char *name = object.at + 1;
    if (object.at >= object.end || *object.at != '"' || !skip_text(&object)) return 0;
    int same = (size_t)(object.at - 1 - name) == length && memcmp(name, key, length) == 0;
    skip_space(&object);
    if (object.at >= object.end || *object.at++ != ':') return 0;
    skip_space(&object);
    value->at = object.at;
    if (!skip_value(&object, 0)) return 0;
    value->end = object.at;
    if (same) return 1;
    skip_space(&object);
    if (object.at >= object.end || *object.at++ != ',') return 0;
  }
}

/* Copy the text of a key without escapes; 0 if there is none, or it is too long. */
static int find_text(span object, const char *key, char *text, size_t room) {
  span value;
  if (!find_key(object, key, &value) || *value.at != '"') return 0;
  size_t length = (size_t)(value.end - value.at) - 2;
  if (length >= room || memchr(value.at, '\\', length + 1) != NULL) return 0;
  memcpy(text, value.at + 1, length);
  text[length] = 0;
  return 1;
}

/* Whether the object's last key is `check`, and holds the sum of all before it. */
static int checks(span text) {
  static const char key[] = "\"check\": \"", tail[] = "\"\n}\n";
  size_t length = sizeof key - 1 + 16 + sizeof tail - 1;
  if ((size_t)(text.end - text.at) < length) return 0;
  const char *at = text.end - length;
  char want[17];
  snprintf(want, sizeof want, "%016llx", (unsigned long long)sum_of(text.at, (size_t)(at - text.at)));
  return memcmp(at, key, sizeof key - 1) == 0 && memcmp(at + sizeof key - 1, want, 16) == 0 &&
         memcmp(text.end - (sizeof tail - 1), tail, sizeof tail - 1) == 0;
}
