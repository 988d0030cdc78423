"""The package as users get it."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

HERE = pathlib.Path(__file__).parents[1]


class WheelTest(unittest.TestCase):
    def test_a_wheel_builds_and_is_typed(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            # The build leaves files beside the source.
            source = shutil.copytree(HERE, f"{directory}/source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
            options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", directory]
            subprocess.run([sys.executable, "-m", "pip", "wheel", *options, source], check=True)
            (wheel,) = pathlib.Path(directory).glob("annals_lake-*-py3-none-any.whl")
            names = zipfile.ZipFile(wheel).namelist()
        modules = sorted(f"annals_lake/{path.name}" for path in (HERE / "src/annals_lake").iterdir() if path.is_file())
        self.assertIn("annals_lake/py.typed", modules)
        self.assertEqual(sorted(name for name in names if ".dist-info/" not in name), modules)


if __name__ == "__main__":
    unittest.main()
