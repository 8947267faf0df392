// One table of several processes, which exchange bytes through sockets here; with MPI
// or NCCL they may be on several machines. Each process has the visits of one server,
// and looks up those of all servers.
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <roost/roost.hpp>
#include <roost/shards/rank.hpp>
#include <roost/shards/sharded_join.hpp>
#include <roost/shards/sharded_map.hpp>
#include <thread>
#include <vector>

/// Tells roost how to exchange bytes: here with a socket to each other process.
class sockets : public roost::communicator {
 public:
  sockets(std::uint32_t rank, std::vector<int> to) : rank_(rank), to_(std::move(to)) {
    const timeval deadline{120, 0};  // for a process that hangs
    for (const int socket : to_) {
      for (const int way : {SO_RCVTIMEO, SO_SNDTIMEO})
        setsockopt(socket, SOL_SOCKET, way, &deadline, sizeof(deadline));
    }
  }

  std::uint32_t rank() const override { return rank_; }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(to_.size()); }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    std::vector<std::span<const std::byte>> out(size(), mine);
    std::vector<std::span<std::byte>> in;
    for (std::size_t r = 0; r < size(); ++r)
      in.push_back(all.subspan(r * mine.size(), mine.size()));
    std::copy(mine.begin(), mine.end(), in[rank_].begin());
    exchange(out, in);
  }

  void exchange(std::span<const std::span<const std::byte>> out,
                std::span<const std::span<std::byte>> in) override {
    std::uint32_t gone = size();
    {
      // while this thread receives: nobody waits for another one to read first
      std::jthread sends([&] {
        for (std::uint32_t i = 1; i < size(); ++i) send_all((rank_ + i) % size(), out);
      });
      for (std::uint32_t i = 1; i < size(); ++i) {
        const std::uint32_t from = (rank_ + size() - i) % size();
        if (in[from].empty()) continue;
        std::byte head{};
        if (!receive(from, {&head, 1}) || (head == data && !receive(from, in[from]))) {
          gone = from;
        } else if (head != data) {
          gone = static_cast<std::uint32_t>(head);
        }
      }
    }
    if (gone == size()) return;
    // so that all know who it was, not only its neighbours
    const auto head = static_cast<std::byte>(gone);
    for (const int socket : to_) send(socket, &head, 1, MSG_NOSIGNAL);
    abort();
    throw roost::rank_error("rank " + std::to_string(gone) + " is gone", gone);
  }

  /// Others get no more from here, and wait for nothing.
  void abort() noexcept override {
    for (const int socket : to_) shutdown(socket, SHUT_RDWR);
  }

 private:
  // comes before them; or the number of a rank that is gone
  static constexpr std::byte data{0xff};

  void send_all(std::uint32_t r,
                std::span<const std::span<const std::byte>> out) const {
    if (out[r].empty() || send(to_[r], &data, 1, MSG_NOSIGNAL) != 1) return;
    for (std::span<const std::byte> rest = out[r]; !rest.empty();) {
      const ssize_t n = send(to_[r], rest.data(), rest.size(), MSG_NOSIGNAL);
      if (n <= 0) return;  // who is gone sends nothing, either
      rest = rest.subspan(static_cast<std::size_t>(n));
    }
  }
  bool receive(std::uint32_t from, std::span<std::byte> rest) const {
    while (!rest.empty()) {
      const ssize_t n = recv(to_[from], rest.data(), rest.size(), 0);
      if (n <= 0) return false;
      rest = rest.subspan(static_cast<std::size_t>(n));
    }
    return true;
  }

  std::uint32_t rank_;
  std::vector<int> to_;
};

/// What each process does.
bool run(roost::communicator& others) {
  const roost::rank all(others, roost::host(1));
  std::vector<std::uint32_t> visitors, visits;
  for (std::uint32_t i = 0; i < 100000; ++i) {
    visitors.push_back((i * all.number() + i) % 30011);
    visits.push_back(1);
  }
  // Sums of keys that this process has.
  const auto sums = roost::group_by(all, visitors, visits, roost::plus());
  const roost::sharded_map map(all, sums.keys, sums.values);
  const std::vector<std::uint32_t> queries{7, 8, 30010, 99999};
  std::vector<std::uint32_t> answers(queries.size());
  map.find(all, queries, answers, 0);  // each query goes to the owner of its key

  std::uint32_t expected[4] = {};
  for (std::uint32_t server = 0; server < all.size(); ++server) {
    for (std::uint32_t i = 0; i < 100000; ++i) {
      for (std::size_t q = 0; q < 4; ++q)
        expected[q] += (i * server + i) % 30011 == queries[q];
    }
  }
  std::printf("process %u of %zu has %zu of %zu visitors\n", all.number(), all.size(),
              map.shard(0).size(), map.size());
  return std::equal(answers.begin(), answers.end(), expected);
}

int main() {
  constexpr std::uint32_t processes = 3;
  std::vector sockets_of(processes, std::vector<int>(processes, -1));
  for (std::uint32_t a = 0; a < processes; ++a) {
    for (std::uint32_t b = a + 1; b < processes; ++b) {
      int both[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0) return 1;
      sockets_of[a][b] = both[0], sockets_of[b][a] = both[1];
    }
  }
  for (std::uint32_t rank = 0; rank < processes; ++rank) {
    if (fork() != 0) continue;
    for (std::uint32_t r = 0; r < processes; ++r) {
      for (const int other : sockets_of[r]) {
        // so that it closes when its process ends
        if (r != rank && other >= 0) close(other);
      }
    }
    sockets mine(rank, sockets_of[rank]);
    try {
      const bool good = run(mine);
      std::fflush(stdout);
      _exit(good ? 0 : 1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "process %u: %s\n", rank, error.what());
      _exit(1);
    }
  }
  for (const auto& some : sockets_of) {
    for (const int socket : some) close(socket);
  }
  bool right = true;
  for (std::uint32_t rank = 0; rank < processes; ++rank) {
    int status = 0;
    wait(&status);
    right = right && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  std::puts(right ? "processes: right" : "processes: wrong answers");
  return right ? 0 : 1;
}
