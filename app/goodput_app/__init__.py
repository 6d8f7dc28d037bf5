"""What people touch: dashboard, command line, server. The only package that knows streamlit."""
