#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "support/out_of_core.hpp"

// Rows that wait in a file, since the host may have no memory for them.

namespace test {
namespace {

namespace fs = std::filesystem;

/// A folder for files, which must be empty whenever anybody looks.
class spill_folder {
 public:
  spill_folder() {
    std::string name = (fs::temp_directory_path() / "roost-test-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~spill_folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// The files without names that this process has open in a folder, as names that can be opened.
std::vector<std::string> open_files(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto target = fs::read_symlink(entry.path(), gone).string();
    if (!gone && target.starts_with(folder.string() + "/")) found.push_back(entry.path().string());
  }
  return found;
}

std::size_t bytes_of_files(const fs::path& folder) {
  std::size_t bytes = 0;
  for (const auto& file : open_files(folder)) bytes += fs::file_size(file);
  return bytes;
}

roost::out_of_core_limits spilling(const spill_folder& folder, int streams, std::size_t host_bytes = 0,
                                   std::size_t pinned_bytes = 64 << 10) {
  return {
      .device_bytes = static_cast<std::size_t>(streams) * place_out_of_core::device_bytes_least(test_place()),
      .pinned_bytes = pinned_bytes,
      .streams = streams,
      .progress = {},
      .spill_folder = folder.path(),
      .host_bytes = host_bytes};
}
place_out_of_core in_memory() {
  return place_out_of_core(roost::host(2), test_place(), {.device_bytes = std::size_t{1} << 30});
}

/// So many that no side is read once.
columns<u64> many_rows() { return columns_of(different_numbers(600000, 1), different_numbers(600000, 1)); }

// All calls spill with one of the limits() of the other tests.
TEST(out_of_core_spill, goes_to_a_file_without_a_name) {
  const spill_folder folder;
  const auto all = many_rows();
  const auto expected = roost::inner_join(in_memory(), all.left, all.right);
  for (const int streams : {1, 3}) {
    for (const std::size_t host_bytes : {std::size_t{0}, std::size_t{2} << 20}) {
      std::size_t most = 0;
      auto limits = spilling(folder, streams, host_bytes);
      limits.progress = [&](std::size_t, std::size_t) {
        EXPECT_TRUE(fs::is_empty(folder.path()));
        most = std::max(most, bytes_of_files(folder.path()));
      };
      const auto found =
          roost::inner_join(place_out_of_core(roost::host(2), test_place(), limits), all.left, all.right);
      EXPECT_TRUE(bits_of(found.left, found.right) == bits_of(expected.left, expected.right));
      const std::size_t waits = 2 * all.left.size() * 12;  // keys and row numbers
      EXPECT_LE(most, waits - host_bytes);
      EXPECT_GE(most, waits - host_bytes - (std::size_t{1} << 20));
      EXPECT_EQ(open_files(folder.path()).size(), 0u);
    }
  }
}

#if !defined(__CUDACC__)  // there watched_memory is that of a device
TEST(out_of_core_spill, keeps_no_more_than_the_host_bytes) {
  const spill_folder folder;
  auto all = many_rows();
  for (u64& key : all.right) key = ~key;  // without matches, so that little is kept but what waits
  const auto run = [&](std::size_t host_bytes) {
    watched_memory of_host;
    const place_out_of_core place(roost::host(2, &of_host), test_place(), spilling(folder, 2, host_bytes));
    EXPECT_EQ(roost::semi_join(place, all.left, all.right).size(), 0u);
    return of_host.most_bytes();
  };
  const std::size_t few = run(0);
  for (const std::size_t host_bytes : {std::size_t{2} << 20, std::size_t{4} << 20}) {
    const std::size_t more = run(host_bytes);
    EXPECT_LE(more, few + host_bytes);
    EXPECT_GE(more, host_bytes);
  }
  EXPECT_LT(few, std::size_t{2} << 20);
}
#endif

TEST(out_of_core_spill, finds_every_changed_page) {
  const spill_folder folder;
  const auto all = many_rows();
  for (const int streams : {1, 3}) {
    for (const u64 seed : {1, 2, 3}) {
      if (sanitized && seed != 3) continue;
      bool changed = false;
      auto limits = spilling(folder, streams);
      limits.progress = [&](std::size_t done, std::size_t of) {
        if (changed || 5 * done < 2 * of) return;
        for (const auto& file : open_files(folder.path())) {
          const roost::detail::descriptor opened(::open(file.c_str(), O_RDWR));
          const std::size_t bytes = fs::file_size(file);
          if (bytes < (std::size_t{1} << 20)) continue;
          const auto at = static_cast<off_t>(random_numbers(1, seed, bytes / 2)[0]);
          char byte = 0;
          ASSERT_EQ(::pread(opened.get(), &byte, 1, at), 1);
          byte = static_cast<char>(byte ^ (1 << seed));
          ASSERT_EQ(::pwrite(opened.get(), &byte, 1, at), 1);
          changed = true;
        }
      };
      const place_out_of_core place(roost::host(2), test_place(), limits);
      expect_error<roost::file_error>([&] { roost::inner_join(place, all.left, all.right); },
                                      {folder.path().string(), "has changed", "at byte"});
      EXPECT_TRUE(changed);
      EXPECT_EQ(open_files(folder.path()).size(), 0u);
      EXPECT_EQ(roost::inner_join(place, all.left, all.right).size(), all.left.size());
    }
  }
}

TEST(out_of_core_spill, ends_where_the_disk_is_full) {
  const spill_folder folder;
  const auto all = many_rows();
  struct rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  for (const int streams : {1, 3}) {
    watched_device device;
    const place_out_of_core place(roost::host(2), device.place, spilling(folder, streams));
    for (const rlim_t bytes : {rlim_t{0}, rlim_t{1} << 20, rlim_t{5} << 20}) {
      struct rlimit little = old;
      little.rlim_cur = bytes;
      ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
      expect_error<roost::file_error>([&] { roost::inner_join(place, all.left, all.right); },
                                      {folder.path().string(), "cannot be written", "make room"});
      expect_error<roost::file_error>([&] { roost::unique(place, all.left); },
                                      {folder.path().string(), "cannot be written", "make room"});
      ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
      EXPECT_EQ(device.memory.live_blocks(), 0u);
      EXPECT_EQ(open_files(folder.path()).size(), 0u);
    }
    EXPECT_EQ(roost::unique(place, all.left).size(), all.left.size());
  }
  signal(SIGXFSZ, handler);
}

TEST(out_of_core_spill, needs_a_folder_that_takes_files) {
  const spill_folder folder;
  for (const fs::path& wrong : {folder.path() / "none", fs::path("/proc"), fs::path("/dev/null")}) {
    auto limits = spilling(folder, 1);
    limits.spill_folder = wrong;
    expect_error<roost::file_error>([&] { place_out_of_core(roost::host(2), test_place(), limits); },
                                    {wrong.string() + ": ", "no file can be made there"});
  }
}

TEST(out_of_core_spill, from_several_threads) {
  const spill_folder folder;
  const auto all = many_rows();
  const auto expected = roost::inner_join(in_memory(), all.left, all.right);
  const place_out_of_core place(roost::host(2), test_place(), spilling(folder, 2));
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const auto found = roost::inner_join(place, all.left, all.right);
      good += bits_of(found.left, found.right) == bits_of(expected.left, expected.right);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 3);
  EXPECT_EQ(open_files(folder.path()).size(), 0u);
}

// Pages of files that are reused by nobody, at any offsets.
TEST(out_of_core_spill, reads_any_bytes) {
  const spill_folder folder;
  const auto file = std::make_shared<roost::detail::spill_file>(folder.path());
  for (const std::size_t n : {std::size_t{1}, std::size_t{65535}, std::size_t{65536}, std::size_t{200000}}) {
    std::vector<std::byte> bytes(n), read(n);
    for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(roost::mix64(i + n));
    roost::detail::spilled_bytes spilled(file, n);
    spilled.write(bytes.data(), 0, n);
    for (const u64 seed : {1, 2, 3, 4, 5, 6, 7, 8}) {
      const auto random = random_numbers(2, seed);
      const std::size_t first = random[0] % n, some = 1 + random[1] % (n - first);
      spilled.read(read.data(), first, some);
      ASSERT_TRUE(std::equal(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(some),
                             bytes.begin() + static_cast<std::ptrdiff_t>(first)));
    }
    spilled.read(read.data(), 0, n);
    EXPECT_TRUE(read == bytes);
  }
}

}  // namespace
}  // namespace test
