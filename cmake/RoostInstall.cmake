# What is installed: the headers, as the package that find_package(roost) finds (component `headers`); and the
# roost command, where it is built, with what it needs to draw plots, its man page and its completions
# (component `command`). cpack makes a .deb of each. The C interface is component `c`.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_directory "${CMAKE_INSTALL_DATADIR}/cmake/roost")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/roostConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/roostConfig.cmake"
                              INSTALL_DESTINATION "${package_directory}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/roostConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)

install(TARGETS roost_headers EXPORT roost COMPONENT headers)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/roost" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT headers)
install(EXPORT roost FILE roostTargets.cmake NAMESPACE roost:: DESTINATION "${package_directory}"
        COMPONENT headers)
install(FILES "${PROJECT_BINARY_DIR}/roostConfig.cmake"
              "${PROJECT_BINARY_DIR}/roostConfigVersion.cmake" DESTINATION "${package_directory}"
        COMPONENT headers)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/libroost-dev"
        RENAME copyright COMPONENT headers)

if(TARGET roost_c)
  install(TARGETS roost_c EXPORT roost_c COMPONENT c)
  install(FILES "${PROJECT_SOURCE_DIR}/c/include/roost.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
          COMPONENT c)
  install(EXPORT roost_c FILE roostCTargets.cmake NAMESPACE roost:: DESTINATION "${package_directory}"
          COMPONENT c)
  install(FILES "${PROJECT_BINARY_DIR}/roostConfig.cmake"
                "${PROJECT_BINARY_DIR}/roostConfigVersion.cmake" DESTINATION "${package_directory}"
          COMPONENT c)
  file(RELATIVE_PATH roost_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  configure_file("${PROJECT_SOURCE_DIR}/c/roost.pc.in" "${PROJECT_BINARY_DIR}/roost.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/roost.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT c)
endif()

if(TARGET roost)
  install(TARGETS roost COMPONENT command)
  install(PROGRAMS "${PROJECT_SOURCE_DIR}/scripts/plot" "${PROJECT_SOURCE_DIR}/scripts/opencv"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/roost" COMPONENT command)
  set(described "${PROJECT_BINARY_DIR}/apps/described")
  install(FILES "${described}/roost" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
          COMPONENT command)
  install(FILES "${described}/_roost" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions"
          COMPONENT command)
  install(FILES "${described}/roost.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT command)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/roost"
          RENAME copyright COMPONENT command)
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_VENDOR "roost")
  set(CPACK_PACKAGE_CONTACT "roost maintainers <maintainers@roost.invalid>")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
  set(CPACK_COMPONENTS_ALL headers)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_COMPONENT_HEADERS_DESCRIPTION "${PROJECT_DESCRIPTION}: C++20 and CUDA headers")
  set(CPACK_DEBIAN_HEADERS_PACKAGE_NAME libroost-dev)
  set(CPACK_DEBIAN_HEADERS_PACKAGE_ARCHITECTURE all)
  set(CPACK_DEBIAN_HEADERS_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_HEADERS_PACKAGE_DEPENDS libtbb-dev)
  if(TARGET roost)
    list(APPEND CPACK_COMPONENTS_ALL command)
    set(CPACK_COMPONENT_COMMAND_DESCRIPTION "${PROJECT_DESCRIPTION}: the roost command")
    set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME roost)
    set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION utils)
    set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS python3-matplotlib)
  endif()
  include(CPack)
endif()
