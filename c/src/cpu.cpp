#include <map>
#include <mutex>

#include "operations.hpp"

// The CPU as a place.

namespace roost::c {
namespace {

std::mutex host_lock;
int host_threads = 0;

}  // namespace

host at_place<host>::get() {
  const std::lock_guard lock(host_lock);
  static auto* const all = new std::map<int, host>;  // by their threads; work may be running in each
  return all->try_emplace(host_threads, host_threads).first->second;
}

void set_threads(int threads) {
  const host checked(threads);
  const std::lock_guard lock(host_lock);
  host_threads = threads;
}

const operations& at_host() {
  static const auto* const all = new on<host>(-1);
  return *all;
}

}  // namespace roost::c
