#pragma once

// Bodies of roost/cuda.hpp.

#include "roost/cuda.hpp"

namespace roost {

namespace detail {

/// A pointer to integers as CUB takes them: it sorts neither bool nor char16_t, and nvcc 13.0 compiles no
/// kernels that take pointers to char8_t. Other pointers stay what they are.
template <class T>
auto* for_cub(T* first) {
  using plain = std::remove_const_t<T>;
  if constexpr (is_integer<plain>) {
    using bits = unsigned_of<plain>;
    using word = std::conditional_t<std::is_signed_v<plain>, std::make_signed_t<bits>, bits>;
    return reinterpret_cast<std::conditional_t<std::is_const_v<T>, const word, word>*>(first);
  } else {
    return first;
  }
}

inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // so that the next call does not report this failure again
  detail::raise<device_error>({std::string("roost::cuda: "), call, " failed: ", cudaGetErrorString(status),
                               " (", cudaGetErrorName(status), ")"});
}

/// Makes a device current while it lives.
class device_guard {
 public:
  explicit device_guard(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != device) check(cudaSetDevice(device), "cudaSetDevice");
    changed_ = before_ != device;
  }
  ~device_guard() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// Memory of a place for the duration of one call.
template <class Place>
class scratch_block {
 public:
  scratch_block(const Place& place, std::size_t bytes)
      : place_(place), bytes_(bytes), memory_(place.allocate(bytes)) {}
  ~scratch_block() { place_.deallocate(memory_, bytes_); }
  scratch_block(const scratch_block&) = delete;
  scratch_block& operator=(const scratch_block&) = delete;
  void* get() const { return memory_; }

 private:
  const Place& place_;
  std::size_t bytes_;
  void* memory_;
};

/// How a call reports: a kernel writes a few bytes of pinned memory, and then a mark that the host polls (the
/// copy engine takes up to 8 us longer, and the host sees a kernel's end 2 us after its last write). It
/// counts in words of the device, which are 0 before and after. All are kept for the next call. Null if more
/// bytes are wanted, or there is no such memory.
class pinned_word {
 public:
  static constexpr std::size_t bytes_most = 64;

  pinned_word(int device, std::size_t bytes) : all_(device_memory_pool::of(device).words_) {
    if (bytes == 0 || bytes > bytes_most) return;
    const std::lock_guard hold(all_.lock);
    if (all_.free.empty()) more();
    if (all_.free.empty()) return;
    mine_ = all_.free.back();
    all_.free.pop_back();
    __atomic_store_n(mark(), 0, __ATOMIC_RELAXED);
  }
  ~pinned_word() {
    if (mine_.pinned == nullptr) return;
    const std::lock_guard hold(all_.lock);
    all_.free.push_back(mine_);
  }
  pinned_word(const pinned_word&) = delete;
  pinned_word& operator=(const pinned_word&) = delete;

  void* get() const { return mine_.pinned; }
  std::uint64_t* counts() const { return mine_.counts; }
  std::uint32_t* mark() const { return reinterpret_cast<std::uint32_t*>(mine_.pinned + bytes_most); }
  bool is_marked() const { return __atomic_load_n(mark(), __ATOMIC_ACQUIRE) != 0; }

  /// Called after launches that did not report. If this fails, too, the word is not used again.
  void clear(cudaStream_t stream) noexcept {
    if (cudaMemsetAsync(mine_.counts, 0, bytes_most, stream) != cudaSuccess ||
        cudaStreamSynchronize(stream) != cudaSuccess)
      mine_.pinned = nullptr;
  }

 private:
  void more() {
    constexpr std::size_t at_once = 64, step = 2 * bytes_most;
    all_.free.reserve(all_.count + at_once);                    // so that none is lost in the destructor
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // other threads may be capturing graphs
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
    void *pinned = nullptr, *counts = nullptr;
    cudaStream_t own = nullptr;  // that of the call may be capturing, too
    if (cudaHostAlloc(&pinned, at_once * step, cudaHostAllocPortable) == cudaSuccess &&
        cudaMalloc(&counts, at_once * bytes_most) == cudaSuccess &&
        cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) == cudaSuccess &&
        cudaMemsetAsync(counts, 0, at_once * bytes_most, own) == cudaSuccess &&
        cudaStreamSynchronize(own) == cudaSuccess) {
      for (std::size_t i = 0; i < at_once; ++i)
        all_.free.push_back({static_cast<std::byte*>(pinned) + i * step,
                             static_cast<std::uint64_t*>(counts) + i * bytes_most / 8});
      all_.count += at_once;
    } else {
      static_cast<void>(cudaGetLastError());
    }
    if (own != nullptr) static_cast<void>(cudaStreamDestroy(own));
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
  }

  report_words& all_;
  report_words::word mine_{};
};

/// How a launch tells the host what it has counted: its last block writes that to pinned memory. Null: the
/// host does not wait.
struct cuda_report {
  static constexpr int words_most = 7;

  std::uint64_t* counts = nullptr;  // of the device, words_most of them, and a ticket: 0 before and after
  std::uint64_t* keep = nullptr;    // of the device: another copy, of keep_words words; or null
  std::uint32_t keep_words = 0;
  std::uint64_t* target = nullptr;  // pinned
  std::uint32_t* mark = nullptr;

  /// Called by all threads of all blocks at their end.
  ROOST_FN void tell() const {
#if ROOST_ON_DEVICE
    if (counts == nullptr) return;
    __syncthreads();
    bool last = false;
    if (threadIdx.x == 0) {
      __threadfence();
      last = atomicInc(reinterpret_cast<unsigned*>(counts + words_most), gridDim.x - 1) == gridDim.x - 1;
      __threadfence();
    }
    if (!__syncthreads_or(last) || threadIdx.x >= words_most) return;
    const std::uint64_t word = peek(counts[threadIdx.x]);  // one for each thread, to save registers
    counts[threadIdx.x] = 0;
    target[threadIdx.x] = word;
    if (threadIdx.x < keep_words) keep[threadIdx.x] = word;
    __syncwarp((1u << words_most) - 1);
    if (threadIdx.x != 0) return;
    __threadfence_system();
    *static_cast<volatile std::uint32_t*>(mark) = 1;
#endif
  }
};

template <class Report>
__global__ void tell_kernel(const Report report) {
  report.tell();
}

template <int Threads>
__global__ void copy_bytes_kernel(std::byte* target, const std::byte* source, std::size_t bytes,
                                  std::uint32_t* mark) {
  if (threadIdx.x < bytes) target[threadIdx.x] = source[threadIdx.x];
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system();
  *static_cast<volatile std::uint32_t*>(mark) = 1;
}

template <class F>
__global__ void for_each_kernel(std::size_t n, const F f) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}

/// `report`: none, or one cuda_report.
template <class Kernel, class... Report>
__global__ void __launch_bounds__(Kernel::threads, teams_at_once<Kernel>)
    team_kernel(const Kernel kernel, const Report... report) {
  extern __shared__ __align__(alignment_most) std::byte shared[];
  kernel(block_team<Kernel::threads>{}, std::size_t{blockIdx.x}, shared);
  (report.tell(), ...);
}

/// Blocks per multiprocessor of a launch in turn.
inline constexpr int in_turn_blocks = 2;

/// Whether a kernel's scratch memory may be more than shared memory holds, for large keys and values or on
/// small devices: then it is compiled for both kinds of memory.
template <class Kernel>
constexpr bool has_large_scratch = [] {
  if constexpr (requires { Kernel::large_scratch; }) {
    return Kernel::large_scratch;
  } else {
    return false;
  }
}();

/// For scratch that shared memory cannot hold: fewer blocks, each with its own piece of device memory, share
/// the teams' work.
template <class Kernel, class... Report>
__global__ void __launch_bounds__(Kernel::threads)
    wide_team_kernel(const Kernel kernel, std::size_t teams, std::byte* scratch, std::size_t scratch_bytes,
                     const Report... report) {
  for (std::size_t i = blockIdx.x; i < teams; i += gridDim.x) {
    kernel(block_team<Kernel::threads>{}, i, scratch + blockIdx.x * scratch_bytes);
    __syncthreads();
  }
  (report.tell(), ...);
}

/// Runs stages in turn: blocks share the teams of a stage, and wait for each other before the next stage.
template <int Threads, class... Kernels>
__global__ void __launch_bounds__(Threads, in_turn_blocks)
    stages_kernel(std::uint32_t* barrier, const cuda_report report, const stage<Kernels>... stages) {
#if ROOST_ON_DEVICE
  extern __shared__ __align__(alignment_most) std::byte shared[];
  const block_team<Threads> team;
  bool behind = false;  // some stage ran since the last wait
  const auto run = [&](const auto& mine) {
    if (behind) wait_for_all_blocks(barrier);
    behind = mine.needed();
    if (!behind) return;
    for (std::size_t i = blockIdx.x; i < mine.teams; i += gridDim.x) {
      mine.kernel(team, i, shared);
      __syncthreads();
    }
  };
  (run(stages), ...);
  report.tell();
#endif
}

/// Adds up f(i) for i in [0, n): each worker takes every `stride`-th.
template <class F>
struct sum_numbers {
  static constexpr int threads = 256;

  std::size_t n, stride;
  F f;
  std::uint64_t* total;

  template <class Team>
  ROOST_FN void operator()(const Team& team, std::size_t index, std::byte*) const {
    std::uint64_t sum = 0;
    for (std::size_t i = index * threads + static_cast<std::size_t>(team.rank()); i < n; i += stride)
      sum += f(i);
#if ROOST_ON_DEVICE
    sum = scan_warp(sum);
    if (threadIdx.x % 32 == 31 && sum != 0) fetch_add(*total, sum);
#else
    *total += sum;
#endif
  }
};

/// target[i] = source[0] + ... + source[i - 1], in one pass: each block gets the sum of all earlier tiles by
/// look-back, if there are several blocks.
template <int Threads>
__global__ void __launch_bounds__(Threads) scan_kernel(const std::uint64_t* source, std::uint64_t* target,
                                                       std::size_t n, const earlier_teams tiles) {
#if ROOST_ON_DEVICE
  constexpr int rows = 8, warps = Threads / 32;  // of 64 numbers, two for a lane
  __shared__ std::uint64_t of_warp[warps], shared;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const block_team<Threads> team;
  const bool alone = gridDim.x == 1;
  const std::uint64_t tile = alone ? 0 : tiles.turn(team, &shared);
  const std::size_t first = ((tile * warps + static_cast<std::size_t>(warp)) * 32 * rows + lane) * 2;
  std::uint64_t even[rows], odd[rows], of_mine = 0;
  ROOST_UNROLL
  for (int r = 0; r < rows; ++r) {
    const std::size_t i = first + r * 64;
    even[r] = i < n ? source[i] : 0;
    odd[r] = i + 1 < n ? source[i + 1] : 0;
  }
  ROOST_UNROLL
  for (int r = 0; r < rows; ++r) {
    const std::uint64_t both = even[r] + odd[r], up_to_me = scan_warp(both);
    odd[r] = even[r];
    even[r] = of_mine + up_to_me - both;
    odd[r] += even[r];
    of_mine += __shfl_sync(~0u, up_to_me, 31);
  }
  if (lane == 0) of_warp[warp] = of_mine;
  __syncthreads();
  std::uint64_t of_tile = 0;
  ROOST_UNROLL
  for (int w = 0; w < warps; ++w) of_tile += of_warp[w];
  std::uint64_t before = alone ? 0 : tiles.sum_before(team, tile, of_tile, &shared);
  for (int w = 0; w < warp; ++w) before += of_warp[w];
  ROOST_UNROLL
  for (int r = 0; r < rows; ++r) {
    const std::size_t i = first + r * 64;
    if (i < n) target[i] = before + even[r];
    if (i + 1 < n) target[i + 1] = before + odd[r];
  }
#endif
}

}  // namespace detail

inline int cuda_devices() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  return count;
}

inline device_memory_pool::device_memory_pool(int device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  detail::check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
  std::uint64_t keep_everything = ~std::uint64_t{0};
  detail::check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_everything),
                "cudaMemPoolSetAttribute");
}

inline device_memory_pool& device_memory_pool::of(int device) {
  // Never destroyed: tables of the user may live as long as the process.
  static auto& lock = *new std::mutex;
  static auto& pools = *new std::vector<device_memory_pool*>;
  const std::lock_guard hold(lock);
  const auto number = static_cast<std::size_t>(device);
  if (pools.size() <= number) pools.resize(number + 1);
  if (pools[number] == nullptr) pools[number] = new device_memory_pool(device);
  return *pools[number];
}

inline void* device_memory_pool::allocate(std::size_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  is_short_ = false;
  if (cudaMallocFromPoolAsync(&memory, bytes, pool_, stream) == cudaSuccess) return memory;
  static_cast<void>(cudaGetLastError());
  // Memory that the pool keeps may be what this allocation lacks.
  static_cast<void>(cudaStreamSynchronize(stream));
  trim();
  const cudaError_t status = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream);
  if (status == cudaSuccess) return memory;
  static_cast<void>(cudaGetLastError());
  if (status != cudaErrorMemoryAllocation) detail::check(status, "cudaMallocFromPoolAsync");
  is_short_ = true;
  std::size_t free = 0, total = 0;
  static_cast<void>(cudaMemGetInfo(&free, &total));
  detail::raise<out_of_memory>({"roost::cuda: no memory for ", bytes, " bytes; ", free, " of ", total,
                                " bytes of the device are free; use fewer keys or a higher load factor"});
}

inline void device_memory_pool::deallocate(void* memory, std::size_t, cudaStream_t stream) noexcept {
  static_cast<void>(cudaFreeAsync(memory, stream));  // fails harmlessly if CUDA is already shutting down
  if (is_short_ && cudaStreamSynchronize(stream) == cudaSuccess)
    static_cast<void>(cudaMemPoolTrimTo(pool_, 0));
}

inline std::size_t device_memory_pool::kept() const {
  std::uint64_t taken = 0, used = 0;
  detail::check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &taken),
                "cudaMemPoolGetAttribute");
  detail::check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used),
                "cudaMemPoolGetAttribute");
  return taken - detail::smaller(taken, used);
}

inline void device_memory_pool::trim() { detail::check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo"); }

inline void device_memory_pool::share_with(int device) {
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = device;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  detail::check(cudaMemPoolSetAccess(pool_, &access, 1), "cudaMemPoolSetAccess");
}

inline cuda::cuda(cudaStream_t stream, device_memory_resource* memory) : stream_(stream), memory_(memory) {
  if (!cuda_available()) {
    detail::raise<device_error>(
        {"roost::cuda: no CUDA device can be used here; use roost::host, or check the driver with "
         "nvidia-smi"});
  }
  detail::check(cudaGetDevice(&device_), "cudaGetDevice");
  int shared = 0;
  detail::check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_),
                "cudaDeviceGetAttribute");
  detail::check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device_),
                "cudaDeviceGetAttribute");
  shared_bytes_ = static_cast<std::size_t>(shared);
  if (memory_ == nullptr) memory_ = &device_memory_pool::of(device_);
}

inline void cuda::synchronize() const {
  detail::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

inline void cuda::copy(void* target, const void* source, std::size_t bytes) const {
  if (bytes == 0) return;
  detail::check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
}

inline void cuda::copy_from_host(void* target, const void* source, std::size_t bytes) const {
  if (bytes == 0) return;
  detail::check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, stream_),
                "cudaMemcpyAsync to the device");
}

inline void cuda::copy_to_host(void* target, const void* source, std::size_t bytes) const {
  if (bytes == 0) return synchronize();
  const detail::pinned_word word(device_, bytes);
  if (word.get() != nullptr) {
    copy_to_word(word, source, bytes);
    wait_for(word);
    std::memcpy(target, word.get(), bytes);
  } else {
    detail::check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToHost, stream_),
                  "cudaMemcpyAsync to the host");
    synchronize();
  }
}

inline void cuda::copy_to_word(const detail::pinned_word& word, const void* source, std::size_t bytes) const {
  void *target = word.get(), *mark = word.mark();
  void* arguments[] = {&target, &source, &bytes, &mark};
  constexpr int threads = detail::pinned_word::bytes_most;
  start(reinterpret_cast<const void*>(&detail::copy_bytes_kernel<threads>), {1, threads}, arguments,
        "launch of a copy to the host");
}

inline void cuda::wait_for(const detail::pinned_word& word) const {
  using clock = std::chrono::steady_clock;
  // For longer calls 2 us do not matter. They often use much scratch memory, which the pool can reuse sooner
  // once the driver has seen the stream idle: this saves 0.1 ms of an insert of 2^24 pairs.
  const auto enough = clock::now() + std::chrono::microseconds(25);
  do {
    for (int i = 0; i < 16; ++i) {
      if (word.is_marked()) return;
    }
  } while (clock::now() < enough);
  synchronize();
}

template <class Counts, class Launch>
Counts cuda::count(const Launch& launch, Counts* keep) const {
  using words = std::uint64_t;
  static_assert(sizeof(Counts) % sizeof(words) == 0 && sizeof(Counts) <= detail::cuda_report::words_most * 8);
  detail::pinned_word word(device_, sizeof(Counts));
  if (word.get() == nullptr)
    detail::raise<out_of_memory>({"roost::cuda: no memory for the counts of a call; use fewer keys"});
  try {
    launch(reinterpret_cast<Counts*>(word.counts()),
           report{word.counts(), reinterpret_cast<words*>(keep),
                  keep == nullptr ? 0 : static_cast<std::uint32_t>(sizeof(Counts) / sizeof(words)),
                  static_cast<words*>(word.get()), word.mark()});
    wait_for(word);
  } catch (...) {
    word.clear(stream_);
    throw;
  }
  Counts sum;
  std::memcpy(&sum, word.get(), sizeof(sum));
  return sum;
}

inline void cuda::tell(report to) const {
  if (to.counts == nullptr) return;
  void* arguments[] = {&to};
  start(reinterpret_cast<const void*>(&detail::tell_kernel<report>), {1, 32}, arguments,
        "launch of a report");
}

inline void cuda::fill(void* memory, int byte, std::size_t bytes) const {
  if (bytes == 0) return;
  detail::check(cudaMemsetAsync(memory, byte, bytes, stream_), "cudaMemsetAsync");
}

/// Every launch goes through here, whatever the kernel, so this is compiled once.
inline void cuda::start(const void* kernel, const grid& grid, void** arguments, const char* what) const {
  const detail::device_guard guard(device_);
  constexpr std::size_t without_asking = 44 << 10;  // of the 48 KiB that every kernel may use, 4 for its own
  if (grid.shared_bytes > without_asking) {
    // The limit belongs to the kernel, not to the launch: were it this launch's, another thread's smaller one
    // could lower it in between.
    detail::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(scratch_most())),
                  "cudaFuncSetAttribute");
  }
  const dim3 blocks(static_cast<unsigned>(grid.blocks)), threads(static_cast<unsigned>(grid.threads));
  const std::size_t bytes = grid.shared_bytes;
  detail::check(grid.waits ? cudaLaunchCooperativeKernel(kernel, blocks, threads, arguments, bytes, stream_)
                           : cudaLaunchKernel(kernel, blocks, threads, arguments, bytes, stream_),
                what);
}

template <class... Kernels>
void cuda::launch_in_turn(std::uint32_t* barrier, const report& to,
                          const detail::stage<Kernels>&... stages) const {
  constexpr int threads = std::max({Kernels::threads...});
  const std::size_t teams = std::max({stages.teams...});
  const std::size_t shared = std::max({detail::scratch_bytes_of(stages.kernel)...});
  const std::size_t at_once = shared * detail::in_turn_blocks <= shared_bytes_ ? detail::in_turn_blocks : 1;
  if (teams == 0) return;
  void* arguments[] = {&barrier, const_cast<report*>(&to), const_cast<detail::stage<Kernels>*>(&stages)...};
  const grid all{
      .blocks = detail::smaller<std::size_t>(teams, static_cast<std::size_t>(processors_) * at_once),
      .threads = threads,
      .shared_bytes = shared,
      .waits = true};
  start(reinterpret_cast<const void*>(&detail::stages_kernel<threads, Kernels...>), all, arguments,
        "launch of kernels in turn");
}

template <class F>
void cuda::for_each(std::size_t n, const F& f) const {
  if (n == 0) return;
  constexpr int threads = 256;
  void* arguments[] = {&n, const_cast<F*>(&f)};
  start(reinterpret_cast<const void*>(&detail::for_each_kernel<F>),
        {detail::ceil_div<std::size_t>(n, threads), threads}, arguments, "launch of for_each");
}

template <class Kernel, class... Report>
void cuda::launch(std::size_t teams, std::size_t scratch_bytes, const Kernel& kernel,
                  const Report&... report) const {
  if (teams == 0) return;
  if ((... || (report.counts != nullptr && teams > static_cast<std::size_t>(processors_) * 8))) {
    launch(teams, scratch_bytes, kernel, Report()...);  // a report would cost each of these blocks 1 us
    return (tell(report), ...);
  }
  constexpr const char* what = "launch of a team kernel";
  auto* const self = const_cast<Kernel*>(&kernel);
  if (scratch_bytes + static_shared_bytes <= shared_bytes_) {
    void* arguments[] = {self, const_cast<Report*>(&report)...};
    start(reinterpret_cast<const void*>(&detail::team_kernel<Kernel, Report...>),
          {teams, Kernel::threads, scratch_bytes}, arguments, what);
  } else if constexpr (detail::has_large_scratch<Kernel>) {
    std::size_t bytes = (scratch_bytes + 255) / 256 * 256;
    const std::size_t blocks = detail::smaller<std::size_t>(teams, static_cast<std::size_t>(processors_) * 2);
    const detail::scratch_block scratch(*this, blocks * bytes);
    fill(scratch.get(), 0, blocks * bytes);  // a team may copy slots that it has not filled yet
    auto* memory = static_cast<std::byte*>(scratch.get());
    void* arguments[] = {self, &teams, &memory, &bytes, const_cast<Report*>(&report)...};
    start(reinterpret_cast<const void*>(&detail::wide_team_kernel<Kernel, Report...>),
          {blocks, Kernel::threads}, arguments, what);
  } else {
    detail::raise<device_error>({"roost::cuda: a kernel needs ", scratch_bytes,
                                 " bytes of shared memory, and a block of this device has ", shared_bytes_,
                                 "; use smaller keys and values"});
  }
}

inline void cuda::exclusive_scan(const std::uint64_t* source, std::uint64_t* target, std::size_t n) const {
  if (n == 0) return;
  constexpr int threads = 256;
  const std::size_t tiles = detail::ceil_div<std::size_t>(n, threads * 16);
  std::optional<detail::scratch_block<cuda>> scratch;
  detail::earlier_teams earlier(nullptr);
  if (tiles > 1) {  // a single block needs no look-back
    const std::size_t bytes = detail::earlier_teams::words(tiles) * sizeof(std::uint64_t);
    scratch.emplace(*this, bytes);
    fill(scratch->get(), 0, bytes);
    earlier = detail::earlier_teams(static_cast<std::uint64_t*>(scratch->get()));
  }
  void* arguments[] = {&source, &target, &n, &earlier};
  start(reinterpret_cast<const void*>(&detail::scan_kernel<threads>), {tiles, threads}, arguments,
        "launch of a scan");
}

template <class F>
std::uint64_t cuda::sum(std::size_t n, const F& f) const {
  using kernel = detail::sum_numbers<F>;
  const std::size_t teams = detail::smaller<std::size_t>(detail::ceil_div<std::size_t>(n, kernel::threads),
                                                         static_cast<std::size_t>(processors_) * 8);
  if (n == 0) return 0;
  return count<std::uint64_t>([&](std::uint64_t* total, const detail::cuda_report& report) {
    launch(teams, 0, kernel{n, teams * kernel::threads, f, total}, report);
  });
}

}  // namespace roost
