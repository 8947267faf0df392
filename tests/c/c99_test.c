/* roost.h in C99: a program that builds a table by hand, and uses each function once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roost.h"

#define CHECK(what)                                                              \
  do {                                                                           \
    if (!(what)) {                                                               \
      fprintf(stderr, "line %d: %s; %s\n", __LINE__, #what, roost_last_error()); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

static int released = 0;
static void release_array(struct ArrowArray* it) {
  ++released;
  it->release = NULL;
}
static void release_schema(struct ArrowSchema* it) {
  ++released;
  it->release = NULL;
}

/* A table of a column of int64, in memory of the caller. */
static roost_table* table_of(const int64_t* values, int64_t n) {
  static const void* buffers[16][2];
  static int used = 0;
  const void** mine = buffers[used++];
  struct ArrowSchema schema;
  struct ArrowArray array;
  roost_table* table = NULL;
  memset(&schema, 0, sizeof schema);
  memset(&array, 0, sizeof array);
  schema.format = "l";
  schema.name = "key";
  schema.release = release_schema;
  mine[0] = NULL;
  mine[1] = values;
  array.length = n;
  array.n_buffers = 2;
  array.buffers = mine;
  array.release = release_array;
  CHECK(roost_table_of_array(&schema, &array, &table) == ROOST_OK);
  CHECK(schema.release == NULL && array.release == NULL);
  return table;
}

static void expect(struct ArrowDeviceArray* found, int64_t n, const int64_t* expected) {
  const int64_t* values = (const int64_t*)found->array.buffers[1];
  int64_t i;
  CHECK(found->array.length == n && found->array.null_count == 0);
  for (i = 0; i < n; ++i) CHECK(values[i] == expected[i]);
  roost_release_array(found);
  CHECK(found->array.release == NULL);
}

int main(void) {
  const int64_t keys[] = {30, 10, 30, 20, 10, 30};
  const int64_t others[] = {20, 30, 50, 30};
  const int64_t amounts[] = {1, 2, 3, 4, 5, 6};
  roost_table* left = table_of(keys, 6);
  roost_table* right = table_of(others, 4);
  roost_table* values = table_of(amounts, 6);
  struct ArrowDeviceArray one, two;
  struct ArrowSchema type;

  CHECK(strchr(roost_version(), '.') != NULL && roost_last_error()[0] == '\0');
  CHECK(roost_set_threads(2) == ROOST_OK && roost_table_rows(left) == 6);

  CHECK(roost_unique(left, &one) == ROOST_OK);
  CHECK(roost_take(left, &one, &type, &two) == ROOST_OK);
  CHECK(strcmp(type.format, "l") == 0 && strcmp(type.name, "key") == 0);
  roost_release_schema(&type);
  {
    const int64_t first[] = {0, 1, 3}, taken[] = {30, 10, 20};
    expect(&one, 3, first);
    expect(&two, 3, taken);
  }
  CHECK(roost_factorize(left, ROOST_NULLS_KEPT, &one, &two) == ROOST_OK);
  {
    const int64_t numbers[] = {0, 1, 0, 2, 1, 0}, first[] = {0, 1, 3};
    expect(&one, 6, numbers);
    expect(&two, 3, first);
  }
  CHECK(roost_value_counts(left, &one, &two) == ROOST_OK);
  {
    const int64_t first[] = {0, 1, 3}, counts[] = {3, 2, 1};
    expect(&one, 3, first);
    expect(&two, 3, counts);
  }
  CHECK(roost_duplicated(left, ROOST_KEEP_FIRST, &one) == ROOST_OK);
  CHECK(((const uint8_t*)one.array.buffers[1])[0] == 0x34); /* rows 2, 4 and 5 */
  roost_release_array(&one);
  CHECK(roost_isin(left, right, ROOST_NULLS_DISTINCT, &one) == ROOST_OK);
  CHECK(((const uint8_t*)one.array.buffers[1])[0] == 0x2D); /* rows 0, 2, 3 and 5 */
  roost_release_array(&one);
  CHECK(roost_join(left, right, ROOST_JOIN_LEFT, ROOST_NULLS_DISTINCT, &one, &two) == ROOST_OK);
  {
    const int64_t l[] = {0, 0, 1, 2, 2, 3, 4, 5, 5}, r[] = {1, 3, -1, 1, 3, 0, -1, 1, 3};
    expect(&one, 9, l);
    expect(&two, 9, r);
  }
  {
    const int64_t rows[] = {1, -1, 1, 0, -1, 1};
    roost_index* index = NULL;
    CHECK(roost_index_create(right, ROOST_NULLS_DISTINCT, &index) == ROOST_OK);
    CHECK(roost_index_find(index, left, &one) == ROOST_OK);
    expect(&one, 6, rows);
    roost_index_destroy(index);
  }
  {
    const int64_t first[] = {0, 1, 3}, counts[] = {3, 2, 1}, sums[] = {10, 7, 4};
    roost_groups* groups = NULL;
    CHECK(roost_groups_create(left, ROOST_NULLS_KEPT, &groups) == ROOST_OK && roost_groups_size(groups) == 3);
    CHECK(roost_groups_first(groups, &one) == ROOST_OK);
    expect(&one, 3, first);
    CHECK(roost_groups_counts(groups, &one) == ROOST_OK);
    expect(&one, 3, counts);
    CHECK(roost_groups_reduce(groups, values, ROOST_SUM, &type, &one) == ROOST_OK);
    CHECK(strcmp(type.format, "l") == 0);
    roost_release_schema(&type);
    expect(&one, 3, sums);
    roost_groups_destroy(groups);
  }
  CHECK(roost_unique(NULL, &one) == ROOST_INVALID_ARGUMENT && strlen(roost_last_error()) > 0);
  CHECK(roost_schema("b", NULL, &type) == ROOST_OK && strcmp(type.format, "b") == 0);
  roost_release_schema(&type);
  CHECK(released == 0);
  roost_table_destroy(left);
  roost_table_destroy(right);
  roost_table_destroy(values);
  CHECK(released == 6);
  puts("c99_test: as expected");
  return 0;
}
