#include "support/place.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "support/keys.hpp"

// Memory and work of a place.

namespace test {
namespace {

struct write_square {
  u64* to;
  ROOST_FN void operator()(std::size_t i) const { to[i] = u64{i} * i; }
};

TEST(place, for_each_calls_every_number_once) {
  for (const std::size_t n : {0, 1, 2, 255, 256, 257, 4096, 4097, 100000}) {
    const auto squares = filled<u64>(n + 1, 7);
    test_place().for_each(n, write_square{const_cast<u64*>(squares.data())});
    const auto result = download(squares);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(result[i], i * i);
    EXPECT_EQ(result[n], 7u) << "past the end";
  }
}

struct add_one {
  u64* to;
  ROOST_FN void operator()(std::size_t i) const { roost::detail::fetch_add(to[i % 3], u64{1}); }
};
struct keep_least {
  u64* to;
  ROOST_FN void operator()(std::size_t i) const {
    roost::detail::fetch_min(*to, 1000000 + (i * 7919) % 100003);
  }
};

TEST(place, atomics_lose_nothing) {
  const auto counts = filled<u64>(3, u64{1} << 40);
  test_place().for_each(90000, add_one{const_cast<u64*>(counts.data())});
  EXPECT_EQ(download(counts), std::vector<u64>(3, (u64{1} << 40) + 30000));
  const auto least = filled<u64>(1, ~u64{0});
  test_place().for_each(100003, keep_least{const_cast<u64*>(least.data())});
  EXPECT_EQ(download(least)[0], 1000000u);
}

TEST(place, scan) {
  for (const std::size_t n : {0, 1, 2, 31, 32, 1000, 4096, 4097, 70000, 3000001}) {
    std::vector<u64> numbers(n), sums(n);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = (u64{i} << 19) + 1;  // sums up to 2^61
    std::exclusive_scan(numbers.begin(), numbers.end(), sums.begin(), u64{0});
    auto there = upload(numbers);
    memory_of<u64> to(test_place(), n);
    test_place().exclusive_scan(there.data(), to.data(), n);
    EXPECT_EQ(download(to), sums);
    test_place().exclusive_scan(there.data(), there.data(), n);
    EXPECT_EQ(download(there), sums) << "in place";
  }
}

struct odd {
  ROOST_FN u64 operator()(std::size_t i) const { return 2 * i + 1; }
};

TEST(place, sum) {
  for (const u64 n : {0, 1, 2, 4096, 100001}) EXPECT_EQ(test_place().sum(n, odd{}), n * n);
}

/// Each team writes its number all over its scratch, waits, and adds up what is there.
struct use_scratch {
  static constexpr int threads = 128;
  static constexpr bool large_scratch = true;
  u32 words;
  u64* sums;

  ROOST_FN u32* scratch(roost::detail::scratch_memory& memory) const { return memory.take<u32>(words); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte* memory) const {
    roost::detail::scratch_memory pieces(memory);
    u32* const mine = scratch(pieces);
    roost::detail::for_each_of(team, words, [&](u32 i) { mine[i] = static_cast<u32>(index) + 1; });
    team.sync();
    u64 sum = 0;
    roost::detail::for_each_of(team, words, [&](u32 i) { sum += mine[words - 1 - i]; });
    roost::detail::fetch_add(sums[index], sum);
  }
};

TEST(place, launches_teams_with_scratch_of_any_size) {
  for (const u32 words :
       {1, 1000, 12000, 11264, 11265, 40000, 56000, 70000, 1000000}) {  // 48 and 227 KiB are limits on a GPU
    for (const std::size_t teams : {0, 1, sanitized ? 30 : 300}) {
      const auto sums = filled<u64>(teams, 0);
      const use_scratch kernel{words, const_cast<u64*>(sums.data())};
      test_place().launch(teams, roost::detail::scratch_bytes_of(kernel), kernel);
      const auto result = download(sums);
      for (std::size_t i = 0; i < teams; ++i) ASSERT_EQ(result[i], (i + 1) * words) << words << " words";
    }
  }
}

// A kernel's limit of shared memory was once set by each launch: a thread lowered another's in between.
TEST(place, launches_one_kernel_from_several_threads_with_scratch_of_any_size) {
  constexpr std::size_t threads = 4, teams = 5;
  const std::size_t rounds = sanitized ? 50 : 1000;
  const auto sums = filled<u64>(threads * teams, 0);
  const auto launch = [&](std::size_t thread) {
    const u32 words = 12000 + static_cast<u32>(thread) * 10000;
    const use_scratch kernel{words, const_cast<u64*>(sums.data()) + thread * teams};
    for (std::size_t i = 0; i < rounds; ++i)
      test_place().launch(teams, roost::detail::scratch_bytes_of(kernel), kernel);
  };
  {
    std::vector<std::jthread> all;
    for (std::size_t thread = 0; thread < threads; ++thread) all.emplace_back(launch, thread);
  }
  const auto result = download(sums);
  for (std::size_t thread = 0; thread < threads; ++thread) {
    for (std::size_t i = 0; i < teams; ++i)
      EXPECT_EQ(result[thread * teams + i], rounds * (i + 1) * (12000 + thread * 10000));
  }
}

/// Numbers of a tile from those that other teams have written.
struct write_from {
  static constexpr int threads = 128;
  static constexpr std::size_t tile = 100;

  const u64* source;  // null: the number itself
  u64* target;
  std::size_t n;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    roost::detail::for_each_of(team, tile, [&](std::uint32_t i) {
      const std::size_t mine = index * tile + i;
      if (mine < n) target[mine] = source == nullptr ? mine : source[(mine * 7919 + 1) % n] + 1;
    });
  }
};
struct write_if : write_from {
  static constexpr int threads = 256;
  const u64* flag;
  ROOST_FN bool needed() const { return *flag != 0; }
};

TEST(place, launches_kernels_in_turn) {
  const auto barrier = filled<std::uint32_t>(1, 0);
  for (const std::size_t n : {1, 99, 3000, 250000}) {
    for (const u64 flag : {0, 1}) {
      const auto one = filled<u64>(n, 0), two = filled<u64>(n, 0), three = filled<u64>(n, 5),
                 wanted = filled<u64>(1, flag);
      const auto place_of = [](const auto& numbers) { return const_cast<u64*>(numbers.data()); };
      const std::size_t teams = n / write_from::tile + 1;
      using first = roost::detail::stage<write_from>;
      using second = roost::detail::stage<write_if>;
      for (int i = 0; i < 3; ++i) {
        test_place().launch_in_turn(const_cast<std::uint32_t*>(barrier.data()), {},
                                    first{teams, {nullptr, place_of(one), n}},
                                    second{teams, {{place_of(one), place_of(two), n}, wanted.data()}},
                                    second{1, {{place_of(one), place_of(one), 0}, wanted.data()}},
                                    first{teams, {place_of(two), place_of(three), n}});
      }
      const auto result = download(three);
      for (std::size_t i = 0; i < n; ++i)
        ASSERT_EQ(result[i], flag == 0 ? 1 : ((i * 7919 + 1) % n * 7919 + 1) % n + 2) << n << " " << i;
    }
  }
}

/// Counts its teams and what they see, after some work.
struct several_counts {
  u64 teams = 0, workers = 0;
  u32 largest = 0, odd = 0;
  u64 more[4] = {};
};
struct count_teams {
  static constexpr int threads = 64;
  several_counts* counts;
  u32 rounds;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    u32 mixed = static_cast<u32>(index);
    for (u32 i = 0; i < rounds; ++i) mixed = mixed * 0x9e3779b1u + 1;
    roost::detail::fetch_add(counts->workers, u64{1} + (mixed == 0 && rounds > 1));
    if (team.rank() != 0) return;
    roost::detail::fetch_add(counts->teams, u64{1});
    roost::detail::fetch_max(counts->largest, static_cast<u32>(index));
    roost::detail::fetch_add(counts->odd, static_cast<u32>(index % 2));
    roost::detail::fetch_add(counts->more[3], static_cast<u64>(index));
  }
};

void expect_counts(const several_counts& sum, std::size_t teams) {
  EXPECT_EQ(sum.teams, teams);
  EXPECT_EQ(sum.workers % teams, 0u);
  EXPECT_EQ(sum.largest, teams - 1);
  EXPECT_EQ(sum.odd, teams / 2);
  EXPECT_EQ(sum.more[2], 0u);
  EXPECT_EQ(sum.more[3], teams * (teams - 1) / 2);
}

TEST(place, counts_from_0_each_time) {
  for (const u32 rounds : {1, 300000}) {  // the second takes longer than the host watches for the end
    for (const std::size_t teams : {1, 2, 131, 5000, 3}) {
      const auto kept = filled<several_counts>(1, several_counts{.teams = 99});
      const auto launch = [&](several_counts* counts, const auto& report) {
        test_place().launch(teams, 0, count_teams{counts, rounds}, report);
      };
      expect_counts(test_place().count<several_counts>(launch), teams);
      expect_counts(test_place().count<several_counts>(launch, const_cast<several_counts*>(kept.data())),
                    teams);
      expect_counts(download(kept)[0], teams);
    }
    if (std::is_same_v<place_type, roost::host>) break;
  }
}

TEST(place, counts_over_several_launches_and_in_turn) {
  const auto barrier = filled<std::uint32_t>(1, 0);
  for (const std::size_t teams : {1, 700}) {
    using stage = roost::detail::stage<count_teams>;
    const auto sum = test_place().count<several_counts>([&](several_counts* counts, const auto& report) {
      test_place().launch(teams, 0, count_teams{counts, 1});
      test_place().launch_in_turn(const_cast<std::uint32_t*>(barrier.data()), report,
                                  stage{teams, {counts, 1}}, stage{1, {counts, 1}});
    });
    EXPECT_EQ(sum.teams, 2 * teams + 1);
    EXPECT_EQ(sum.more[3], teams * (teams - 1));
  }
}

TEST(place, counts_from_0_after_a_failure) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(test_place().count<several_counts>([&](several_counts* counts, const auto&) {
      test_place().launch(50, 0, count_teams{counts, 1});
      throw std::runtime_error("between two launches");
    }),
                 std::runtime_error);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(test_place().sum(1000, odd{}), u64{1000} * 1000) << i;
  EXPECT_EQ(test_place().sum(0, odd{}), 0u);
}

/// A team's own operations.
struct use_team {
  static constexpr int threads = 96;
  static constexpr bool large_scratch = true;
  u32 n;
  u32* sums;
  u32* flags;

  ROOST_FN u32* scratch(roost::detail::scratch_memory& memory) const { return memory.take<u32>(n + 3); }

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t, std::byte* memory) const {
    roost::detail::scratch_memory pieces(memory);
    u32* const counts = scratch(pieces);
    u32* const extra = counts + n;
    roost::detail::for_each_of(team, n, [&](u32 i) { counts[i] = i % 5; });
    if (team.rank() == 0) extra[0] = extra[1] = extra[2] = 0;
    team.sync();
    team.exclusive_scan(counts, sums, n);
    u32 won = 0;
    roost::detail::for_each_of(team, n, [&](u32 i) {
      if (team.fetch_add(extra[2], 1u) >= n) roost::detail::fetch_add(flags[4], 1u);
      team.fetch_add(extra[0], i);
      won += team.compare_exchange(extra[1], 0u, i + 1) == 0;
    });
    roost::detail::fetch_add(flags[0], won);
    const bool last = team.any(won != 0);
    const bool none = team.any(false);
    team.sync();
    if (team.rank() == 0) {
      flags[1] = extra[0];
      flags[2] = last;
      flags[3] = none;
    }
  }
};

TEST(place, team_scans_counts_and_votes) {
  for (const u32 n : {1, 2, 95, 96, 97, 1000}) {
    const auto sums = filled<u32>(n, 0), flags = filled<u32>(5, 0);
    const use_team kernel{n, const_cast<u32*>(sums.data()), const_cast<u32*>(flags.data())};
    test_place().launch(1, roost::detail::scratch_bytes_of(kernel), kernel);
    const auto result = download(sums);
    u32 sum = 0;
    for (u32 i = 0; i < n; ++i) {
      ASSERT_EQ(result[i], sum) << i << " of " << n;
      sum += i % 5;
    }
    EXPECT_EQ(download(flags), (std::vector<u32>{1, n * (n - 1) / 2, 1, 0, 0}));
  }
}

TEST(place, arrays_own_and_move) {
  watched_memory memory;
  {
    const place_type place = make_place(memory);
    roost::array<u32, place_type> a(place, 100), b(place, 0);
    EXPECT_EQ(memory.live_blocks(), 1u) << "nothing is allocated for nothing";
    EXPECT_EQ(memory.live_bytes(), 400u);
    EXPECT_EQ(a.bytes(), 400u);
    u32* const data = a.data();
    roost::array<u32, place_type> c = std::move(a);
    EXPECT_EQ(c.data(), data);
    EXPECT_EQ(a.size(), 0u);  // NOLINT: moved from
    b = std::move(c);
    EXPECT_EQ(b.data(), data);
    EXPECT_EQ(b.end() - b.begin(), 100);
    EXPECT_EQ(b.span().size(), 100u);
    EXPECT_EQ(memory.live_blocks(), 1u);
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
  EXPECT_EQ(memory.wrong_returns(), 0u);
}

TEST(place, copies_there_and_back) {
  for (const std::size_t n : {0, 1, 1000}) {
    std::vector<std::uint16_t> source(n);
    std::iota(source.begin(), source.end(), std::uint16_t{3});
    const auto there = upload(source);
    EXPECT_EQ(download(there), source);
    memory_of<std::uint16_t> copy(test_place(), n);
    test_place().copy(copy.data(), there.data(), copy.bytes());
    EXPECT_EQ(download(copy), source);
    test_place().fill(copy.data(), 0xff, copy.bytes());
    EXPECT_EQ(download(copy), std::vector<std::uint16_t>(n, 0xffff));
  }
  EXPECT_EQ(download(filled<bool>(3, true)), std::vector<char>(3, 1));
}

TEST(place, copies_of_any_size_come_to_the_host) {
  std::vector<std::uint8_t> bytes(300);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37);
  const auto there = upload(bytes);
  for (std::size_t n = 0; n < 140; ++n) {
    std::vector<std::uint8_t> here(n + 1, 99);
    test_place().copy_to_host(here.data(), there.data() + n, n);
    EXPECT_TRUE(std::equal(here.begin(), here.end() - 1, bytes.begin() + static_cast<std::ptrdiff_t>(n)));
    EXPECT_EQ(here.back(), 99) << "past the end";
  }
}

TEST(place, is_used_by_two_threads_at_once) {
  u64 sums[2] = {};
  {
    const auto work = [&](int which) {
      for (int i = 0; i < 20; ++i) sums[which] += test_place().sum(20000, odd{});
    };
    const std::jthread first(work, 0), second(work, 1);
  }
  EXPECT_EQ(sums[0], u64{20} * 20000 * 20000);
  EXPECT_EQ(sums[1], sums[0]);
}

TEST(place, has_no_memory_for_more_than_an_address_can_name) {
  for (const std::size_t n : {~std::size_t{0}, ~std::size_t{0} / 8, ~std::size_t{0} / 16 + 1}) {
    expect_error<roost::out_of_memory>([&] { memory_of<u64>(test_place(), n); },
                                       {"roost::array", std::to_string(n) + " elements of 8 bytes"});
  }
}

#if !defined(__CUDACC__)
/// How many threads work in a launch.
std::size_t threads_at_work(const roost::host& place) {
  std::mutex lock;
  std::set<std::thread::id> seen;
  place.launch(1000, 0, [&](const auto&, std::size_t, std::byte*) {
    const std::lock_guard hold(lock);
    seen.insert(std::this_thread::get_id());
  });
  return seen.size();
}

TEST(place, host_has_as_many_threads_as_it_says_and_writes_nothing) {
  constexpr auto most = tbb::global_control::max_allowed_parallelism;
  const auto there_are = static_cast<int>(tbb::global_control::active_value(most));
  testing::internal::CaptureStderr();
  EXPECT_EQ(roost::host(1).threads(), 1);
  EXPECT_EQ(roost::host().threads(), there_are);
  const roost::host all(there_are), too_many(there_are + 6);
  EXPECT_EQ(all.threads(), there_are);
  EXPECT_EQ(too_many.threads(), there_are);
  EXPECT_LE(threads_at_work(too_many), static_cast<std::size_t>(there_are));
  {
    const tbb::global_control more(most, static_cast<std::size_t>(there_are) + 2);
    const roost::host place(there_are + 6);
    EXPECT_EQ(place.threads(), there_are + 2);
    EXPECT_LE(threads_at_work(place), static_cast<std::size_t>(there_are) + 2);
    EXPECT_EQ(too_many.threads(), there_are);
  }
  {
    const tbb::global_control one(most, 1);
    EXPECT_EQ(all.threads(), 1);
    EXPECT_EQ(roost::host(4).threads(), 1);
    EXPECT_EQ(threads_at_work(roost::host(4)), 1u);
  }
  EXPECT_EQ(all.threads(), there_are);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(roost::host().memory(), roost::host::default_memory());
}

/// A resource that has any memory, as a file can be; nobody may touch it.
class boundless_memory : public std::pmr::memory_resource {
  void* do_allocate(std::size_t, std::size_t alignment) override { return at(alignment); }
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

 public:
  static void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }
};

TEST(place, host_refuses_more_memory_than_the_machine_has) {
  const std::size_t all = roost::detail::bytes_of_host();
  for (auto* const memory : {roost::host::default_memory(), std::pmr::new_delete_resource()}) {
    const roost::host place(1, memory);
    for (const std::size_t bytes : {all + 1, 2 * all, ~std::size_t{0} >> 1}) {
      expect_error<roost::out_of_memory>(
          [&] { static_cast<void>(place.allocate(bytes)); },
          {std::to_string(bytes) + " bytes", std::to_string(all), "use fewer"});
    }
    const roost::array<char, roost::host> some(place, 100 << 20);
    EXPECT_EQ(some.size(), 100u << 20);
  }
  const roost::host usual(1);
  const std::size_t too_much = roost::detail::bytes_available_on_host() / 8 * 9 + (std::size_t{2} << 30);
  if (too_much < all && !roost::detail::host_has_room(too_much))  // else there is swap
    expect_error<roost::out_of_memory>([&] { usual.expect_room(too_much); },
                                       {std::to_string(too_much) + " bytes", "are available"});
  EXPECT_NO_THROW(usual.expect_room(std::size_t{1} << 20));
  boundless_memory boundless;
  const roost::host place(1, &boundless);
  void* const all_of_it = boundless_memory::at(std::uintptr_t{2} << 20);
  EXPECT_EQ(place.allocate(all + 1), all_of_it) << "a resource of one's own knows what it has";
  place.deallocate(all_of_it, all + 1);
}

/// The files of a system that tell about memory.
class system_files {
 public:
  system_files() {
    std::string name = (std::filesystem::temp_directory_path() / "roost_test_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for temporary files");
    root = name;
  }
  system_files(const system_files&) = delete;
  ~system_files() { std::filesystem::remove_all(root); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root + file).parent_path());
    std::ofstream(root + file) << text;
  }
  std::size_t all() const { return roost::detail::read_bytes_of_host(root); }
  std::size_t available() const { return roost::detail::bytes_available_on_host(root); }

  std::string root;
};

TEST(place, host_memory_is_that_of_the_machine_within_its_control_groups) {
  constexpr std::size_t kib = 1024, none = ~std::size_t{0};
  const auto machine = [](const system_files& at, const char* swap = "0") {
    at.write(
        "/proc/meminfo",
        std::string("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\nSwapTotal: ") + swap + " kB\n");
  };
  {
    const system_files nothing;
    EXPECT_EQ(nothing.all(), none);
    EXPECT_EQ(nothing.available(), none);
    machine(nothing);
    EXPECT_EQ(nothing.all(), 1000 * kib) << "no control groups";
    EXPECT_EQ(nothing.available(), 600 * kib);
    machine(nothing, "50");
    EXPECT_EQ(nothing.all(), 1050 * kib);
  }
  {
    const system_files second;  // version 2, and the group above has less
    machine(second);
    second.write("/proc/self/cgroup", "0::/outer/inner\n");
    second.write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    EXPECT_EQ(second.all(), 1000 * kib);
    second.write("/sys/fs/cgroup/outer/memory.max", "512000\n");
    EXPECT_EQ(second.all(), 512000u);
    EXPECT_EQ(second.available(), 600 * kib) << "nothing says how much the group uses";
    second.write("/sys/fs/cgroup/outer/memory.current", "412000\n");
    second.write("/sys/fs/cgroup/outer/memory.stat", "anon 300000\ninactive_file 40000\nactive_file 2000\n");
    EXPECT_EQ(second.available(), 142000u) << "the system drops files";
    second.write("/sys/fs/cgroup/outer/inner/memory.max", "1000\n");
    EXPECT_EQ(second.all(), 1000u);
    second.write("/sys/fs/cgroup/memory.max", "900\n");
    EXPECT_EQ(second.all(), 900u) << "that of a container";
  }
  {
    const system_files first;  // version 1
    machine(first);
    first.write("/proc/self/cgroup", "5:devices:/x\n4:memory:/some\n0::/\n");
    first.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(first.all(), 1000 * kib);
    first.write("/sys/fs/cgroup/memory/some/memory.limit_in_bytes", "300000\n");
    first.write("/sys/fs/cgroup/memory/some/memory.usage_in_bytes", "290000\n");
    first.write("/sys/fs/cgroup/memory/some/memory.stat",
                "active_file 1\ntotal_inactive_file 1000\ntotal_active_file 2000\n");
    EXPECT_EQ(first.all(), 300000u);
    EXPECT_EQ(first.available(), 13000u);
    first.write("/proc/self/cgroup", "4:memory:/a/name/outside\n");  // of a container
    first.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "200000\n");
    EXPECT_EQ(first.all(), 200000u);
  }
}

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(place, host_memory_begins_with_a_line_and_large_memory_with_a_huge_page) {
  std::pmr::monotonic_buffer_resource no_more_aligned_than_asked_for;
  const roost::host place(1, &no_more_aligned_than_asked_for);
  const roost::array<char, roost::host> first(place, 1), second(place, 1), large(place, 3 * mib);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % (2 * mib), 0u);
}

/// Takes a piece, writes to both ends, and gives it back.
void* use(std::pmr::memory_resource& pool, std::size_t bytes) {
  auto* const memory = static_cast<char*>(pool.allocate(bytes, 64));
  memory[0] = memory[bytes - 1] = 1;
  pool.deallocate(memory, bytes, 64);
  return memory;
}

TEST(place, host_memory_pool_keeps_big_pieces_for_the_next_build) {
  auto& pool = roost::host_memory_pool::instance();
  constexpr std::size_t big = 5 * mib, alignment = 2 * mib;
  void* const first = pool.allocate(big, alignment);
  std::memset(first, 1, big);
  pool.deallocate(first, big, alignment);
  void* const again = pool.allocate(big, alignment);
  EXPECT_EQ(again, first) << "the piece was not kept";
  void* const other = pool.allocate(big, alignment);
  EXPECT_NE(other, again) << "one piece for two";
  std::memset(again, 2, big);
  std::memset(other, 3, big);
  EXPECT_EQ(static_cast<char*>(again)[big - 1], 2) << "the pieces overlap";
  pool.deallocate(other, big, alignment);
  pool.deallocate(again, big, alignment);
  pool.trim();
  void* const small = pool.allocate(100, 64);
  std::memset(small, 4, 100);
  pool.deallocate(small, 100, 64);
  EXPECT_THROW(static_cast<void>(pool.allocate(std::size_t{1} << 58, 64)), std::bad_alloc);
}

TEST(place, host_memory_pool_trims_what_was_never_used) {
  roost::host_memory_pool::instance().trim();
  roost::host_memory_pool own;
  own.trim();
}

TEST(place, host_memory_pool_hands_out_larger_pieces) {
  watched_memory memory;
  {
    roost::host_memory_pool pool(&memory);
    void* const ten = use(pool, 10 * mib);
    EXPECT_EQ(use(pool, 4 * mib), ten) << "two and a half times as large";
    EXPECT_EQ(memory.live_bytes(), 10 * mib) << "it came back as large as it is";
    EXPECT_EQ(use(pool, 10 * mib), ten);
    void* const held = pool.allocate(4 * mib, 64);
    EXPECT_EQ(held, ten);
    EXPECT_NE(use(pool, 4 * mib), ten) << "it is in use";
    pool.deallocate(held, 4 * mib, 64);
    EXPECT_EQ(memory.allocations(), 2u);
    EXPECT_NE(use(pool, 4 * mib), ten) << "there is one that fits better";
    EXPECT_EQ(memory.allocations(), 2u);
    pool.trim();
    EXPECT_EQ(memory.live_blocks(), 0u);

    use(pool, 10 * mib);
    use(pool, 4 * mib - 1);
    EXPECT_EQ(memory.allocations(), 4u) << "more than two and a half times as large";
    use(pool, 10 * mib + 1);
    EXPECT_EQ(memory.allocations(), 5u) << "too small";
    pool.trim();
    use(pool, 4 * mib);
    void* const aligned = pool.allocate(4 * mib, 2 * mib);
    EXPECT_EQ(memory.allocations(), 7u) << "pieces of less alignment do not fit";
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % (2 * mib), 0u);
    pool.deallocate(aligned, 4 * mib, 2 * mib);
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
  EXPECT_EQ(memory.wrong_returns(), 0u);
}

TEST(place, host_memory_pool_keeps_no_more_than_was_in_use) {
  watched_memory memory;
  {
    roost::host_memory_pool pool(&memory);
    void* const a = pool.allocate(10 * mib, 64);
    void* const b = pool.allocate(20 * mib, 64);
    pool.deallocate(a, 10 * mib, 64);
    pool.deallocate(b, 20 * mib, 64);
    EXPECT_EQ(memory.live_bytes(), 30 * mib) << "all of it is kept";
    use(pool, 3 * mib);
    EXPECT_EQ(memory.live_bytes(), 23 * mib) << "the oldest goes";
    EXPECT_EQ(use(pool, 20 * mib), b);
    EXPECT_THROW(static_cast<void>(pool.allocate(std::size_t{1} << 58, 64)), std::bad_alloc);
    EXPECT_EQ(memory.live_bytes(), 0u) << "nothing is kept while there is no memory";
    use(pool, 25 * mib);
    use(pool, 60 * mib);
    EXPECT_EQ(memory.live_bytes(), 60 * mib) << "what was in use is counted, not what was asked for in vain";
    EXPECT_EQ(memory.most_bytes(), 60 * mib) << "what does not fit goes before there is more";
    void* const c = pool.allocate(8 * mib, 64);
    EXPECT_EQ(memory.live_bytes(), 8 * mib) << "also for a little more";
    void* const d = pool.allocate(50 * mib, 64);
    pool.deallocate(d, 50 * mib, 64);
    EXPECT_EQ(memory.live_bytes(), 58 * mib) << "both were in use";
    pool.deallocate(c, 8 * mib, 64);
    EXPECT_EQ(memory.most_bytes(), 60 * mib);
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
  EXPECT_EQ(memory.wrong_returns(), 0u);
}

/// Has so many bytes and no more.
class little_memory : public std::pmr::memory_resource {
 public:
  explicit little_memory(std::size_t bytes) : left_(bytes) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (bytes > left_) throw std::bad_alloc();
    left_ -= bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    left_ += bytes;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::size_t left_;
};

TEST(place, host_memory_pool_gives_back_before_it_says_that_there_is_no_memory) {
  little_memory memory(50 * mib);
  roost::host_memory_pool pool(&memory);
  use(pool, 10 * mib);
  use(pool, 45 * mib);
  void* const held = pool.allocate(30 * mib, 64);
  EXPECT_THROW(static_cast<void>(pool.allocate(30 * mib, 64)), std::bad_alloc);
  use(pool, 5 * mib);
  pool.deallocate(held, 30 * mib, 64);
  use(pool, 50 * mib);
  const roost::host poor(1, &pool);
  expect_error<roost::out_of_memory>([&] { roost::array<char, roost::host>(poor, 51 * mib); },
                                     {"53477376 bytes"});
  EXPECT_EQ((roost::array<char, roost::host>(poor, 50 * mib).size()), 50 * mib);
}

TEST(place, host_memory_pool_is_used_by_several_threads) {
  watched_memory memory;
  {
    roost::host_memory_pool pool(&memory);
    std::vector<std::thread> threads;
    for (int t = 1; t <= 4; ++t) {
      threads.emplace_back([&pool, t] {
        for (std::size_t i = 0; i < 100; ++i) {
          const std::size_t bytes = (2 + (i * static_cast<std::size_t>(t)) % 5) * mib;
          auto* const mine = static_cast<char*>(pool.allocate(bytes, 64));
          mine[0] = mine[bytes - 1] = static_cast<char>(t);
          std::this_thread::yield();
          EXPECT_EQ(mine[0] + mine[bytes - 1], 2 * t) << "another thread has the same piece";
          pool.deallocate(mine, bytes, 64);
          if (i % 40 == 39) pool.trim();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_LE(memory.live_bytes(), 4 * 15 * mib)
        << "four pieces in use, each of at most two and a half times 6 MiB";
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
  EXPECT_EQ(memory.wrong_returns(), 0u);
}
#else
TEST(place, a_pool_that_was_refused_memory_keeps_none_of_what_is_freed) {
  constexpr std::size_t much = std::size_t{1} << 30, too_much = std::size_t{1} << 45;
  const roost::cuda gpu(test_stream());
  const roost::device_memory_pool& pool = roost::device_memory_pool::of(gpu.device());
  const auto call = [&](std::size_t bytes) {
    const roost::array<char, roost::cuda> scratch(gpu, much), more(gpu, bytes);
  };
  call(1);
  gpu.synchronize();
  EXPECT_GE(pool.kept(), much);
  EXPECT_THROW(call(too_much), roost::out_of_memory);
  EXPECT_LT(pool.kept(), much);
  call(1);
  gpu.synchronize();
  EXPECT_GE(pool.kept(), much);
}
#endif

TEST(place, errors) {
  expect_error<roost::out_of_memory>([] { roost::array<u64, place_type>(test_place(), ~std::size_t{0} / 8); },
                                     {"bytes"});
  expect_error<roost::out_of_memory>(
      [] { roost::array<u64, place_type>(test_place(), std::size_t{1} << 58); }, {"bytes"});
  watched_memory memory;
  memory.refuse_after(0);
  const place_type place = make_place(memory);
  EXPECT_THROW((roost::array<u64, place_type>(place, 10)), roost::out_of_memory);
#if defined(__CUDACC__)
  expect_error<roost::out_of_memory>(
      [] { roost::array<char, roost::cuda>(roost::cuda(test_stream()), std::size_t{1} << 45); },
      {"35184372088832 bytes", "free", "fewer keys"});
#else
  expect_error<roost::out_of_memory>([&] { roost::array<u64, roost::host>(place, 10); },
                                     {"80 bytes", "fewer keys"});
  expect_error<roost::invalid_argument>([] { roost::host(-1); }, {"roost::host", "-1", "1 or more"});
  if (!sanitized) {  // sanitizers end a process that asks for so much
    expect_error<roost::out_of_memory>(
        [] { roost::array<char, roost::host>(roost::host(1), std::size_t{1} << 60); },
        {"bytes", "fewer keys"});
  }
#endif
}

}  // namespace
}  // namespace test
