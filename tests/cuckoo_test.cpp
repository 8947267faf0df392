#include "support/tables.inl"
namespace test { TEST_TABLES_CUCKOO(TEST_DEFINE) }
