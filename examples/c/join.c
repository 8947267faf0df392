/* Joins orders with customers and adds up what each customer paid, with the functions
 * of roost.h alone. The tables are made by hand here; polars, pyarrow, DuckDB and
 * others export theirs in the same way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roost.h"

static void expect_ok(roost_status status) {
  if (status == ROOST_OK) return;
  fprintf(stderr, "%s\n", roost_last_error());
  exit(1);
}

/* Memory that the program keeps: there is nothing to release. */
static void keep_array(struct ArrowArray* array) { array->release = NULL; }
static void keep_schema(struct ArrowSchema* schema) { schema->release = NULL; }

/* A table of one column. `buffers`: a bitmap of the values that are there, or NULL, and
 * the values. */
static roost_table* column(const char* format, const void** buffers, int64_t n_buffers,
                           int64_t rows) {
  struct ArrowSchema schema;
  struct ArrowArray array;
  roost_table* table = NULL;
  memset(&schema, 0, sizeof schema);
  memset(&array, 0, sizeof array);
  schema.format = format;
  schema.name = "customer";
  schema.release = keep_schema;
  array.length = rows;
  array.null_count = buffers[0] == NULL ? 0 : -1;
  array.n_buffers = n_buffers;
  array.buffers = buffers;
  array.release = keep_array;
  expect_ok(roost_table_of_array(&schema, &array, &table));
  return table;
}

static const int64_t* rows_of(const struct ArrowDeviceArray* result) {
  return (const int64_t*)result->array.buffers[1];
}

int main(void) {
  /* Texts: offsets, and the bytes behind each other. The third order has no customer.
   */
  static const uint8_t known[] = {0x1B};
  static const int32_t order_offsets[] = {0, 3, 6, 6, 9, 12},
                       name_offsets[] = {0, 3, 6, 9};
  static const double paid_values[] = {20, 5, 99, 7.5, 1};
  const void* order_buffers[] = {known, order_offsets, "annbobanneve"};
  const void* name_buffers[] = {NULL, name_offsets, "bobannzoe"};
  const void* paid_buffers[] = {NULL, paid_values};
  roost_table* orders = column("u", order_buffers, 3, 5);
  roost_table* customers = column("u", name_buffers, 3, 3);
  roost_table* paid = column("g", paid_buffers, 2, 5);
  struct ArrowDeviceArray left, right, first, sums;
  struct ArrowSchema type;
  roost_groups* groups = NULL;
  int64_t i, matches;

  expect_ok(roost_join(orders, customers, ROOST_JOIN_INNER, ROOST_NULLS_DISTINCT, &left,
                       &right));
  for (i = 0; i < left.array.length; ++i) {
    const int64_t order = rows_of(&left)[i], customer = rows_of(&right)[i];
    printf("order %d is of customer %d\n", (int)order, (int)customer);
  }
  matches = left.array.length;
  roost_release_array(&left);
  roost_release_array(&right);

  expect_ok(roost_groups_create(orders, ROOST_NULLS_DROPPED, &groups));
  expect_ok(roost_groups_first(groups, &first));
  expect_ok(roost_groups_reduce(groups, paid, ROOST_SUM, &type, &sums));
  for (i = 0; i < roost_groups_size(groups); ++i) {
    printf("the customer of order %d paid %g\n", (int)rows_of(&first)[i],
           ((const double*)sums.array.buffers[1])[i]);
  }
  i = matches == 3 && roost_groups_size(groups) == 3 &&
      ((const double*)sums.array.buffers[1])[0] == 27.5;
  roost_release_array(&first);
  roost_release_array(&sums);
  roost_release_schema(&type);
  roost_groups_destroy(groups);
  roost_table_destroy(orders);
  roost_table_destroy(customers);
  roost_table_destroy(paid);
  return i ? 0 : 1;
}
