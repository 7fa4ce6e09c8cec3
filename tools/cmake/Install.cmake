# Install.cmake - installs the library, headers, tool, CMake package and pkg-config file.
include(CMakePackageConfigHelpers)

install(TARGETS fornax EXPORT fornax-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET fornax_tool)
  install(TARGETS fornax_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY core/include/fornax ${FX_GENERATED_INCLUDE}/fornax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY data/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fornax PATTERN "*.py" EXCLUDE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/fornax)
install(EXPORT fornax-targets NAMESPACE fornax:: DESTINATION ${package_dir})
configure_package_config_file(tools/cmake/fornax-config.cmake.in fornax-config.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(fornax-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/fornax-config.cmake ${CMAKE_BINARY_DIR}/fornax-config-version.cmake
        DESTINATION ${package_dir})

# The file finds its prefix from its own place, so an installed tree may be moved.
file(RELATIVE_PATH FX_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" FX_PC_PREFIX "${FX_PC_PREFIX}")
configure_file(tools/cmake/fornax.pc.in fornax.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/fornax.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
