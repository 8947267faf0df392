#include "apps/shared/cuda_stream.hpp"
#include "geometric_hashing.hpp"

void roost::tools::with_matcher_on_cuda(const grey_image& reference, const match_options& options,
                                        const use_matcher& use) {
  const owned_stream stream;
  use(matcher_on<cuda>(cuda(stream.get()), reference, options));
}
