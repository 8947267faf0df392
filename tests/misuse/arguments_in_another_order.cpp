// says: ^[^ ]*: error: [^;]* deleted [^;]*the.place,?.such.as.a.roost(_|::)host,?.comes.first
#include <roost/roost.hpp>
#include <roost/sorted_map.hpp>
#include <roost/stadium/stadium_map.hpp>

const std::vector<int> keys{1, 2}, values{3, 4};
const roost::host cpu;

roost::frozen_map map(keys, values, cpu);
roost::frozen_map<int, int> of_named_types(keys, values, cpu);
roost::frozen_map without_place(keys, values);
roost::frozen_set set(keys, cpu);
roost::frozen_multimap multimap(keys, values, cpu);
roost::sorted_map sorted(keys, values, cpu);
roost::two_way_index numbers(keys, cpu);
roost::concurrent_map<int, int> concurrent(1000, cpu);
roost::concurrent_set<int> concurrent_without_place;
roost::stadium_map<int, int> stadium(1000, cpu);

void call() {
  roost::group_by(keys, values, roost::plus(), cpu);
  roost::group_means(keys, values, cpu);
  roost::inner_join(keys, values, cpu);
  roost::left_join(keys, values);
  roost::semi_join(keys, values, cpu);
  roost::anti_join(keys, values, cpu);
  roost::unique(keys, cpu);
  roost::unique_all(keys, roost::unique_options(), cpu);
  roost::unique_inverse(keys, cpu);
  roost::unique_counts(keys, cpu);
  roost::unique_count(keys);
  roost::partition(keys, cpu);
  roost::copy_to(keys, cpu);
  roost::copy_to_host(keys);
}
