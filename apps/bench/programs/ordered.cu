// Order inside groups, every row of the results checked against a loop over the rows in the order of time.
// Not part of the command, which would take minutes longer to compile:
//
//     nvcc -std=c++20 -O2 -arch=native --extended-lambda --expt-relaxed-constexpr -Iinclude
//       apps/bench/programs/ordered.cu -o ordered -ltbb -ltbbmalloc
//     ./ordered asof 26 10000 ordered
//     ./ordered rolling 26 10000 shuffled
//
// A fifth argument is the number of calls that are measured, otherwise 5. `asof`: the last of 2^n right rows
// for each of 2^n left rows; `rolling`: means of 5 minutes; `running`: sums so far and rows before; `ranks`;
// `sessions`. `ordered`: rows come in the order of time. Keys have 64 bits, times too. With `-x c++` instead
// of nvcc's options, the program measures the CPU.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <roost/ordered/asof_join.hpp>
#include <roost/ordered/rolling.hpp>
#include <roost/ordered/running.hpp>
#include <roost/ordered/sessions.hpp>
#include <string>
#include <vector>

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;
constexpr u32 none = ~u32{0};

#if defined(__CUDACC__)
using place_type = roost::cuda;
#else
using place_type = roost::host;
#endif
template <class T>
using column = roost::array<T, place_type>;

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

/// What a run has.
struct workload {
  const place_type& at;
  roost::host cpu;
  int bits;
  u64 keys;
  bool in_order;
  std::size_t calls;

  std::size_t rows() const { return std::size_t{1} << bits; }

  /// f(i) for all i.
  template <class F>
  auto list(const F& f) const {
    std::vector<decltype(f(0))> made(rows());
    cpu.for_each(rows(), [&](std::size_t i) { made[i] = f(i); });
    return made;
  }

  /// The least and the median time of the calls, after one that is not measured.
  template <class Call>
  void measure(const char* what, std::size_t all_rows, const Call& call) const {
    std::vector<double> times(calls + 1);
    for (double& time : times) {
      at.synchronize();
      const double before = seconds();
      {
        const auto result = call();
        at.synchronize();
        time = seconds() - before;
      }
    }
    std::sort(times.begin() + 1, times.end());
    std::printf("  %-34s %8.3f ms  median %8.3f ms  %6.2f G rows/s\n", what, times[1] * 1e3,
                times[(calls + 1) / 2] * 1e3, static_cast<double>(all_rows) / times[1] / 1e9);
    std::fflush(stdout);
  }

  bool report(const char* what, u64 wrong) const {
    if (wrong == 0) {
      std::printf("  %-34s right\n", what);
    } else {
      std::printf("  %-34s WRONG in %llu rows\n", what, static_cast<unsigned long long>(wrong));
    }
    return wrong == 0;
  }
};

/// Rows of random keys: row_at[p] is row p in the order of time, which has the time time(p).
struct table {
  std::vector<u32> row_at, numbers;  // numbers: of the keys of the rows
  std::vector<i64> times;
  column<u64> keys;
  column<i64> times_there;

  template <class Time>
  table(const workload& of, u64 seed, const Time& time)
      : row_at(
            of.list([&](std::size_t p) { return static_cast<u32>(of.in_order ? p : permuted(p, of.bits)); })),
        numbers(of.list(
            [&](std::size_t row) { return static_cast<u32>(roost::mix64(row + (seed << 40)) % of.keys); })),
        times(of.rows()),
        keys(roost::copy_to(of.at, of.list([&](std::size_t row) { return roost::mix64(numbers[row]); }))) {
    of.cpu.for_each(of.rows(), [&](std::size_t p) { times[row_at[p]] = time(static_cast<i64>(p)); });
    times_there = roost::copy_to(of.at, times);
    of.at.synchronize();
  }
};

bool asof(const workload& of) {
  const table left(of, 1, [](i64 p) { return p / 3 * 15; });
  const table right(of, 2, [](i64 p) { return p / 2 * 10; });
  const auto call = [&] {
    return roost::asof_join(of.at, left.keys, left.times_there, right.keys, right.times_there);
  };
  of.measure("asof_join, rows of both sides", 2 * of.rows(), call);
  const auto found = roost::copy_to_host(of.at, call());
  std::vector<u32> last(of.keys, none);
  u64 wrong = 0;
  std::size_t q = 0;
  for (const u32 row : left.row_at) {
    for (; q < of.rows() && right.times[right.row_at[q]] <= left.times[row]; ++q) {
      const u32 next = right.row_at[q];
      u32& before = last[right.numbers[next]];
      // Of rows with one time, the last one in the order of the input.
      if (before == none || right.times[before] != right.times[next] || before < next) before = next;
    }
    wrong += found[row] != last[left.numbers[row]];
  }
  return of.report("asof_join", wrong);
}

struct divide_by_sizes {
  double* sums;
  const u32* sizes;
  ROOST_FN void operator()(std::size_t row) const { sums[row] /= sizes[row]; }
};

bool rolling(const workload& of) {
  constexpr i64 span = 300'000'000;                                          // microseconds
  const i64 step = std::max<i64>(1, 6'000'000 / static_cast<i64>(of.keys));  // a row of each key in 6 s
  const table all(of, 1, [&](i64 p) { return p * step; });
  const auto values = of.list([](std::size_t row) { return static_cast<double>(roost::mix64(row) >> 44); });
  const auto there = roost::copy_to(of.at, values);
  const roost::time_around<i64> minutes{.before = span};
  const auto call = [&] {
    const auto rows = roost::group_rows(of.at, all.keys, all.times_there);
    const auto windows = roost::windows_by_time(of.at, rows, all.times_there, minutes);
    auto means = roost::combine_windows(of.at, rows, windows, there, roost::plus(), 0.0);
    const auto sizes = roost::window_sizes(of.at, rows, windows);
    of.at.for_each(of.rows(), divide_by_sizes{means.data(), sizes.data()});
    return means;
  };
  of.measure("rolling mean of 5 minutes", of.rows(), call);
  {
    const auto rows = roost::group_rows(of.at, all.keys, all.times_there);
    const auto windows = roost::windows_by_time(of.at, rows, all.times_there, minutes);
    std::printf("  the longest window has %u rows\n", windows.longest);
    of.measure("- group_rows by key and time", of.rows(),
               [&] { return roost::group_rows(of.at, all.keys, all.times_there); });
    of.measure("- windows_by_time", of.rows(),
               [&] { return roost::windows_by_time(of.at, rows, all.times_there, minutes); });
    of.measure("- combine_windows", of.rows(),
               [&] { return roost::combine_windows(of.at, rows, windows, there, roost::plus(), 0.0); });
    of.measure("- window_sizes", of.rows(), [&] { return roost::window_sizes(of.at, rows, windows); });
  }
  const auto means = roost::copy_to_host(of.at, call());
  // Whole numbers, whose sums are exact.
  std::vector<double> sums(of.keys, 0);
  std::vector<u32> sizes(of.keys, 0);
  u64 wrong = 0;
  std::size_t oldest = 0;
  for (const u32 row : all.row_at) {
    for (; all.times[all.row_at[oldest]] <= all.times[row] - span; ++oldest) {
      const u32 left = all.row_at[oldest];
      sums[all.numbers[left]] -= values[left];
      --sizes[all.numbers[left]];
    }
    const u32 key = all.numbers[row];
    sums[key] += values[row];
    wrong += means[row] != sums[key] / ++sizes[key];
  }
  return of.report("rolling mean", wrong);
}

bool running(const workload& of) {
  const table all(of, 1, [](i64 p) { return p; });
  const auto values = of.list([](std::size_t row) { return static_cast<double>(roost::mix64(row) >> 44); });
  const auto there = roost::copy_to(of.at, values);
  const auto grouped = [&] {
    return of.in_order ? roost::group_rows(of.at, all.keys)
                       : roost::group_rows(of.at, all.keys, all.times_there);
  };
  const auto sums_of = [&](const auto& rows) { return roost::running(of.at, rows, there, roost::plus()); };
  of.measure("group_rows", of.rows(), grouped);
  of.measure("group_rows and running sums", of.rows(), [&] { return sums_of(grouped()); });
  of.measure("group_rows and shifted_rows", of.rows(),
             [&] { return roost::shifted_rows(of.at, grouped(), 1); });
  {
    const auto rows = grouped();
    of.measure("- running sums", of.rows(), [&] { return sums_of(rows); });
    of.measure("- shifted_rows", of.rows(), [&] { return roost::shifted_rows(of.at, rows, 1); });
    of.measure("- combine_groups", of.rows(),
               [&] { return roost::combine_groups(of.at, rows, there, roost::plus()); });
  }
  std::vector<u32> found;
  std::vector<double> sums;
  {
    const auto rows = grouped();
    sums = roost::copy_to_host(of.at, sums_of(rows));
    found = roost::copy_to_host(of.at, roost::shifted_rows(of.at, rows, 1));
  }
  u64 wrong_sums = 0, wrong_rows = 0;
  std::vector<double> so_far(of.keys, 0);
  std::vector<u32> last(of.keys, none);
  for (const u32 row : all.row_at) {
    const u32 key = all.numbers[row];
    wrong_sums += sums[row] != (so_far[key] += values[row]);
    wrong_rows += found[row] != last[key];
    last[key] = row;
  }
  const bool good = of.report("running sums", wrong_sums);
  return of.report("shifted_rows", wrong_rows) && good;
}

/// Ranks of numbers of which each comes twice, in random order.
bool ranks(const workload& of) {
  const table all(of, 1, [](i64 p) { return p; });
  std::vector<u32> rows_by_value(of.rows());
  const auto values = of.list([&](std::size_t row) {
    const u64 place = permuted(row, of.bits);
    rows_by_value[place] = static_cast<u32>(row);
    return static_cast<i64>(place >> 1);
  });
  const auto there = roost::copy_to(of.at, values);
  const auto grouped = [&] { return roost::group_rows(of.at, all.keys, there); };
  const auto ranked = [&](const auto& rows) {
    return roost::ranks_in_groups(of.at, rows, there, roost::rank_method::least);
  };
  of.measure("group_rows and ranks_in_groups", of.rows(), [&] { return ranked(grouped()); });
  of.measure("- group_rows by value", of.rows(), grouped);
  {
    const auto rows = grouped();
    of.measure("- ranks_in_groups", of.rows(), [&] { return ranked(rows); });
  }
  const auto found = roost::copy_to_host(of.at, ranked(grouped()));
  struct state {
    i64 value = -1;
    u32 seen = 0, rank = 0;
  };
  std::vector<state> states(of.keys);
  u64 wrong = 0;
  for (const u32 row : rows_by_value) {
    state& key = states[all.numbers[row]];
    ++key.seen;
    if (key.value != values[row]) key = {values[row], key.seen, key.seen};
    wrong += found[row] != key.rank;
  }
  return of.report("ranks_in_groups", wrong);
}

bool sessions(const workload& of) {
  // Pauses of a key are random, `keys` on average.
  const table all(of, 1, [](i64 p) { return p; });
  const u64 gap = 3 * of.keys;
  const auto grouped = [&] { return roost::group_rows(of.at, all.keys, all.times_there); };
  of.measure("group_rows, sessions, numbers", of.rows(), [&] {
    return roost::group_numbers(of.at, roost::sessions(of.at, grouped(), all.times_there, gap));
  });
  const auto rows = grouped();
  of.measure("group_rows and sessions", of.rows(),
             [&] { return roost::sessions(of.at, grouped(), all.times_there, gap); });
  of.measure("- sessions", of.rows(), [&] { return roost::sessions(of.at, rows, all.times_there, gap); });
  const auto found = roost::sessions(of.at, rows, all.times_there, gap);
  const auto numbers = roost::copy_to_host(of.at, roost::group_numbers(of.at, found));
  const auto listed = roost::copy_to_host(of.at, found.rows());
  const auto offsets = roost::copy_to_host(of.at, found.offsets());
  std::printf("  %zu sessions\n", found.group_count());
  u64 wrong = 0, begun = 0;
  std::vector<u32> first(of.keys, none), last(of.keys, none);
  for (const u32 row : all.row_at) {
    const u32 key = all.numbers[row];
    if (last[key] == none || static_cast<u64>(all.times[row] - all.times[last[key]]) > gap) {
      first[key] = row;
      ++begun;
    }
    last[key] = row;
    wrong += listed[offsets[numbers[row]]] != first[key];
  }
  return of.report("sessions", wrong + (begun != found.group_count()));
}

}  // namespace

int main(int count, char** given) {
  const std::string operation = count == 5 || count == 6 ? given[1] : "";
  const auto run = operation == "asof"       ? asof
                   : operation == "rolling"  ? rolling
                   : operation == "running"  ? running
                   : operation == "ranks"    ? ranks
                   : operation == "sessions" ? sessions
                                             : nullptr;
  const int bits = run != nullptr ? std::atoi(given[2]) : 0;
  const long long keys = run != nullptr ? std::atoll(given[3]) : 0;
  const int calls = count == 6 ? std::atoi(given[5]) : 5;
  const std::string order = run != nullptr ? given[4] : "";
  if (bits < 4 || bits > 30 || keys < 1 || keys > (1ll << bits) || calls < 1 ||
      (order != "ordered" && order != "shuffled")) {
    std::fprintf(stderr,
                 "usage: ordered asof|rolling|running|ranks|sessions N KEYS ordered|shuffled [CALLS], with "
                 "4 <= N <= 30 and 1 <= KEYS <= 2^N\n");
    return 2;
  }
#if defined(__CUDACC__)
  cudaStream_t stream = nullptr;
  roost::detail::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                       "cudaStreamCreateWithFlags");
  const place_type place(stream);
#else
  const place_type place;
#endif
  std::printf("%s, 2^%d rows, %lld keys, %s\n", given[1], bits, keys, given[4]);
  return run({place, roost::host(), bits, static_cast<u64>(keys), order == "ordered",
              static_cast<std::size_t>(calls)})
             ? 0
             : 1;
}
