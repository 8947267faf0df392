#include <nanobind/stl/string.h>

#include <variant>

#include "bind.hpp"
#include "columns.hpp"
#include "roost/embedding/embedding_table.hpp"
#include "roost/embedding/gather_rows.hpp"

// Tables of learned rows, for roost.torch.Table; and rows by number.

namespace roost::python {

template <>
inline constexpr named<optimizer> names_of<optimizer>[] = {{"sgd", optimizer::sgd},
                                                           {"adagrad", optimizer::adagrad},
                                                           {"rowwise_adagrad", optimizer::rowwise_adagrad},
                                                           {"adam", optimizer::adam}};
template <>
inline constexpr named<eviction> names_of<eviction>[] = {{"none", eviction::none},
                                                         {"lru", eviction::least_recent},
                                                         {"lfu", eviction::least_frequent},
                                                         {"score", eviction::least_score}};
template <>
inline constexpr named<row_initializer::kind> names_of<row_initializer::kind>[] = {
    {"normal", row_initializer::kind::normal},
    {"uniform", row_initializer::kind::uniform},
    {"constant", row_initializer::kind::constant}};

namespace {

/// The arguments of a lookup: ids, and columns that are empty if not needed.
struct batch_columns {
  column ids, features, scores, offsets;
  std::uint16_t feature = 0;
  bool mean = false;

  embedding_batch get() const {
    return {.ids = span_of<std::int64_t>(ids),
            .features = span_or_none<std::uint16_t>(features),
            .feature = feature,
            .scores = span_or_none<std::uint32_t>(scores),
            .offsets = span_or_none<std::int64_t>(offsets),
            .pooling = mean ? bag_pooling::mean : bag_pooling::sum};
  }
  template <class T>
  static std::span<const T> span_or_none(const column& all) {
    return all.rows == 0 ? std::span<const T>() : span_of<T>(all);
  }
};

/// A table of numbers of one of three types, and the place where it was made.
template <class Place>
class embeddings {
 public:
  using at_place = const call_place<Place>&;

  embeddings(at_place at, const embedding_options& options, const std::string& type) {
    table_ = without_gil(at, [&](const Place& place) {
      home_ = place;
      if (type == "bfloat16") return any_table(embedding_table<Place, bfloat16>(place, options));
      if (type == "float16") return any_table(embedding_table<Place, float16>(place, options));
      if (type == "float32") return any_table(embedding_table<Place, float>(place, options));
      detail::raise<invalid_argument>({"roost: rows of type ", type});
    });
  }

  void look_up(at_place at, const batch_columns& batch, const column& slots, const column& out,
               std::uint32_t running) {
    changing(at, [&]<class Value>(const Place& place, embedding_table<Place, Value>& table) {
      table.look_up(place, batch.get(), span_of<std::uint32_t>(slots, slots.rows), numbers<Value>(out),
                    running);
    });
  }
  void find(at_place at, const batch_columns& batch, const column& slots, const column& out) {
    changing(at, [&]<class Value>(const Place& place, embedding_table<Place, Value>& table) {
      table.find(place, batch.get(), span_of<std::uint32_t>(slots, slots.rows), numbers<Value>(out));
    });
  }
  void update(at_place at, const batch_columns& batch, const column& slots, const column& gradients) {
    changing(at, [&]<class Value>(const Place& place, embedding_table<Place, Value>& table) {
      table.update(place, batch.get(), span_of<std::uint32_t>(slots), numbers<Value>(gradients));
    });
  }
  /// On the stream of the call, concurrently with the table's own stream.
  void prefetch(at_place at, const batch_columns& batch, std::uint32_t running) {
    read(at, *home_, [&](const Place& place) {
      std::visit([&](auto& table) { table.prefetch(place, batch.get(), running); }, *table_);
    });
  }
  void assign(at_place at, const batch_columns& batch, const column& rows, std::uint32_t running) {
    changing(at, [&]<class Value>(const Place& place, embedding_table<Place, Value>& table) {
      table.assign(place, batch.get(), numbers<Value>(rows), {}, running);
    });
  }
  void erase(at_place at, const batch_columns& batch) {
    changing(at, [&](const Place& place, auto& table) { table.erase(place, batch.get()); });
  }
  void reserve(at_place at, std::size_t capacity) {
    changing(at, [&](const Place& place, auto& table) { table.reserve(place, capacity); });
  }
  void set_rates(at_place at, const optimizer_rates& rates) {
    changing(at, [&](const Place& place, auto& table) { table.set_rates(place, rates); });
  }
  void set_steps(at_place at, std::uint32_t steps, std::uint32_t updates) {
    changing(at, [&](const Place& place, auto& table) { table.set_steps(place, steps, updates); });
  }
  std::size_t size(at_place at) {
    return changing(at, [&](const Place& place, auto& table) { return table.size(place); });
  }
  nb::tuple counts(at_place at) {
    const embedding_counts all =
        changing(at, [&](const Place& place, auto& table) { return table.counts(place); });
    return nb::make_tuple(all.steps, all.updates, all.evicted, all.unplaced, all.unadmitted, all.forgotten);
  }

  /// Ids and features.
  nb::tuple take_evicted(at_place at) {
    auto [ids, features] = changing(at, [&](const Place& place, auto& table) {
      auto keys = table.take_evicted(place);
      return std::pair(std::move(keys.ids), std::move(keys.features));
    });
    return nb::make_tuple(to_python(at, std::move(ids)), to_python(at, std::move(features)));
  }

  /// Slots, ids, features, steps and scores.
  nb::tuple entries(at_place at, std::uint32_t since) {
    auto all = changing(at, [&](const Place& place, auto& table) { return table.entries(place, since); });
    return nb::make_tuple(to_python(at, std::move(all.slots)), to_python(at, std::move(all.ids)),
                          to_python(at, std::move(all.features)), to_python(at, std::move(all.steps)),
                          to_python(at, std::move(all.scores)));
  }
  void copy_rows(at_place at, const column& slots, const column& out) {
    changing(at, [&](const Place& place, auto& table) {
      table.copy_rows(place, span_of<std::uint32_t>(slots), {out.data, out.rows * out.row_bytes});
    });
  }
  void write_rows(at_place at, const column& slots, const column& rows) {
    changing(at, [&](const Place& place, auto& table) {
      table.write_rows(place, span_of<std::uint32_t>(slots), {rows.data, rows.rows * rows.row_bytes});
    });
  }
  /// `to`: gets the slots of the keys.
  std::size_t restore(at_place at, const column& slots, const column& ids, const column& features,
                      const column& steps, const column& scores, bool same_slots, const column& to) {
    return changing(at, [&](const Place& place, auto& table) {
      embedding_entries<Place> all{copy_of<std::uint32_t>(place, slots), copy_of<std::int64_t>(place, ids),
                                   copy_of<std::uint16_t>(place, features),
                                   copy_of<std::uint32_t>(place, steps),
                                   copy_of<std::uint64_t>(place, scores)};
      return table.restore(place, all, same_slots, span_of<std::uint32_t>(to, to.rows));
    });
  }

  std::size_t capacity() const {
    return std::visit([](const auto& table) { return table.capacity(); }, *table_);
  }
  std::size_t row_bytes() const {
    return std::visit([](const auto& table) { return table.row_bytes(); }, *table_);
  }
  std::size_t bytes() const {
    return std::visit([](const auto& table) { return table.bytes(); }, *table_);
  }
  std::size_t host_bytes() const {
    return std::visit([](const auto& table) { return table.host_bytes(); }, *table_);
  }

 private:
  using any_table = std::variant<embedding_table<Place, float>, embedding_table<Place, bfloat16>,
                                 embedding_table<Place, float16>>;

  template <class F>
  auto changing(at_place at, const F& f) {
    return change(at, *home_, [&](const Place& place) {
      return std::visit([&](auto& table) { return f(place, table); }, *table_);
    });
  }
  template <class T>
  static std::span<T> numbers(const column& all) {
    return {reinterpret_cast<T*>(all.data), all.rows * all.row_bytes / sizeof(T)};
  }
  template <class T>
  static array<T, Place> copy_of(const Place& place, const column& all) {
    array<T, Place> result(place, all.rows);
    if (all.rows != 0) place.copy(result.data(), span_of<T>(all).data(), result.bytes());
    return result;
  }

  std::optional<Place> home_;
  std::optional<any_table> table_;
};

}  // namespace

template <class Place>
void bind_embedding(nb::module_& m) {
  using table = embeddings<Place>;
  nb::class_<optimizer_rates>(m, "Rates")
      .def("__init__", [](optimizer_rates* it, float rate, float beta1, float beta2, float epsilon,
                          float decay) { new (it) optimizer_rates{rate, beta1, beta2, epsilon, decay}; });
  nb::class_<batch_columns>(m, "EmbeddingBatch")
      .def("__init__", [](batch_columns* it, const column& ids, const column& features, const column& scores,
                          const column& offsets, std::uint16_t feature, bool mean) {
        new (it) batch_columns{ids, features, scores, offsets, feature, mean};
      });
  nb::class_<table>(m, "Embeddings")
      .def("look_up", &table::look_up)
      .def("find", &table::find)
      .def("update", &table::update)
      .def("prefetch", &table::prefetch)
      .def("assign", &table::assign)
      .def("erase", &table::erase)
      .def("reserve", &table::reserve)
      .def("set_rates", &table::set_rates)
      .def("set_steps", &table::set_steps)
      .def("size", &table::size)
      .def("counts", &table::counts)
      .def("take_evicted", &table::take_evicted)
      .def("entries", &table::entries)
      .def("copy_rows", &table::copy_rows)
      .def("write_rows", &table::write_rows)
      .def("restore", &table::restore)
      .def_prop_ro("capacity", &table::capacity)
      .def_prop_ro("row_bytes", &table::row_bytes)
      .def_prop_ro("bytes", &table::bytes)
      .def_prop_ro("host_bytes", &table::host_bytes);
  bind_names<optimizer>(m, "optimizers");
  bind_names<eviction>(m, "policies");
  m.def("gather_rows",
        [](const call_place<Place>& at, const column& rows, const column& ids, const column& out) {
          without_gil(at, [&](const Place& place) {
            gather_rows(place, {rows.data, rows.rows * rows.row_bytes}, rows.row_bytes,
                        span_of<std::int64_t>(ids), {out.data, out.rows * out.row_bytes});
          });
        });
  m.def("make_embeddings",
        [](const call_place<Place>& at, const std::string& type, std::uint32_t dim, std::size_t capacity,
           std::size_t cached, const char* policy, const char* how, const optimizer_rates& rates,
           const char* initializer, float a, float b, std::uint32_t admit, bool features,
           std::size_t keep_evicted, std::uint64_t seed) {
          embedding_options options{.dim = dim, .capacity = capacity, .cached_rows = cached};
          options.eviction = value_of<eviction>(policy);
          options.optimizer = value_of<optimizer>(how);
          options.rates = rates;
          options.initializer = {value_of<row_initializer::kind>(initializer), a, b};
          options.admit = admit;
          options.features = features;
          options.keep_evicted = keep_evicted;
          options.seed = seed;
          return std::make_unique<table>(at, options, type);
        });
}

template void bind_embedding<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
