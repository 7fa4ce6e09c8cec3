# Dependencies.cmake - third-party libraries that the core needs, whatever the backends.
#
# None is copied into the tree. A missing required one is a fatal error that names the Debian and
# Ubuntu package. FX_CORE_LIBRARIES is what libfornax links; FX_CORE_DEFINITIONS what its sources
# may test: FX_HAVE_LIBZIP. FX_PROBE_TABLE gets a row for each (see tools/cmake/Table.cmake).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(FX_CORE_LIBRARIES Threads::Threads m)
set(FX_CORE_DEFINITIONS)
set(FX_MISSING)

# fx_find_pkg(NAME module package REQUIRED|OPTIONAL): a library with a pkg-config file.
macro(fx_find_pkg name module package need)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  if(${name}_FOUND)
    fx_table_row(libraries "${module}" yes "${${name}_VERSION}" "")
  else()
    fx_table_row(libraries "${module}" no "-" "apt-get install ${package}")
    if("${need}" STREQUAL REQUIRED)
      list(APPEND FX_MISSING ${package})
    endif()
  endif()
endmacro()

# fx_find_header(NAME header package REQUIRED|OPTIONAL): a library that is a header.
macro(fx_find_header name header package need)
  find_path(${name}_INCLUDE_DIR ${header} ${ARGN})
  mark_as_advanced(${name}_INCLUDE_DIR)
  if(${name}_INCLUDE_DIR)
    fx_table_row(libraries "${header}" yes "" "")
  else()
    fx_table_row(libraries "${header}" no "-" "apt-get install ${package}")
    if("${need}" STREQUAL REQUIRED)
      list(APPEND FX_MISSING ${package})
    endif()
  endif()
endmacro()

fx_find_pkg(JANSSON jansson libjansson-dev REQUIRED)
fx_find_pkg(XXHASH libxxhash libxxhash-dev REQUIRED)
fx_find_header(UTHASH uthash.h uthash-dev REQUIRED)
fx_find_pkg(PNG libpng libpng-dev REQUIRED)
fx_find_pkg(JPEG libjpeg libjpeg-dev REQUIRED)
fx_find_pkg(LIBZIP libzip libzip-dev OPTIONAL)
fx_find_header(VKFFT vkFFT.h libvkfft-dev OPTIONAL PATH_SUFFIXES vkFFT vkfft)

if(FX_MISSING)
  list(JOIN FX_MISSING " " missing)
  message(FATAL_ERROR "Fornax needs packages that are not installed.\n"
          "Install them: apt-get install ${missing}\nor let ./tools/setup do it.")
endif()

list(APPEND FX_CORE_LIBRARIES PkgConfig::JANSSON PkgConfig::XXHASH PkgConfig::PNG PkgConfig::JPEG)
if(LIBZIP_FOUND)
  list(APPEND FX_CORE_LIBRARIES PkgConfig::LIBZIP)
  list(APPEND FX_CORE_DEFINITIONS FX_HAVE_LIBZIP=1)
endif()

# Where the program looks for the data that comes with it (see core/io/digits.c).
list(APPEND FX_CORE_DEFINITIONS FX_DATA_SOURCE_DIR="${CMAKE_SOURCE_DIR}/data"
     FX_DATA_INSTALL_DIR="${CMAKE_INSTALL_FULL_DATADIR}/fornax")
