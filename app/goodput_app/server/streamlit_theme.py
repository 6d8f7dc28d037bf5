"""The look of the dashboard, as Streamlit takes it when the server starts."""

import tomllib
from importlib.resources import files

THEME = tomllib.loads((files("goodput_app.server") / "streamlit_theme.toml").read_text("utf-8"))
