/* roost in C: distinct rows, joins, look-ups and sums by key, of tables of Arrow.
 *
 * Tables come in as Arrow's C data interface has them (schemas, arrays, streams, device arrays), and results
 * go out as arrays of it: row numbers, which roost_take() makes rows of.
 *
 *     roost_table* orders = NULL;
 *     struct ArrowDeviceArray first;
 *     if (roost_table_of_array(&schema, &array, &orders) != ROOST_OK ||
 *         roost_unique(orders, &first) != ROOST_OK) {
 *       fprintf(stderr, "%s\n", roost_last_error());
 *     }
 *
 * Status. Every function but those that say so returns a status. If it is not ROOST_OK, nothing has changed,
 * no output is written, and roost_last_error() says why. No exception leaves a function.
 *
 * Ownership. A roost_table_of_ function moves Arrow's structs into the table, and sets their `release` to
 * NULL; if it fails, they stay with the caller (a stream is released in any case). Results belong to the
 * caller, and keep nothing of a table: call their `release`, or roost_release_array(). Every handle has a
 * destroy function, which may be called with NULL.
 *
 * Keys. The rows of a table are compared as a whole, exactly: integers, bools, floats of 2, 4 and 8 bytes,
 * dates, times, timestamps, durations, decimals of 32 to 128 bits, texts and bytes of any length, in any of
 * Arrow's layouts, dictionaries of all these, and columns of nulls. Numbers of two types are compared by
 * value where one type holds all values of both; -0.0 is 0.0, and all NaNs are equal. Two columns whose
 * values are never equal (a text and a number, timestamps of two units or zones, decimals of two scales) are
 * ROOST_INVALID_ARGUMENT, and so are nested and run-end-encoded columns, extension types, and tables of 2^32
 * - 1 or more rows. A table is a struct array without nulls, or a single column. Numbers, offsets and views
 * must be aligned.
 *
 * Devices. A table is in memory of the CPU or, where the library was built with CUDA, of a GPU; results are
 * where the table is. Schemas, and the structs of arrays, are in memory of the CPU always. Work has finished
 * when a function returns.
 *
 * Threads. Any number of threads may call any functions at the same time, also with the same handles, but for
 * destroying one that others use. */
#ifndef ROOST_H
#define ROOST_H

#include <stdint.h>

#if defined(__GNUC__)
#define ROOST_API __attribute__((visibility("default")))
#else
#define ROOST_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The structs of https://arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html and
 * CDeviceDataInterface.html, by the names and guards that these pages prescribe. */
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};
#endif
#ifndef ARROW_C_DEVICE_DATA_INTERFACE
#define ARROW_C_DEVICE_DATA_INTERFACE
typedef int32_t ArrowDeviceType;
#define ARROW_DEVICE_CPU 1
#define ARROW_DEVICE_CUDA 2
#define ARROW_DEVICE_CUDA_HOST 3
#define ARROW_DEVICE_CUDA_MANAGED 13
struct ArrowDeviceArray {
  struct ArrowArray array;
  int64_t device_id;
  ArrowDeviceType device_type;
  void* sync_event;
  int64_t reserved[3];
};
#endif

/* What functions return. */
enum {
  ROOST_OK = 0,
  ROOST_INVALID_ARGUMENT = 1, /* an argument, or a column that cannot be a key */
  ROOST_OUT_OF_MEMORY = 2,
  ROOST_DEVICE_ERROR = 3, /* CUDA failed, or there is none */
  ROOST_FAILED = 4        /* anything else; please report it */
};
typedef int roost_status;

/* The version of the library, such as "0.2.0". */
ROOST_API const char* roost_version(void);

/* One line about the last function of this thread that failed; "" if none did. It stays until the next one
 * fails. */
ROOST_API const char* roost_last_error(void);

/* How many threads of the CPU calls that begin later use: 0 for all cores, as at first. */
ROOST_API roost_status roost_set_threads(int threads);

/* ---- Tables ---- */

typedef struct roost_table roost_table;

/* A table of an array: a struct array, whose fields are columns, or one column. Nothing is copied. */
ROOST_API roost_status roost_table_of_array(struct ArrowSchema* schema, struct ArrowArray* array,
                                            roost_table** table);

/* The same of an array on a device: ARROW_DEVICE_CUDA or ARROW_DEVICE_CUDA_MANAGED, whose event is waited for
 * on the device; or ARROW_DEVICE_CPU or ARROW_DEVICE_CUDA_HOST, which are memory of the CPU. */
ROOST_API roost_status roost_table_of_device_array(struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                                                   roost_table** table);

/* The same of all arrays of a stream, one after the other. Numbers in several arrays are copied by functions
 * that read them; texts are not. */
ROOST_API roost_status roost_table_of_stream(struct ArrowArrayStream* stream, roost_table** table);

/* The number of rows; -1 for NULL. No status. */
ROOST_API int64_t roost_table_rows(const roost_table* table);

ROOST_API void roost_table_destroy(roost_table* table);

/* ---- Functions of tables: results are arrays of int64 without nulls (format "l"), unless they say so ----
 */

/* What becomes of nulls where the rows of two tables are compared. */
enum {
  ROOST_NULLS_DISTINCT = 0, /* a null equals nothing, as in SQL */
  ROOST_NULLS_EQUAL = 1     /* a null equals a null */
};
/* What becomes of rows with a null where the rows of one table are numbered. */
enum {
  ROOST_NULLS_KEPT = 0,   /* a null is a value like any other, equal to all other nulls of its column */
  ROOST_NULLS_DROPPED = 1 /* a row with a null in any column has no number */
};

/* The distinct rows: the row where each comes first, ascending. */
ROOST_API roost_status roost_unique(const roost_table* table, struct ArrowDeviceArray* first);

/* Numbers the distinct rows by first occurrence: the number of each row, -1 for dropped ones, and for each
 * number the row where it comes first. `nulls`: ROOST_NULLS_KEPT or ROOST_NULLS_DROPPED. `first` may be NULL.
 */
ROOST_API roost_status roost_factorize(const roost_table* table, int nulls, struct ArrowDeviceArray* numbers,
                                       struct ArrowDeviceArray* first);

/* How often each distinct row comes, in order of first occurrence, and the row where it comes first. */
ROOST_API roost_status roost_value_counts(const roost_table* table, struct ArrowDeviceArray* first,
                                          struct ArrowDeviceArray* counts);

enum {
  ROOST_KEEP_FIRST = 0, /* a row is a duplicate if it came before */
  ROOST_KEEP_NONE = 1   /* if it also comes elsewhere */
};
/* For each row whether it is a duplicate: bools (format "b"). */
ROOST_API roost_status roost_duplicated(const roost_table* table, int keep, struct ArrowDeviceArray* result);

/* For each row of `table` whether it is a row of `values`: bools (format "b"). `nulls`: ROOST_NULLS_DISTINCT
 * or ROOST_NULLS_EQUAL. */
ROOST_API roost_status roost_isin(const roost_table* table, const roost_table* values, int nulls,
                                  struct ArrowDeviceArray* result);

enum {
  ROOST_JOIN_INNER = 0, /* all pairs of equal rows, by left row, then by right row */
  ROOST_JOIN_LEFT = 1,  /* and each left row without a match, with right row -1 */
  ROOST_JOIN_RIGHT = 2, /* the pairs and each right row without a match, by right row, then by left row */
  ROOST_JOIN_OUTER = 3, /* as left, then the right rows without a match, with left row -1 */
  ROOST_JOIN_SEMI = 4,  /* the left rows that have a match */
  ROOST_JOIN_ANTI = 5   /* the left rows that have none */
};
/* The rows of two tables that are equal: pair i is left_rows[i] and right_rows[i]. It is fastest if the rows
 * of `right` are all different, or if it is the shorter table. `right_rows` is not written, and may be NULL,
 * for semi and anti. ROOST_OUT_OF_MEMORY says how many pairs there are. */
ROOST_API roost_status roost_join(const roost_table* left, const roost_table* right, int how, int nulls,
                                  struct ArrowDeviceArray* left_rows, struct ArrowDeviceArray* right_rows);

/* Rows of a table by their numbers, which are int64 as other functions return them: null for -1 and for
 * nulls. ROOST_INVALID_ARGUMENT for others that are no rows. The result has the table's type, but
 * dictionaries come as their values, and views of texts as texts with offsets of 64 bits. `rows` stays with
 * the caller. */
ROOST_API roost_status roost_take(const roost_table* table, const struct ArrowDeviceArray* rows,
                                  struct ArrowSchema* schema, struct ArrowDeviceArray* result);

/* ---- Indexes: a table, in which rows are looked up many times ---- */

typedef struct roost_index roost_index;

/* Builds an index, which keeps nothing of the table. `nulls`: ROOST_NULLS_DISTINCT or ROOST_NULLS_EQUAL. */
ROOST_API roost_status roost_index_create(const roost_table* table, int nulls, roost_index** index);

/* For each row of `queries` the first row of the table that equals it, or -1. The queries must be where the
 * table was. Integers of any width may be looked up among integers. */
ROOST_API roost_status roost_index_find(const roost_index* index, const roost_table* queries,
                                        struct ArrowDeviceArray* rows);

ROOST_API void roost_index_destroy(roost_index* index);

/* ---- Groups: the rows of a table by their keys, for sums and their kin ---- */

typedef struct roost_groups roost_groups;

/* Numbers the distinct rows by first occurrence, and keeps the numbers, but nothing of the table. `nulls`:
 * ROOST_NULLS_KEPT or ROOST_NULLS_DROPPED. */
ROOST_API roost_status roost_groups_create(const roost_table* keys, int nulls, roost_groups** groups);

/* The number of groups; -1 for NULL. No status. */
ROOST_API int64_t roost_groups_size(const roost_groups* groups);

/* The row where each group comes first: roost_take() of these makes a table of the keys. */
ROOST_API roost_status roost_groups_first(const roost_groups* groups, struct ArrowDeviceArray* rows);

/* How many rows each group has. */
ROOST_API roost_status roost_groups_counts(const roost_groups* groups, struct ArrowDeviceArray* counts);

enum {
  ROOST_SUM = 0,     /* int64, of unsigned integers uint64, which wrap; floats; durations of their type */
  ROOST_MEAN = 1,    /* double */
  ROOST_MIN = 2,     /* of the values' type, also of dates, times and durations; NaN if there is one;
                        not of dictionaries with an order of their own */
  ROOST_MAX = 3,     /* the same */
  ROOST_PRODUCT = 4, /* as sums, without durations */
  ROOST_ANY = 5,     /* bool: whether some value is not 0 */
  ROOST_ALL = 6,     /* bool: whether no value is 0 */
  ROOST_COUNT = 7    /* int64: how many values there are, of any type */
};
/* Combines the values of each group: a table of one column, a value for each row of the keys, where these
 * were. Nulls are left out; where a group has no value, the result is null, and its count 0. Floats are added
 * in the order of the rows, 32 at a time, and their sums in the same way, so results do not depend on
 * threads; those of 2 bytes come as floats of 4. */
ROOST_API roost_status roost_groups_reduce(const roost_groups* groups, const roost_table* values, int how,
                                           struct ArrowSchema* schema, struct ArrowDeviceArray* result);

ROOST_API void roost_groups_destroy(roost_groups* groups);

/* ---- Arrow's structs ---- */

/* A schema of a type without children or dictionary, such as "l" for row numbers, "b" for bools. `name` may
 * be NULL. */
ROOST_API roost_status roost_schema(const char* format, const char* name, struct ArrowSchema* schema);

/* Release a struct unless that was done. Results may also be moved, and released by others. No status. */
ROOST_API void roost_release_schema(struct ArrowSchema* schema);
ROOST_API void roost_release_array(struct ArrowDeviceArray* array);

#ifdef __cplusplus
}
#endif

#endif /* ROOST_H */
