#include "geometric_hashing.hpp"

void roost::tools::with_matcher_on_host(int threads, const grey_image& reference,
                                        const match_options& options, const use_matcher& use) {
  use(matcher_on<host>(host(threads), reference, options));
}
