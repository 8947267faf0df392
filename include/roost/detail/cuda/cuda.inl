// Bodies of roost/cuda.hpp.

namespace roost {

namespace detail {

inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // a failed call must not be found again by the next one
  throw device_error(std::string("roost::cuda: ") + call + " failed: " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) +
                     ")");
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

/// Memory of a place for the length of one call.
template <class Place>
class scratch_block {
 public:
  scratch_block(const Place& place, std::size_t bytes) : place_(place), bytes_(bytes), memory_(place.allocate(bytes)) {}
  ~scratch_block() { place_.deallocate(memory_, bytes_); }
  scratch_block(const scratch_block&) = delete;
  scratch_block& operator=(const scratch_block&) = delete;
  void* get() const { return memory_; }

 private:
  const Place& place_;
  std::size_t bytes_;
  void* memory_;
};

struct add {
  ROOST_FN std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return a + b; }
};

/// A function that is called, not copied to every place that CUB calls it from: the compiler would take minutes.
template <class F>
struct outlined {
  F f;
  ROOST_RARE_FN std::uint64_t operator()(std::size_t i) const { return f(i); }
};

template <class F>
__global__ void for_each_kernel(std::size_t n, const F f) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) f(i);
}

/// How many teams a multiprocessor should run at once, where a kernel says it.
template <class Kernel>
constexpr int teams_at_once = [] {
  if constexpr (requires { Kernel::teams_at_once; }) {
    return Kernel::teams_at_once;
  } else {
    return 1;
  }
}();

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, teams_at_once<Kernel>) team_kernel(const Kernel kernel) {
  extern __shared__ __align__(16) std::byte shared[];
  kernel(block_team<Kernel::threads>{}, std::size_t{blockIdx.x}, shared);
}

/// For scratch that shared memory cannot hold: fewer blocks, each with its own piece of device memory, share the teams' work.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads)
    wide_team_kernel(const Kernel kernel, std::size_t teams, std::byte* scratch, std::size_t scratch_bytes) {
  for (std::size_t i = blockIdx.x; i < teams; i += gridDim.x) {
    kernel(block_team<Kernel::threads>{}, i, scratch + blockIdx.x * scratch_bytes);
    __syncthreads();
  }
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
  detail::check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_everything), "cudaMemPoolSetAttribute");
}

inline device_memory_pool& device_memory_pool::of(int device) {
  static std::mutex lock;
  static std::vector<std::unique_ptr<device_memory_pool>> pools;
  const std::lock_guard hold(lock);
  if (pools.size() <= static_cast<std::size_t>(device)) pools.resize(device + 1);
  if (!pools[device]) pools[device].reset(new device_memory_pool(device));
  return *pools[device];
}

inline void* device_memory_pool::allocate(std::size_t bytes, cudaStream_t stream) {
  void* memory = nullptr;
  if (cudaMallocFromPoolAsync(&memory, bytes, pool_, stream) == cudaSuccess) return memory;
  static_cast<void>(cudaGetLastError());
  // What the pool keeps for later may be in the way of this one.
  static_cast<void>(cudaStreamSynchronize(stream));
  trim();
  const cudaError_t status = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream);
  if (status == cudaSuccess) return memory;
  static_cast<void>(cudaGetLastError());
  if (status != cudaErrorMemoryAllocation) detail::check(status, "cudaMallocFromPoolAsync");
  std::size_t free = 0, total = 0;
  static_cast<void>(cudaMemGetInfo(&free, &total));
  throw out_of_memory("roost::cuda: no memory for " + std::to_string(bytes) + " bytes; " + std::to_string(free) + " of " +
                      std::to_string(total) + " bytes of the device are free; use fewer keys or a higher load factor");
}

inline void device_memory_pool::deallocate(void* memory, std::size_t, cudaStream_t stream) noexcept {
  static_cast<void>(cudaFreeAsync(memory, stream));
}

inline std::size_t device_memory_pool::kept() const {
  std::uint64_t taken = 0, used = 0;
  detail::check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &taken), "cudaMemPoolGetAttribute");
  detail::check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used), "cudaMemPoolGetAttribute");
  return taken - detail::smaller(taken, used);
}

inline void device_memory_pool::trim() { detail::check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo"); }

inline cuda::cuda(cudaStream_t stream, device_memory_resource* memory) : stream_(stream), memory_(memory) {
  if (!cuda_available()) {
    throw device_error("roost::cuda: no CUDA device can be used here; use roost::host, or check the driver with nvidia-smi");
  }
  detail::check(cudaGetDevice(&device_), "cudaGetDevice");
  int shared = 0;
  detail::check(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_), "cudaDeviceGetAttribute");
  detail::check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device_), "cudaDeviceGetAttribute");
  shared_bytes_ = static_cast<std::size_t>(shared);
  if (memory_ == nullptr) memory_ = &device_memory_pool::of(device_);
}

inline void cuda::synchronize() const { detail::check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

inline void cuda::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  detail::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
}

inline void cuda::copy_from_host(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  detail::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync to the device");
}

inline void cuda::copy_to_host(void* to, const void* from, std::size_t bytes) const {
  if (bytes != 0) {
    detail::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync to the host");
  }
  synchronize();
}

inline void cuda::fill(void* memory, int byte, std::size_t bytes) const {
  if (bytes == 0) return;
  detail::check(cudaMemsetAsync(memory, byte, bytes, stream_), "cudaMemsetAsync");
}

template <class F>
void cuda::for_each(std::size_t n, const F& f) const {
  if (n == 0) return;
  const detail::device_guard guard(device_);
  constexpr unsigned threads = 256;
  detail::for_each_kernel<<<static_cast<unsigned>(detail::ceil_div<std::size_t>(n, threads)), threads, 0, stream_>>>(n, f);
  detail::check(cudaGetLastError(), "launch of for_each");
}

template <class Kernel>
void cuda::launch(std::size_t teams, std::size_t scratch_bytes, const Kernel& kernel) const {
  if (teams == 0) return;
  const detail::device_guard guard(device_);
  constexpr std::size_t without_asking = 48 << 10;  // shared memory that every kernel may use
  constexpr std::size_t static_bytes = 4 << 10;     // room for what a team's scan takes for itself
  const auto run = detail::team_kernel<Kernel>;
  if (scratch_bytes + static_bytes <= shared_bytes_) {
    if (scratch_bytes + static_bytes > without_asking) {
      detail::check(cudaFuncSetAttribute(run, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(scratch_bytes)),
                    "cudaFuncSetAttribute");
    }
    run<<<static_cast<unsigned>(teams), Kernel::threads, scratch_bytes, stream_>>>(kernel);
    detail::check(cudaGetLastError(), "launch of a team kernel");
  } else {
    const std::size_t bytes = (scratch_bytes + 255) / 256 * 256;
    const std::size_t blocks = detail::smaller<std::size_t>(teams, static_cast<std::size_t>(processors_) * 2);
    const detail::scratch_block scratch(*this, blocks * bytes);
    fill(scratch.get(), 0, blocks * bytes);  // a team may copy slots that it has not filled yet
    detail::wide_team_kernel<<<static_cast<unsigned>(blocks), Kernel::threads, 0, stream_>>>(kernel, teams,
                                                                                             static_cast<std::byte*>(scratch.get()), bytes);
    detail::check(cudaGetLastError(), "launch of a team kernel");
  }
}

inline void cuda::exclusive_scan(const std::uint64_t* from, std::uint64_t* to, std::size_t n) const {
  const detail::device_guard guard(device_);
  std::size_t bytes = 0;
  detail::check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, from, to, n, stream_), "cub::DeviceScan::ExclusiveSum");
  const detail::scratch_block scratch(*this, bytes);
  detail::check(cub::DeviceScan::ExclusiveSum(scratch.get(), bytes, from, to, n, stream_), "cub::DeviceScan::ExclusiveSum");
}

template <class F>
std::uint64_t cuda::sum(std::size_t n, const F& f) const {
  const detail::device_guard guard(device_);
  const detail::scratch_block total(*this, sizeof(std::uint64_t));
  auto* const to = static_cast<std::uint64_t*>(total.get());
  const auto reduce = [&](void* scratch, std::size_t& bytes) {
    detail::check(cub::DeviceReduce::TransformReduce(scratch, bytes, thrust::counting_iterator<std::size_t>(0), to, n, detail::add{},
                                                     detail::outlined<F>{f}, std::uint64_t{0}, stream_),
                  "cub::DeviceReduce::TransformReduce");
  };
  std::size_t bytes = 0;
  reduce(nullptr, bytes);
  {
    const detail::scratch_block scratch(*this, bytes);
    reduce(scratch.get(), bytes);
  }
  std::uint64_t result = 0;
  copy_to_host(&result, to, sizeof(result));
  return result;
}

}  // namespace roost
