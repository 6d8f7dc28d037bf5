"""The Streamlit dashboard: pages, components, cached reads, theme."""
