#include "operations.hpp"

namespace roost::c {

const operations& at_cuda(int) {
  detail::raise<device_error>({"roost: this library was built without CUDA; build it with -D ROOST_CUDA=ON"});
}

}  // namespace roost::c
