import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"


class Roost(ConanFile):
    """The headers of the checkout in which this recipe lies."""

    name = "roost"
    description = "Header-only C++20 and CUDA hash tables for GPUs and CPUs"
    license = "Apache-2.0"
    topics = ("hash-table", "cuda", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"system_tbb": [True, False]}
    default_options = {"system_tbb": False}
    generators = "CMakeToolchain", "CMakeDeps"

    @property
    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        project = load(self, os.path.join(self._checkout, "CMakeLists.txt"))
        self.version = re.search(r"project\(roost VERSION ([0-9.]+)", project).group(1)

    def export_sources(self):
        for what in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*"):
            copy(self, what, self._checkout, self.export_sources_folder)

    def requirements(self):
        if not self.options.system_tbb:
            self.requires("onetbb/2021.12.0", transitive_headers=True, transitive_libs=True)

    def layout(self):
        cmake_layout(self)

    def validate(self):
        check_min_cppstd(self, 20)

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "share", "doc"))
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # Consumers find the package's own files, whose target has the options of nvcc.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/roost"]
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
