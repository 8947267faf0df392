#include <optional>

#include "bind.hpp"
#include "columns.hpp"
#include "roost/shards/rank.hpp"
#include "roost/shards/sharded_index.hpp"
#include "roost/shards/sharded_join.hpp"
#include "roost/shards/sharded_map.hpp"

// Tables of several processes: on CPUs, Python transports their bytes, between GPUs, NCCL does.

namespace roost::python {
namespace {

/// Memory as Python sees it during a call.
nb::object view_of(std::span<const std::byte> memory) {
  const std::size_t shape[] = {memory.size()};
  const nb::ndarray<nb::numpy, std::uint8_t> view(const_cast<std::byte*>(memory.data()), 1, shape,
                                                  nb::handle());
  return nb::cast(view, nb::rv_policy::reference);
}

/// Functions of Python that exchange bytes.
class python_communicator final : public communicator {
 public:
  python_communicator(std::uint32_t rank, std::uint32_t size, nb::callable all_gather, nb::callable exchange,
                      nb::object abort)
      : rank_(rank),
        size_(size),
        all_gather_(std::move(all_gather)),
        exchange_(std::move(exchange)),
        abort_(std::move(abort)) {}

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return size_; }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const nb::gil_scoped_acquire gil;
    all_gather_(view_of(mine), view_of(all));
  }
  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in) override {
    const nb::gil_scoped_acquire gil;
    nb::list sent, received;
    for (const auto& piece : out) sent.append(view_of(piece));
    for (const auto& piece : in) received.append(view_of(piece));
    exchange_(sent, received);
  }
  void abort() noexcept override {
    const nb::gil_scoped_acquire gil;
    try {
      if (!abort_.is_none()) abort_();
    } catch (...) {  // there is an exception already
    }
  }

 private:
  const std::uint32_t rank_, size_;
  nb::object all_gather_, exchange_, abort_;
};

/// This process of a group.
template <class Place>
class group;

template <>
class group<host> {
 public:
  using at_place = const call_place<host>&;
  group(at_place at, std::uint32_t rank, std::uint32_t size, nb::callable all_gather, nb::callable exchange,
        nb::object abort)
      : communicator_(rank, size, std::move(all_gather), std::move(exchange), std::move(abort)),
        all_(communicator_, at.get()) {}
  group(const group&) = delete;

  const rank<host>& all() const { return all_; }

  /// Throws on all ranks unless all pass the same text.
  void agree(at_place at, const char* what) const {
    without_gil(at, [&](const host&) {
      all_.run([&](auto& me) {
        std::vector<std::uint64_t> words(8);
        auto* const mine = reinterpret_cast<char*>(words.data());
        std::strncpy(mine, what, 8 * words.size() - 1);
        const detail::gathered all = me.gather(words);
        for (std::uint32_t r = 0; r < me.count(); ++r) {
          const auto* const theirs = reinterpret_cast<const char*>(all.of(r));
          if (std::strcmp(mine, theirs) == 0) continue;
          detail::raise<invalid_argument>({"roost.distributed: rank ", me.number(), " calls ", what,
                                           ", rank ", r, " calls ", theirs, "; all ranks must do the same"});
        }
      });
    });
  }
  /// Tells all ranks that this one has failed.
  void fail(at_place at, const char* why) const {
    without_gil(at, [&](const host&) { all_.run([&](auto&) { throw error(why); }); });
  }

 private:
  python_communicator communicator_;
  const rank<host> all_;
};

#if defined(__CUDACC__)
inline nb::bytes new_nccl_identity() {
  const auto identity = detail::nccl_communicator::new_identity();
  return nb::bytes(identity.bytes, sizeof(identity.bytes));
}

template <>
class group<cuda> {
 public:
  using at_place = const call_place<cuda>&;
  /// All ranks create it at the same time. `told`: the result of new_nccl_identity() on one of them. Times in
  /// seconds.
  group(at_place at, std::uint32_t rank, std::uint32_t size, const nb::bytes& told, unsigned deadline) {
    detail::nccl::identity identity;
    if (told.size() != sizeof(identity)) detail::raise<invalid_argument>({"roost: no identity of NCCL"});
    memcpy(&identity, told.data(), sizeof(identity));
    without_gil(at, [&](const cuda& place) {
      const std::chrono::seconds seconds(deadline);
      communicator_.emplace(identity, rank, size, seconds);
      all_.emplace(communicator_->get(), place, seconds);
    });
  }
  group(const group&) = delete;
  ~group() {
    const nb::gil_scoped_release released;
    if (all_ && !all_->broken()) communicator_->abort();
  }

  const roost::rank<cuda>& all() const { return *all_; }

 private:
  std::optional<detail::nccl_communicator> communicator_;
  std::optional<roost::rank<cuda>> all_;
};
#endif

/// f() for all ranks of a group, on the group's stream.
template <class Place, class F>
auto on_all(const call_place<Place>& at, const rank<Place>& all, const F& f) {
  return change(at, all.place(), [&](const Place&) { return f(); });
}

/// A sharded_map with keys and values of the supported sizes.
template <class Place>
class shared_map {
 public:
  using at_place = const call_place<Place>&;
  virtual ~shared_map() = default;
  virtual void find(at_place at, const column& queries, const column& missing,
                    const column& results) const = 0;
  virtual void contains(at_place at, const column& queries, const column& results) const = 0;
  /// The keys of this rank, and their values.
  virtual nb::tuple items(at_place at) const = 0;
  virtual std::size_t size() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool valid(at_place at) const = 0;
};

template <class Key, class Value, class Place>
class shared_map_of final : public shared_map<Place> {
  using table = sharded_map<Key, Value, rank<Place>>;

 public:
  using typename shared_map<Place>::at_place;
  shared_map_of(const rank<Place>& all, table&& map) : all_(all), table_(std::move(map)) {}

  void find(at_place at, const column& queries, const column& missing, const column& results) const override {
    const auto keys = span_of<Key>(queries);
    const auto values = span_of<Value>(results, keys.size());
    Value other;
    memcpy(&other, span_of<Value>(missing).data(), sizeof(Value));
    on_all(at, all_, [&] { table_.find(all_, keys, values, other); });
  }
  void contains(at_place at, const column& queries, const column& results) const override {
    const auto keys = span_of<Key>(queries);
    const auto found = span_of<bool>(results, keys.size());
    on_all(at, all_, [&] { table_.contains(all_, keys, found); });
  }
  nb::tuple items(at_place at) const override {
    auto [keys, values] = change(at, all_.place(), [&](const Place& place) {
      const auto& mine = table_.shard(0);
      std::pair all(array<Key, Place>(place, mine.size()), array<Value, Place>(place, mine.size()));
      mine.retrieve_all(place, all.first, all.second);
      return all;
    });
    const nb::object all_keys = to_python(at, std::move(keys));
    return nb::make_tuple(all_keys, to_python(at, std::move(values)));
  }
  std::size_t size() const override { return table_.size(); }
  std::size_t bytes() const override { return table_.bytes(); }
  bool valid(at_place at) const override {
    return on_all(at, all_, [&] { return table_.valid(all_); });
  }

 private:
  const rank<Place> all_;
  table table_;
};

/// Sizes of keys here: each needs its own code for builds, lookups and joins.
template <class F>
auto with_shared_keys(const column& keys, const F& f) {
  return with_bytes<4, 8, 16>(keys.row_bytes, "keys of several processes", f);
}

template <class Place>
std::unique_ptr<shared_map<Place>> make_shared_map(const call_place<Place>& at, const group<Place>& all,
                                                   const column& keys, const column& values) {
  return with_shared_keys(keys, [&]<class Key>(Key) {
    return with_bytes<4, 8>(values.row_bytes, "values of several processes", [&]<class Value>(Value) {
      const auto key_column = span_of<Key>(keys);
      const auto value_column = span_of<Value>(values);
      return on_all(at, all.all(), [&]() -> std::unique_ptr<shared_map<Place>> {
        return std::make_unique<shared_map_of<Key, Value, Place>>(
            all.all(), sharded_map<Key, Value, rank<Place>>(all.all(), key_column, value_column));
      });
    });
  });
}

template <class Place>
nb::object shared_unique(const call_place<Place>& at, const group<Place>& all, const column& keys) {
  return with_shared_keys(keys, [&]<class Key>(Key) -> nb::object {
    const auto mine = span_of<Key>(keys);
    return to_python(at, on_all(at, all.all(), [&] { return unique(all.all(), mine); }));
  });
}

/// Row numbers over all ranks.
template <class Place>
nb::tuple shared_join(const call_place<Place>& at, const group<Place>& all, const column& left,
                      const column& right) {
  return with_shared_keys(left, [&]<class Key>(Key) {
    const auto mine = span_of<Key>(left), others = span_of<Key>(right);
    auto rows = on_all(at, all.all(), [&] { return inner_join<std::uint64_t>(all.all(), mine, others); });
    const nb::object left_rows = to_python_as<std::int64_t>(at, std::move(rows.left));
    return nb::make_tuple(left_rows, to_python_as<std::int64_t>(at, std::move(rows.right)));
  });
}

}  // namespace

template <class Place>
void bind_distributed(nb::module_& m) {
  using all = group<Place>;
  using map = shared_map<Place>;
  nb::class_<all> group(m, "Group");
  if constexpr (std::is_same_v<Place, host>) {
    group
        .def(nb::init<const call_place<Place>&, std::uint32_t, std::uint32_t, nb::callable, nb::callable,
                      nb::object>(),
             nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none())
        .def("agree", &all::agree)
        .def("fail", &all::fail);
  }
#if defined(__CUDACC__)
  if constexpr (std::is_same_v<Place, cuda>) {
    group.def(nb::init<const call_place<Place>&, std::uint32_t, std::uint32_t, const nb::bytes&, unsigned>());
    m.def("new_nccl_identity", &new_nccl_identity);
  }
#endif
  nb::class_<map>(m, "SharedMap")
      .def("find", &map::find)
      .def("contains", &map::contains)
      .def("items", &map::items)
      .def("size", &map::size)
      .def("bytes", &map::bytes)
      .def("valid", &map::valid);
  m.def("make_shared_map", &make_shared_map<Place>, nb::keep_alive<0, 2>());
  m.def("shared_unique", &shared_unique<Place>);
  m.def("shared_join", &shared_join<Place>);
}

template void bind_distributed<ROOST_PYTHON_PLACE>(nb::module_&);

}  // namespace roost::python
