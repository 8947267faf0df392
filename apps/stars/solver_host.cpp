#include "patterns.hpp"
#include "solve.hpp"

double roost::tools::build_patterns_on_host(int threads, star_database& database) {
  return build_patterns_on(host(threads), database);
}

void roost::tools::with_solver_on_host(int threads, const star_database& database, const use_solver& use) {
  use(solver_on<host>(host(threads), database));
}
