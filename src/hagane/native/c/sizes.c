/* ---- sizes as numbers ---- */

static int64_t floor_of(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return a == INT64_MIN ? INT64_MAX : -a;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Compute numbers of others. HG_FITS; HG_BEYOND if one is beyond 64 bits; HG_MISMATCH if one is a quotient by
 * zero: nothing that follows from it is known. */
static int compute_numbers(const hgt_formula *formulas, int64_t n, int64_t *numbers) {
  int beyond = 0, unknown = 0;
  for (int64_t i = 0; i < n; i++) {
    const hgt_formula *at = &formulas[i];
    int64_t a = numbers[at->left], b = numbers[at->right], made = a;
    switch (at->operation) {
      case HGT_ADD:
        if (__builtin_add_overflow(a, b, &made)) made = a < 0 ? INT64_MIN : INT64_MAX, beyond = 1;
        break;
      case HGT_MULTIPLY:
        if (__builtin_mul_overflow(a, b, &made)) made = (a < 0) != (b < 0) ? INT64_MIN : INT64_MAX, beyond = 1;
        break;
      case HGT_FLOOR: made = floor_of(a, b), unknown |= b == 0; break;
      case HGT_MODULO:
        made = b == 0 || b == -1 ? 0 : a % b, unknown |= b == 0;
        if (made != 0 && (made < 0) != (b < 0)) made += b;
        break;
      case HGT_LEAST: made = a < b ? a : b; break;
      case HGT_MOST: made = a > b ? a : b; break;
      default: break;
    }
    numbers[at->into] = made;
  }
  return beyond ? HG_BEYOND : unknown ? HG_MISMATCH : HG_FITS;
}

/* Compute all that follows from named sizes and from sizes that differ between iterations. */
static int follow_numbers(const hgt_part *part, int64_t *numbers) {
  const hgt_formula *from = part->formulas;
  int code = compute_numbers(from + part->n_begin, part->n_exact - part->n_begin, numbers);
  compute_numbers(from + part->n_exact, part->n_formulas - part->n_exact, numbers);
  return code;
}

/* Compute all numbers of named sizes, before the first iteration of any loop. */
static int begin_numbers(const hgt_part *part, int64_t *numbers) {
  int begun = compute_numbers(part->formulas, part->n_begin, numbers);
  int code = follow_numbers(part, numbers);
  return begun > code ? begun : code;
}

static int64_t wrong(hg_context *context, int64_t axis, int64_t got, int64_t expected) {
  context->wrong[0] = axis, context->wrong[1] = got, context->wrong[2] = expected;
  return HG_MISMATCH;
}

/* Find the numbers of all sizes that the shapes of inputs give. */
static int64_t bind_shapes(hg_context *context) {
  const hgt_part *part = context->part;
  int64_t *numbers = context->numbers;
  for (int64_t i = 0; i < part->n_symbols; i++) numbers[i] = -1;
  const int64_t *shape = context->shapes;
  for (int64_t i = 0, named = 0; i < part->n_inputs; shape += part->inputs[i++].rank)
    for (; named < part->n_named && part->named[named].input == i; named++) {
      const hgt_named *item = &part->named[named];
      if (numbers[item->symbol] < 0)
        numbers[item->symbol] = floor_of(shape[item->axis] - numbers[item->distance], numbers[item->factor]);
    }
  for (int64_t i = 0; i < part->n_symbols; i++)
    if (numbers[i] < 0) return wrong(context, -2, numbers[i], 0);
  int code = begin_numbers(part, numbers);
  shape = context->shapes;
  for (int64_t i = 0; i < part->n_inputs; shape += part->inputs[i++].rank)
    for (int32_t axis = 0; axis < part->inputs[i].rank; axis++) {
      int64_t want = numbers[part->dims[part->inputs[i].dims + axis]];
      if (shape[axis] != want) return wrong(context, axis, shape[axis], want);
    }
  for (int64_t i = 0; i < part->n_equal; i++) {
    int64_t left = numbers[part->equal[2 * i]], right = numbers[part->equal[2 * i + 1]];
    if (left != right) return wrong(context, -1, left, right);
  }
  return code == HG_MISMATCH ? wrong(context, -1, 0, 0) : code;
}
