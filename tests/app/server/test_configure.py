"""What a server sets before it draws its first page."""

import subprocess
import sys
from pathlib import Path

import streamlit

CONFIGURE = """
import sys
sys.path.insert(0, sys.argv[1])
from goodput_app.server.asgi import configure
configure("127.0.0.1", 8501)
print(sys.modules["streamlit"].__file__, "pandas" in sys.modules)
"""


def test_a_server_starts_from_packages_in_any_folder_and_has_what_figures_share(tmp_path):
    (tmp_path / "streamlit").symlink_to(Path(streamlit.__file__).parent)

    command = [sys.executable, "-c", CONFIGURE, str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)

    assert ended.stdout.split() == [str(tmp_path / "streamlit" / "__init__.py"), "True"]
