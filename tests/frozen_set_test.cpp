#include "support/tables.inl"
namespace test { TEST_SETS(TEST_DEFINE) }
