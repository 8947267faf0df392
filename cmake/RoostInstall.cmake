# The package that find_package(roost) finds.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_directory "${CMAKE_INSTALL_DATADIR}/cmake/roost")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/roostConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/roostConfig.cmake"
                              INSTALL_DESTINATION "${package_directory}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/roostConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)

install(TARGETS roost_headers EXPORT roost)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/roost" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT roost FILE roostTargets.cmake NAMESPACE roost:: DESTINATION "${package_directory}")
install(FILES "${PROJECT_BINARY_DIR}/roostConfig.cmake"
              "${PROJECT_BINARY_DIR}/roostConfigVersion.cmake" DESTINATION "${package_directory}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
