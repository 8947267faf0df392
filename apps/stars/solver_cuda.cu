#include "apps/shared/cuda_stream.hpp"
#include "patterns.hpp"
#include "solve.hpp"

double roost::tools::build_patterns_on_cuda(star_database& database) {
  const owned_stream stream;
  return build_patterns_on(cuda(stream.get()), database);
}

void roost::tools::with_solver_on_cuda(const star_database& database, const use_solver& use) {
  const owned_stream stream;
  use(solver_on<cuda>(cuda(stream.get()), database));
}
