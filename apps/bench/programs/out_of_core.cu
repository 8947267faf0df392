// Calls for columns in host memory through a GPU, every row of their results checked. Not part of the
// command, which would take minutes longer to compile:
//
//     nvcc -std=c++20 -O2 -arch=native --extended-lambda --expt-relaxed-constexpr -Iinclude
//       apps/bench/programs/out_of_core.cu -o out_of_core -ltbb -ltbbmalloc
//     ./out_of_core join 29 29 pinned 8192 17408      # MiB of the device, and pinned
//     ./out_of_core dimension 31 24 pinned 8192 512
//     ./out_of_core sums 31 20 pinned 8192 512
//     ./out_of_core unique 31 30 pinned 8192 40960
//
// `join`: of 2^n and 2^n keys that all match; `dimension`: of 2^n keys with 2^m; `sums`: sum, minimum,
// maximum and count of 2^n values by 2^m keys; `unique`: 2^n keys, 2^m of them different; `counts`: these and
// how often each is there. Keys have 64 bits. The first call pins memory, which the second one finds.

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <execution>
#include <memory>
#include <roost/out_of_core/out_of_core.hpp>
#include <string>
#include <vector>

namespace {

using u64 = std::uint64_t;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A permutation of [0, 2^bits).
u64 permuted(u64 i, int bits) {
  const u64 mask = (u64{1} << bits) - 1;
  i = (i * 0x9e3779b97f4a7c15) & mask;
  i ^= i >> (bits / 2 + 1);
  return (i * 0xbf58476d1ce4e5b9) & mask;
}
u64 key_of(u64 number) { return roost::mix64(number); }

/// Numbers in pinned or in ordinary memory.
class column {
 public:
  template <class F>
  column(const roost::host& cpu, std::size_t n, bool pinned, const F& f)
      : n_(n), memory_(nullptr, free_of(pinned)) {
    constexpr std::size_t huge = std::size_t{2} << 20;
    const std::size_t bytes = (n * sizeof(u64) + huge - 1) / huge * huge;
    void* made = nullptr;
    if (pinned) {
      roost::detail::check(cudaHostAlloc(&made, bytes, cudaHostAllocPortable), "cudaHostAlloc");
    } else {
      made = std::aligned_alloc(huge, bytes);
      if (made == nullptr) throw std::bad_alloc();
      madvise(made, bytes, MADV_HUGEPAGE);
    }
    memory_.reset(static_cast<u64*>(made));
    cpu.for_each(n, [&](std::size_t i) { memory_.get()[i] = f(i); });
  }
  const u64& operator[](std::size_t i) const { return memory_.get()[i]; }
  std::span<const u64> all() const { return {memory_.get(), n_}; }

 private:
  using free_memory = void (*)(u64*);
  static free_memory free_of(bool pinned) {
    if (pinned) return [](u64* memory) { static_cast<void>(cudaFreeHost(memory)); };
    return [](u64* memory) { std::free(memory); };
  }
  std::size_t n_;
  std::unique_ptr<u64, free_memory> memory_;
};

using place = roost::out_of_core<roost::cuda>;

/// What a run has: bits of the rows and of the keys.
struct workload {
  const place& at;
  bool pinned;
  int n, m;

  std::size_t rows() const { return std::size_t{1} << n; }
  std::size_t keys() const { return std::size_t{1} << m; }
  u64 number(u64 row) const { return permuted(row, n) & (keys() - 1); }
  column left() const {
    return column(at.cpu(), rows(), pinned, [this](u64 row) { return key_of(number(row)); });
  }

  /// Calls call() three times, and wrong(result), which counts what is wrong.
  template <class Call, class Wrong>
  bool measure(std::size_t all_rows, const Call& call, const Wrong& wrong) const {
    bool good = true;
    for (int run = 0; run < 3; ++run) {
      const double before = seconds();
      const auto result = call();
      const double taken = seconds() - before;
      const bool right = wrong(result) == 0;
      std::printf("%.3f s, %.2f G rows/s, %s\n", taken, static_cast<double>(all_rows) / taken / 1e9,
                  right ? "right" : "WRONG");
      good = good && right;
    }
    return good;
  }
};

bool joins(const workload& of) {
  const column left = of.left();
  const column right(of.at.cpu(), of.keys(), of.pinned, key_of);
  return of.measure(
      of.n == of.m ? 2 * of.rows() : of.rows(),
      [&] { return roost::inner_join(of.at, left.all(), right.all()); },
      [&](const auto& found) -> u64 {
        if (found.size() != of.rows()) return 1;
        return of.at.cpu().sum(of.rows(), [&](u64 row) -> u64 {
          return found.left[row] != row || found.right[row] != of.number(row);
        });
      });
}

bool sums(const workload& of) {
  const column keys = of.left();
  const column values(of.at.cpu(), of.rows(), of.pinned, [](u64 row) { return row; });
  return of.measure(
      of.rows(),
      [&] {
        const std::tuple functions{roost::plus(), roost::minimum(), roost::maximum()};
        return roost::group_by(of.at, keys.all(), values.all(), functions);
      },
      [&](const auto& groups) -> u64 {
        const u64 all = of.rows(), each = all >> of.m;
        u64 sum = 0;
        for (const u64 of_group : groups.values[0]) sum += of_group;
        if (groups.size() != of.keys() || sum != all / 2 * (all - 1)) return 1;
        return of.at.cpu().sum(groups.size(), [&](std::size_t g) -> u64 {
          return groups.counts[g] != each || keys[groups.values[1][g]] != groups.keys[g] ||
                 keys[groups.values[2][g]] != groups.keys[g];
        });
      });
}

/// The first row of each key, in order.
std::vector<std::uint32_t> first_rows(const workload& of) {
  std::vector<std::atomic<std::uint32_t>> first(of.keys());
  of.at.cpu().for_each(of.keys(), [&](std::size_t k) { first[k] = 0xffffffff; });
  of.at.cpu().for_each(of.rows(), [&](u64 row) {
    auto& mine = first[of.number(row)];
    std::uint32_t before = mine;
    while (row < before && !mine.compare_exchange_weak(before, static_cast<std::uint32_t>(row))) {
    }
  });
  std::vector<std::uint32_t> rows(of.keys());
  std::copy(first.begin(), first.end(), rows.begin());
  std::sort(std::execution::par, rows.begin(), rows.end());
  return rows;
}

template <bool Counts>
bool unique(const workload& of) {
  const column keys = of.left();
  const auto firsts = first_rows(of);
  return of.measure(
      of.rows(),
      [&] {
        if constexpr (Counts) {
          return roost::unique_counts(of.at, keys.all());
        } else {
          return roost::unique(of.at, keys.all());
        }
      },
      [&](const auto& found) -> u64 {
        const auto& found_keys = [&]() -> const auto& {
          if constexpr (Counts) {
            return found.keys;
          } else {
            return found;
          }
        }();
        if (found_keys.size() != of.keys()) return 1;
        return of.at.cpu().sum(of.keys(), [&](std::size_t k) -> u64 {
          if constexpr (Counts) {
            if (found.counts[k] != of.rows() >> of.m) return 1;
          }
          return found_keys[k] != keys[firsts[k]];
        });
      });
}

}  // namespace

int main(int count, char** given) {
  const std::string operation = count == 7 ? given[1] : "";
  const auto run = operation == "join" || operation == "dimension" ? joins
                   : operation == "sums"                           ? sums
                   : operation == "unique"                         ? unique<false>
                   : operation == "counts"                         ? unique<true>
                                                                   : nullptr;
  const int n = run != nullptr ? std::atoi(given[2]) : 0, m = run != nullptr ? std::atoi(given[3]) : 0;
  if (m < 1 || m > n || n > 31) {
    std::fprintf(
        stderr,
        "usage: out_of_core join|dimension|sums|unique|counts N M pinned|pageable DEVICE_MIB PINNED_MIB, "
        "with 1 <= M <= N <= 31\n");
    return 2;
  }
  cudaStream_t stream = nullptr;
  roost::detail::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                       "cudaStreamCreateWithFlags");
  const auto mib = [](const char* text) { return static_cast<std::size_t>(std::atoll(text)) << 20; };
  const place at(roost::host(), roost::cuda(stream),
                 {.device_bytes = mib(given[5]), .pinned_bytes = mib(given[6])});
  return run({at, std::string(given[4]) == "pinned", n, m}) ? 0 : 1;
}
